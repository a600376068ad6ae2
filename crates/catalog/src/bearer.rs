//! Check of the bearer tokens that a call gives. `Bearer ` is put in front of them where they are
//! sent, so that a token with that word in it would be refused with 401 by every provider, and
//! traces mask the reason.

use kanat_model::FieldError;
use serde_json::{Map, Value};

use crate::auth::Auth;
use crate::entry::Entry;

/// Authentication scheme of the tokens.
const SCHEME: &str = "Bearer";

impl Entry {
    /// Checks the bearer tokens among the `given` fields of a config. A config that is stored
    /// already goes on as it is: a provider may take what it sends.
    ///
    /// # Errors
    /// Names the first token that begins with the scheme, or that has blanks at one of its ends.
    pub fn check_bearer_tokens(&self, given: &Map<String, Value>) -> Result<(), FieldError> {
        let fault = given.iter().find_map(|(name, value)| {
            let token = value.as_str().filter(|_| self.is_bearer_token(name))?;
            let message = bearer_token_fault(token)?;
            Some(FieldError::new(format!("config.{name}"), message))
        });
        fault.map_or(Ok(()), Err)
    }

    /// Returns whether a field is sent as a bearer token, and nothing with it.
    fn is_bearer_token(&self, name: &str) -> bool {
        match &self.auth {
            Auth::Bearer { token } => *token == format!("{{{name}}}"),
            Auth::Configurable => name == "token",
            Auth::Basic { .. } | Auth::Header { .. } | Auth::OAuth2(_) => false,
        }
    }
}

/// Returns the fault of a bearer token, in words that follow the name of its field.
fn bearer_token_fault(token: &str) -> Option<&'static str> {
    let scheme = token.split_whitespace().next().unwrap_or_default();
    if scheme.eq_ignore_ascii_case(SCHEME) {
        return Some("must not begin with \"Bearer\": it is put in front of the token");
    }
    if token.contains(['\r', '\n']) {
        return Some("must not have line breaks");
    }
    (token.trim() != token).then_some("must not begin or end with blanks")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::entry;

    /// Returns the fault of a config; empty where there is none.
    fn fault(id: &str, given: serde_json::Value) -> String {
        let given = given.as_object().unwrap();
        let checked = entry(id).unwrap().check_bearer_tokens(given);
        let fault = checked.err();
        fault.map_or_else(String::new, |fault| {
            format!("{} {}", fault.field, fault.message)
        })
    }

    #[test]
    fn refuses_a_token_with_its_scheme_in_any_case() {
        let scheme = "config.token must not begin with \"Bearer\": it is put in front of the token";
        for token in [
            "Bearer abcdef",
            "bearer abc",
            "BEARER\tabc",
            " Bearer abc",
            "Bearer",
        ] {
            assert_eq!(
                fault("http", json!({ "token": token })),
                scheme,
                "{token:?}"
            );
        }
    }

    #[test]
    fn refuses_blanks_at_the_ends_and_line_breaks() {
        let blanks = "config.token must not begin or end with blanks";
        for token in [" abc", "abc ", "\tabc", "abc\u{a0}"] {
            assert_eq!(
                fault("http", json!({ "token": token })),
                blanks,
                "{token:?}"
            );
        }
        for token in ["abc\n", "\r\nabc", "a\nb"] {
            let found = fault("http", json!({ "token": token }));
            assert_eq!(found, "config.token must not have line breaks", "{token:?}");
        }
    }

    #[test]
    fn checks_the_token_of_every_entry_that_sends_one() {
        for (id, field) in [
            ("airtable", "access_token"),
            ("github", "token"),
            ("notion", "integration_token"),
            ("stripe", "secret_key"),
        ] {
            let found = fault(id, json!({ field: "Bearer abc" }));
            assert!(
                found.starts_with(&format!("config.{field} ")),
                "{id}: {found}"
            );
        }
    }

    #[test]
    fn accepts_other_tokens_and_other_fields() {
        for given in [
            json!({ "token": "abc" }),
            json!({ "token": "bearer-of-news" }),
            json!({ "token": "Bearerabc" }),
            json!({ "token": null }),
            json!({ "api_key": "Bearer abc" }),
            json!({ "headers": { "X-Token": "Bearer abc" } }),
        ] {
            assert_eq!(fault("http", given.clone()), "", "{given}");
        }
    }

    #[test]
    fn does_not_show_the_token() {
        let found = fault("http", json!({ "token": "Bearer hush" }));
        assert!(!found.contains("hush"), "{found}");
    }
}
