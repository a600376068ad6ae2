//! Scheme `basic`: user name and password of HTTP's basic authentication.

use subtle::ConstantTimeEq;

use super::signature::from_base64;
use super::{Credentials, Inbound, Refusal};

pub(super) fn check(
    credentials: &Credentials,
    inbound: &Inbound<'_>,
) -> Result<Option<String>, Refusal> {
    let (username, password) = credentials.basic()?;
    let header = inbound.header("authorization")?;
    let (scheme, encoded) = header.split_once(' ').ok_or(Refusal::Wrong)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(Refusal::Wrong);
    }
    let given = from_base64(encoded.trim()).map_err(|_| Refusal::Wrong)?;
    let mut parts = given.splitn(2, |byte| *byte == b':');
    let user = parts.next().unwrap_or_default();
    let pass = parts.next().ok_or(Refusal::Wrong)?;
    let same = username.expose().as_bytes().ct_eq(user) & password.expose().as_bytes().ct_eq(pass);
    if same.into() {
        Ok(None)
    } else {
        Err(Refusal::Wrong)
    }
}
