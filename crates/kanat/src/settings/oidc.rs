//! Identity providers that people log in by: `[[oidc]]` of the settings file, and one more by
//! `KANAT_OIDC_*`.

use kanat_auth::jwt::{Algorithm, DEFAULT_ALGORITHMS};
use kanat_control_plane::Issuer;
use serde::{Deserialize, Serialize};

use super::{Problems, flags, value};

flags! {
    /// Settings of identity providers, as the command line, the environment and the file give
    /// them; each may be left out.
    pub struct Flags {
        /// Address of the identity provider (OpenID Connect) that people log in by, which is the
        /// issuer of its tokens; several are tables of the file.
        "KANAT_OIDC_ISSUER" => oidc_issuer: Option<String>,
        /// Audience of tokens that are for this service.
        "KANAT_OIDC_AUDIENCE" => oidc_audience: Option<String>,
        /// Address of the provider's keys [default: the one in its discovery document].
        "KANAT_OIDC_JWKS_URL" => oidc_jwks_url: Option<String>,
        /// Algorithms that tokens may be signed by, separated by commas [default:
        /// RS256,ES256,EdDSA].
        #[arg(value_delimiter = ',')]
        "KANAT_OIDC_ALGORITHMS" => oidc_algorithms: Option<Vec<String>>,
        /// Claim with a person's e-mail address [default: email].
        "KANAT_OIDC_EMAIL_CLAIM" => oidc_email_claim: Option<String>,
        /// Claim with a person's role [default: members have the roles that they were given here].
        "KANAT_OIDC_ROLE_CLAIM" => oidc_role_claim: Option<String>,
        /// Take addresses for verified although the provider does not say so.
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        "KANAT_OIDC_TRUST_EMAIL" => oidc_trust_email: Option<bool>,
        /// Client by which `kanat login` logs in.
        "KANAT_OIDC_CLIENT_ID" => oidc_client_id: Option<String>,
        /// Scopes that `kanat login` asks for, separated by commas [default: openid,email,profile].
        #[arg(value_delimiter = ',')]
        "KANAT_OIDC_SCOPES" => oidc_scopes: Option<Vec<String>>,
        /// Providers: tables of the file.
        #[arg(skip)]
        #[serde(skip_serializing_if = "Option::is_none")]
        oidc: Option<Vec<Entry>>,
    }
}

/// Table of the file: an identity provider.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    pub issuer: String,
    pub audience: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithms: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_claim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_claim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_email: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
}

impl Flags {
    pub(super) fn check(&self, problems: &mut Problems) -> Vec<Issuer> {
        let mut issuers = Vec::new();
        let single = self.single();
        let of_file = self.oidc.iter().flatten();
        let entries = of_file.map(|entry| ("oidc", entry));
        for (n, (setting, entry)) in
            (1..).zip(entries.chain(single.iter().map(|entry| ("oidc_issuer", entry))))
        {
            let is_known = issuers
                .iter()
                .any(|known: &Issuer| known.issuer == entry.issuer);
            match entry.checked() {
                Ok(issuer) if !is_known => issuers.push(issuer),
                Ok(issuer) => problems.add(
                    setting,
                    format!("provider {n}: {} is there already", issuer.issuer),
                ),
                Err(problem) => problems.add(setting, format!("provider {n}: {problem}")),
            }
        }
        issuers
    }

    /// Returns the provider that variables and flags name, if they name one.
    fn single(&self) -> Option<Entry> {
        let others = [
            &self.oidc_audience,
            &self.oidc_jwks_url,
            &self.oidc_email_claim,
            &self.oidc_role_claim,
            &self.oidc_client_id,
        ];
        let lists = [&self.oidc_algorithms, &self.oidc_scopes];
        let is_given = self.oidc_issuer.is_some()
            || self.oidc_trust_email.is_some()
            || others.into_iter().any(Option::is_some)
            || lists.into_iter().any(Option::is_some);
        is_given.then(|| Entry {
            issuer: self.oidc_issuer.clone().unwrap_or_default(),
            audience: self.oidc_audience.clone().unwrap_or_default(),
            jwks_url: self.oidc_jwks_url.clone(),
            algorithms: self.oidc_algorithms.clone(),
            email_claim: self.oidc_email_claim.clone(),
            role_claim: self.oidc_role_claim.clone(),
            trust_email: self.oidc_trust_email,
            client_id: self.oidc_client_id.clone(),
            scopes: self.oidc_scopes.clone(),
        })
    }
}

impl Entry {
    fn checked(&self) -> Result<Issuer, String> {
        if self.issuer.is_empty() {
            return Err("issuer is missing: the address of the identity provider".to_owned());
        }
        value::url(&self.issuer).map_err(|problem| format!("issuer: {problem}"))?;
        if self.issuer.contains('@') {
            return Err(
                "issuer: an address of a provider has neither user nor password".to_owned(),
            );
        }
        if self.audience.trim().is_empty() {
            return Err(
                "audience is missing: the `aud` of tokens that are for this service; without it, \
                 tokens for other services would be good here"
                    .to_owned(),
            );
        }
        if let Some(url) = &self.jwks_url {
            value::url(url).map_err(|problem| format!("jwks_url: {problem}"))?;
        }
        let named = |name: &str, claim: &Option<String>| match claim.as_deref() {
            Some(claim) if claim.trim().is_empty() => Err(format!("{name} is empty")),
            _ => Ok(claim.clone()),
        };
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        let usual_scopes = || texts(&["openid", "email", "profile"]);
        Ok(Issuer {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            jwks_url: self.jwks_url.clone(),
            algorithms: self.algorithms()?,
            email_claim: named("email_claim", &self.email_claim)?
                .unwrap_or_else(|| "email".to_owned()),
            role_claim: named("role_claim", &self.role_claim)?,
            trust_email: self.trust_email.unwrap_or(false),
            client_id: named("client_id", &self.client_id)?,
            scopes: self.scopes()?.unwrap_or_else(usual_scopes),
        })
    }

    fn scopes(&self) -> Result<Option<Vec<String>>, String> {
        let is_scope = |scope: &String| !scope.is_empty() && !scope.contains(char::is_whitespace);
        match self.scopes.iter().flatten().find(|scope| !is_scope(scope)) {
            Some(wrong) => Err(format!(
                "scopes: {wrong:?} is no scope: each stands by itself"
            )),
            None => Ok(self.scopes.clone()),
        }
    }

    fn algorithms(&self) -> Result<Vec<Algorithm>, String> {
        let Some(names) = &self.algorithms else {
            return Ok(DEFAULT_ALGORITHMS.to_vec());
        };
        let known = |name: &String| {
            let found = name.trim().parse::<Algorithm>().ok();
            found
                .filter(|algorithm| DEFAULT_ALGORITHMS.contains(algorithm))
                .ok_or_else(|| format!("algorithms: {name:?} is not RS256, ES256 or EdDSA"))
        };
        let found = names.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        if found.is_empty() {
            return Err("algorithms is empty: no token could be verified".to_owned());
        }
        Ok(found)
    }
}

/// Warns of providers whose tokens or keys go over the network without TLS.
pub fn warn(issuers: &[Issuer]) {
    for issuer in issuers {
        let addresses = [Some(&issuer.issuer), issuer.jwks_url.as_ref()];
        for address in addresses.into_iter().flatten() {
            if !value::is_private(address) {
                tracing::warn!(
                    "the identity provider {address} is reached without TLS: who can change what \
                     it answers can log in as anybody"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::of_file;
    use crate::settings::up;

    fn fault(entry: &str) -> String {
        let found = of_file::<up::Flags>(&format!("[[oidc]]\n{entry}"));
        found
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn providers_are_tables_of_the_file_and_one_by_single_settings() {
        let (settings, _) = of_file::<up::Flags>(
            "[[oidc]]\nissuer = \"https://b.example/\"\naudience = \"kanat\"\n",
        )
        .unwrap();
        let issuers = &settings.control.plane.issuers;
        assert_eq!(issuers.len(), 1);
        assert_eq!(issuers[0].issuer, "https://b.example/");
        assert_eq!(issuers[0].scopes, ["openid", "email", "profile"]);
        assert_eq!(issuers[0].algorithms, DEFAULT_ALGORITHMS);
        let (settings, _) = of_file::<up::Flags>(
            "oidc_issuer = \"https://c.example\"\noidc_audience = \"kanat\"\n",
        )
        .unwrap();
        assert_eq!(
            settings.control.plane.issuers[0].issuer,
            "https://c.example"
        );
    }

    #[test]
    fn each_fault_names_the_provider_and_its_setting() {
        let good = "issuer = \"https://a.example\"\naudience = \"kanat\"\n";
        assert_eq!(fault(good), "");
        for (entry, problem) in [
            ("audience = \"kanat\"\n".to_owned(), "issuer is missing"),
            (
                "issuer = \"https://a.example\"\n".to_owned(),
                "audience is missing",
            ),
            (
                "issuer = \"a.example\"\naudience = \"kanat\"\n".to_owned(),
                "issuer: ",
            ),
            (
                format!("{good}algorithms = [\"HS256\"]\n"),
                "\"HS256\" is not RS256",
            ),
            (format!("{good}algorithms = []\n"), "algorithms is empty"),
            (format!("{good}role_claim = \" \"\n"), "role_claim is empty"),
            (format!("{good}scopes = [\"a b\"]\n"), "scopes: \"a b\""),
            (
                format!("{good}[[oidc]]\nissuer = 5\n"),
                "kanat.toml:5: oidc: issuer: expected a text in quotes, found integer",
            ),
            (
                format!("{good}trust_email = \"yes\"\n"),
                "kanat.toml:4: oidc: trust_email: expected true or false, found string",
            ),
            (
                "issuer = \"https://u:p@a.example\"\naudience = \"kanat\"\n".to_owned(),
                "neither user nor password",
            ),
            (format!("{good}roles_claim = \"r\"\n"), "roles_claim"),
            (format!("{good}[[oidc]]\n{good}"), "is there already"),
        ] {
            let found = fault(&entry);
            assert!(found.contains(problem), "{entry}: {found}");
        }
    }
}
