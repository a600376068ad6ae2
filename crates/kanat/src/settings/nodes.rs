//! `[[nodes]]` of the settings file: tokens and certificates of data-plane nodes, each with the
//! environments that it opens.

use std::path::Path;

use kanat_control_plane::{BoundCredential, BoundNode};
use serde::{Deserialize, Serialize};

/// SHA-256 of an empty text.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Table of the file: a token or a certificate.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// SHA-256 of a join token in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_sha256: Option<String>,
    /// DNS name of a certificate of the authority for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Ids or names.
    pub environments: Vec<String>,
}

impl Entry {
    /// Returns what it lets in. An entry that was checked lets something in.
    pub fn bound(&self) -> Option<BoundNode> {
        Some(BoundNode {
            credential: self.credential().ok()?,
            environments: self.environments.clone(),
        })
    }

    fn credential(&self) -> Result<BoundCredential, &'static str> {
        match (&self.token_sha256, &self.certificate) {
            (None, None) => Err("it has neither token_sha256 nor certificate"),
            (Some(_), Some(_)) => {
                Err("it has both token_sha256 and certificate: give each an entry of its own")
            }
            // A client without a token would have the hash of the empty one.
            (Some(token), None) if token.eq_ignore_ascii_case(EMPTY_SHA256) => {
                Err("token_sha256 is that of an empty token")
            }
            (Some(token), None) => digest(token).map(BoundCredential::Token).ok_or(
                "token_sha256 is not 64 hexadecimal digits: `printf %s \"$TOKEN\" | sha256sum` \
                 tells them",
            ),
            (None, Some(name)) if name.trim().is_empty() => {
                Err("certificate is empty: it is a DNS name of the certificate")
            }
            (None, Some(name)) => Ok(BoundCredential::Certificate(name.clone())),
        }
    }
}

/// Checks the entries. Those with a certificate need an authority for clients.
///
/// # Errors
/// The first entry that is wrong, by its number.
pub fn checked(
    entries: Option<Vec<Entry>>,
    authority: Option<&Path>,
) -> Result<Vec<Entry>, String> {
    let entries = entries.unwrap_or_default();
    for (n, entry) in (1..).zip(&entries) {
        let problem = match entry.credential() {
            Err(problem) => problem,
            Ok(BoundCredential::Certificate(_)) if authority.is_none() => {
                "certificates are looked at where tls_client_ca names their authority"
            }
            Ok(_) if entry.environments.is_empty() => {
                "environments is empty: it names those that are open to the node"
            }
            Ok(_) => continue,
        };
        return Err(format!("entry {n}: {problem}"));
    }
    Ok(entries)
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest).ok()?;
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: Option<&str>, certificate: Option<&str>, environments: &[&str]) -> Entry {
        Entry {
            token_sha256: token.map(str::to_owned),
            certificate: certificate.map(str::to_owned),
            environments: environments.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn an_entry_has_one_credential_and_some_environments() {
        let authority = Some(Path::new("clients.pem"));
        let digest = "0f".repeat(32);
        let good = entry(Some(&digest), None, &["staging"]);
        let named = entry(None, Some("node-1.example.com"), &["staging"]);
        assert_eq!(
            checked(Some(vec![good.clone(), named.clone()]), authority)
                .unwrap()
                .len(),
            2
        );
        assert!(good.bound().is_some() && named.bound().is_some());
        for (wrong, problem) in [
            (entry(None, None, &["staging"]), "neither"),
            (
                entry(Some(&digest), Some("node-1.example.com"), &["staging"]),
                "both",
            ),
            (
                entry(Some("the-token-itself"), None, &["staging"]),
                "64 hexadecimal digits",
            ),
            (entry(Some(EMPTY_SHA256), None, &["staging"]), "empty token"),
            (entry(Some(&digest), None, &[]), "environments is empty"),
            (entry(None, Some(" "), &["staging"]), "certificate is empty"),
        ] {
            let told = checked(Some(vec![good.clone(), wrong]), authority).unwrap_err();
            assert!(
                told.starts_with("entry 2: ") && told.contains(problem),
                "{told}"
            );
        }
        assert!(
            checked(Some(vec![named]), None)
                .unwrap_err()
                .contains("tls_client_ca")
        );
    }
}
