//! Scheme `meta`: the challenge on GET. POST has the hub's signature, as GitHub's does.

use subtle::ConstantTimeEq;
use url::form_urlencoded;

use super::{Credentials, Refusal};

/// The text that answers `GET ?hub.mode=subscribe&hub.verify_token=...&hub.challenge=...`.
pub(crate) fn challenge(credentials: &Credentials, query: &str) -> Result<String, Refusal> {
    let parameter = |name: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.into_owned())
            .ok_or_else(|| Refusal::Missing(format!("query parameter {name}")))
    };
    let expected = credentials.verify_token()?;
    let token = parameter("hub.verify_token")?;
    let challenge = parameter("hub.challenge")?;
    if parameter("hub.mode")? != "subscribe" {
        return Err(Refusal::Wrong);
    }
    if expected.expose().as_bytes().ct_eq(token.as_bytes()).into() {
        Ok(challenge)
    } else {
        Err(Refusal::Wrong)
    }
}
