//! A service with an identity provider, on one of the databases.

use kanat_tests::token_issuer::{CLIENT_ID, Person, TokenIssuer};
use kanat_tests::{Rest, Service};
use serde_json::{Value, json};

use super::{MEMBERS, token_of};

/// Audience of tokens for the service.
pub const AUDIENCE: &str = "kanat";

/// A running service whose people log in by `issuer`.
pub struct Organization {
    pub issuer: TokenIssuer,
    service: Service,
}

impl Organization {
    /// Starts a service on SQLite with further settings.
    pub async fn on_sqlite_with(settings: &[(&str, &str)]) -> Self {
        let issuer = TokenIssuer::start().await;
        let url = issuer.url();
        let settings = [&Self::settings(&url), settings].concat();
        let service = Service::on_sqlite_with(&settings).await;
        Self { issuer, service }
    }

    /// Starts two control planes of one PostgreSQL database with further settings.
    pub async fn on_postgresql_with(settings: &[(&str, &str)]) -> Self {
        let issuer = TokenIssuer::start().await;
        let url = issuer.url();
        let settings = [&Self::settings(&url), settings].concat();
        let service = Service::on_postgresql_with(&settings).await;
        Self { issuer, service }
    }

    fn settings(issuer: &str) -> [(&str, &str); 3] {
        [
            ("KANAT_OIDC_ISSUER", issuer),
            ("KANAT_OIDC_AUDIENCE", AUDIENCE),
            ("KANAT_OIDC_CLIENT_ID", CLIENT_ID),
        ]
    }

    /// Returns the service as the owner key sees it.
    pub fn owner(&self) -> &Rest {
        self.service.api()
    }

    /// Returns the service as the owner key sees it from the other control plane, where there is
    /// one.
    pub fn elsewhere(&self) -> &Rest {
        self.service.elsewhere()
    }

    /// Returns the service as a person with a token sees it, from the other control plane than the
    /// owner.
    pub fn as_person(&self, person: &Person) -> Rest {
        self.with_claims(person, &json!({}))
    }

    /// Returns the service as a person sees it whose token has further claims.
    pub fn with_claims(&self, person: &Person, claims: &Value) -> Rest {
        let mut all = json!({"aud": AUDIENCE});
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        let token = self.issuer.id_token_with(person, &all);
        self.elsewhere().with_key(&token)
    }

    /// Returns a token of a person for the service.
    pub fn token(&self, person: &Person) -> String {
        self.issuer.id_token_with(person, &json!({"aud": AUDIENCE}))
    }

    /// Invites a person; returns the invitation.
    pub async fn invites(&self, email: &str, role: &str) -> Value {
        let body = json!({"email": email, "role": role});
        self.owner().post(MEMBERS, &body).await.expect(201)
    }

    /// Makes a person a member who has accepted; returns the member.
    pub async fn hires(&self, person: &Person, role: &str) -> Value {
        let invitation = self.invites(&person.email, role).await;
        let body = json!({"token": token_of(&invitation)});
        let accept = format!("{MEMBERS}/accept");
        self.as_person(person)
            .post(&accept, &body)
            .await
            .expect(200)
    }
}
