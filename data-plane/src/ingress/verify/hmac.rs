//! Schemes `hmac-sha256`, `hmac-sha1` and `hmac-sha512`: a digest of the body in a header.

use ::hmac::EagerHash;
use kanat_proto::plan::v1::Verify;

use super::signature::{from_base64, from_hex};
use super::{Refusal, SignedRequest};

const DEFAULT_HEADER: &str = "x-signature";

pub(super) fn check<D: EagerHash>(
    verify: &Verify,
    signed: &SignedRequest<'_>,
) -> Result<Option<String>, Refusal> {
    let header = if verify.header.is_empty() {
        DEFAULT_HEADER
    } else {
        &verify.header
    };
    let text = signed.inbound.header(header)?.trim();
    let text = text.strip_prefix(&verify.prefix).ok_or(Refusal::NoPrefix)?;
    let signature = if verify.encoding == "base64" {
        from_base64(text)
    } else {
        from_hex(text)
    };
    let signature = signature.map_err(|refusal| {
        if verify.prefix.is_empty() && has_prefix(text) {
            Refusal::UnknownPrefix
        } else {
            refusal
        }
    })?;
    signed.matches::<D>(&[signed.inbound.body], &[signature])?;
    Ok(None)
}

/// Returns whether a name such as `sha256=` or `v1:` stands before the rest of a text.
fn has_prefix(text: &str) -> bool {
    text.split_once(['=', ':']).is_some_and(|(name, rest)| {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_name && !rest.trim_matches('=').is_empty()
    })
}
