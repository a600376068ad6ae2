//! Schemes `hmac-sha256`, `hmac-sha1` and `hmac-sha512`: a digest of the body in a header.

use ::hmac::EagerHash;
use kanat_model::Secret;
use kanat_proto::plan::v1::Verify;

use super::signature::{from_base64, from_hex, matches, plain};
use super::{Inbound, Refusal};

const DEFAULT_HEADER: &str = "x-signature";

pub(super) fn check<D: EagerHash>(
    verify: &Verify,
    secrets: &[Secret<String>],
    inbound: &Inbound<'_>,
) -> Result<Option<String>, Refusal> {
    let header = if verify.header.is_empty() {
        DEFAULT_HEADER
    } else {
        &verify.header
    };
    let text = inbound.header(header)?.trim();
    let text = text.strip_prefix(&verify.prefix).ok_or(Refusal::Wrong)?;
    let signature = if verify.encoding == "base64" {
        from_base64(text)?
    } else {
        from_hex(text)?
    };
    matches::<D>(plain(secrets), &[inbound.body], &[signature])?;
    Ok(None)
}
