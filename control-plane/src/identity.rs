//! People who log in by identity providers: which providers the operator has set, and what their
//! tokens say.

use std::sync::Arc;
use std::time::Duration;

use kanat_auth::Role;
use kanat_auth::jwt::{self, Algorithm, Claims, KeyId, Policy, UnverifiedToken};
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_net::jwks::{self, TokenVerifier};
use kanat_net::{egress, outbound};
use tokio_util::task::TaskTracker;

use crate::tasks::Tasks;

/// Age from which keys of a provider that does not answer verify nothing.
const MAX_KEY_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest subject, name and e-mail address that is taken, in bytes.
const MAX_CLAIM_BYTES: usize = 1_000;

/// An identity provider, by the operator's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The `iss` of its tokens, byte for byte.
    pub issuer: String,
    /// The `aud` of tokens that are for this service.
    pub audience: String,
    /// Address of its keys; the discovery document has it otherwise.
    pub jwks_url: Option<String>,
    pub algorithms: Vec<Algorithm>,
    /// Claim with the e-mail address.
    pub email_claim: String,
    /// Claim with the role. Without one, roles are those of the members.
    pub role_claim: Option<String>,
    /// True where addresses count as verified although the provider does not say so.
    pub trust_email: bool,
    /// Client by which the command line logs in.
    pub client_id: Option<String>,
    /// Scopes that the command line asks for.
    pub scopes: Vec<String>,
}

/// Verifies tokens of all identity providers.
#[derive(Clone)]
pub struct IdentityProviders {
    issuers: Arc<[Issuer]>,
    /// None without an issuer: its connections have the TLS roots of the system in memory.
    verifier: Option<Arc<TokenVerifier>>,
}

/// Person that a verified token is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub issuer: String,
    pub subject: String,
    /// Address that the issuer has verified.
    pub email: Option<String>,
    /// Empty where the token has none.
    pub name: String,
    pub role: ClaimedRole,
    /// End of the token.
    pub expires_at: Timestamp,
    key: String,
}

/// Role by the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimedRole {
    /// The issuer gives no roles.
    NotAsked,
    /// The claim is missing, or is none of the roles.
    Missing,
    Given(Role),
}

impl Identity {
    /// Makes a person whose token does not end.
    #[cfg(test)]
    pub fn of(issuer: &str, subject: &str, email: Option<&str>, role: ClaimedRole) -> Self {
        Self {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            email: email.map(str::to_owned),
            name: String::new(),
            role,
            expires_at: Timestamp::from_millis(i64::MAX),
            key: format!("{issuer} {subject}"),
        }
    }

    /// Returns a text that no other person has.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl IdentityProviders {
    /// Sets up the providers. Their addresses are the operator's, and no guard judges them.
    ///
    /// # Errors
    /// The system offers no TLS roots.
    pub fn new(issuers: Vec<Issuer>, tasks: &Tasks) -> Result<Self, outbound::Error> {
        let verifier = match issuers.is_empty() {
            true => None,
            false => {
                let policy = Arc::new(egress::Policy::unrestricted());
                let outbound = outbound::Client::new(policy, &outbound::Options::default())?;
                let stop = tasks.stopping().clone();
                let verifier = TokenVerifier::new(outbound, TaskTracker::new(), stop, MAX_KEY_AGE);
                Some(Arc::new(verifier))
            }
        };
        Ok(Self {
            issuers: issuers.into(),
            verifier,
        })
    }

    /// Returns whether people can log in at all.
    pub fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Returns all providers.
    pub fn all(&self) -> &[Issuer] {
        &self.issuers
    }

    /// Returns whether roles of people of this issuer come from their tokens.
    pub fn gives_roles(&self, issuer: &str) -> bool {
        let found = self.issuers.iter().find(|found| found.issuer == issuer);
        found.is_some_and(|found| found.role_claim.is_some())
    }

    /// Returns the person that a token is about.
    ///
    /// # Errors
    /// [`Code::Unauthenticated`] for any fault of the token, and [`Code::Unavailable`] where the
    /// keys of its issuer cannot be had.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Identity> {
        let claimed = UnverifiedToken::claimed_issuer(token.as_bytes());
        let claimed = claimed.ok_or_else(|| refused(&jwt::Error::Unsupported))?;
        let issuer = self.issuers.iter().find(|known| known.issuer == claimed);
        let issuer = issuer.ok_or_else(|| refused(&jwt::Error::Issuer))?;
        let policy = Policy {
            issuer: &issuer.issuer,
            audience: &issuer.audience,
            algorithms: &issuer.algorithms,
            key_id: KeyId::Required,
        };
        let jwks_url = issuer.jwks_url.as_deref();
        let verifier = self.verifier.as_ref().ok_or_else(Error::internal)?;
        let verified = verifier.verify(&policy, jwks_url, token.as_bytes(), now);
        let claims = verified.await.map_err(|error| match error {
            jwks::Error::Invalid(error) => refused(&error),
            jwks::Error::KeysUnavailable => Error::new(Code::Unavailable, error.to_string()),
        })?;
        identity(issuer, &claims)
    }
}

fn identity(issuer: &Issuer, claims: &Claims) -> Result<Identity> {
    if claims.sub.is_empty() || !is_storable(&claims.sub) {
        return Err(refused(&jwt::Error::Claims));
    }
    let text = |name: &str| match claims.text(name) {
        None if claims.has(name) => Err(refused(&jwt::Error::Claims)),
        text => Ok(text.filter(|text| is_storable(text))),
    };
    let is_verified = match claims.has("email_verified") {
        true => claims.is_true("email_verified"),
        false => issuer.trust_email,
    };
    let email = text(&issuer.email_claim)?.filter(|email| is_verified && email.contains('@'));
    let role = match &issuer.role_claim {
        None => ClaimedRole::NotAsked,
        Some(claim) => claims
            .text(claim)
            .and_then(Role::parse)
            .map_or(ClaimedRole::Missing, ClaimedRole::Given),
    };
    Ok(Identity {
        issuer: issuer.issuer.clone(),
        subject: claims.sub.clone(),
        email: email.map(str::to_owned),
        name: text("name")?.unwrap_or_default().trim().to_owned(),
        role,
        expires_at: claims.expires_at(),
        key: format!("{} {}", issuer.issuer, claims.sub),
    })
}

/// Returns whether a claim is short, and has no characters that are no text.
fn is_storable(text: &str) -> bool {
    text.len() <= MAX_CLAIM_BYTES && !text.chars().any(char::is_control)
}

fn refused(error: &jwt::Error) -> Error {
    Error::new(Code::Unauthenticated, error.to_string())
}
