//! Credentials in a request: masked in the message log, and sealed beside the message for a flow
//! that reads them, so that a retry reads the same values on any node.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use kanat_engine::Program;
use kanat_engine::trigger::{self, InboundRequest, SEALED, sealing_context};
use kanat_mapping::json;
use kanat_message_log::key;

use crate::plans::{Environment, Runnable};

/// Value of `trigger` in expressions.
pub(crate) struct Document {
    /// Form in the message log, with credentials masked.
    pub kept: Bytes,
    /// Form that the flow reads.
    pub seen: Bytes,
}

/// Document of a message that is run, with its credentials open.
pub(crate) struct OpenTrigger {
    pub trigger: Bytes,
    /// Texts of the document that must not be shown.
    pub secrets: Vec<String>,
}

/// The credentials of a request were sealed under a key that is not available.
#[derive(Debug, thiserror::Error)]
#[error(
    "the credentials of the request cannot be read: they are sealed under another key than the \
     environment's"
)]
pub(crate) struct Unreadable;

impl Document {
    /// Returns a key of the message in the form that may be stored: hashed when it contains a
    /// credential.
    pub fn key(&self, key: String) -> String {
        let is_clear = self.kept.as_ptr() != self.seen.as_ptr();
        if is_clear {
            key::without_credentials(key, &trigger::credentials(&self.seen))
        } else {
            key
        }
    }
}

/// Returns the document of a request.
pub(crate) fn document(runnable: &Runnable, received: &InboundRequest<'_>) -> Document {
    let masked = trigger::document(received);
    let reads = runnable.flow.program.reads_credentials();
    let sealer = runnable.environment.sealer().filter(|_| reads);
    let sealable =
        sealer.and_then(|sealer| Some((sealer, trigger::document_with_credentials(received)?)));
    let Some((sealer, clear)) = sealable else {
        let kept = Bytes::from(masked);
        return Document {
            seen: kept.clone(),
            kept,
        };
    };
    let sealed =
        STANDARD_NO_PAD.encode(sealer.seal(&clear, &sealing_context(&runnable.environment.id)));
    let mut kept = masked;
    kept.pop();
    kept.extend_from_slice(format!(",\"{SEALED}\":\"{sealed}\"}}").as_bytes());
    Document {
        kept: kept.into(),
        seen: clear.into(),
    }
}

/// Returns the document of a message as its flow reads it.
///
/// # Errors
/// It was sealed under a key that is not at hand.
pub(crate) fn open(
    program: &Program,
    environment: &Environment,
    kept: &Bytes,
) -> Result<OpenTrigger, Unreadable> {
    let text = std::str::from_utf8(kept).unwrap_or_default();
    let sealed = if program.reads_credentials() {
        json::member(text, SEALED)
    } else {
        None
    };
    let Some(sealed) = sealed else {
        return Ok(OpenTrigger {
            trigger: kept.clone(),
            secrets: Vec::new(),
        });
    };
    let sealed = STANDARD_NO_PAD
        .decode(json::decode(sealed).as_bytes())
        .map_err(|_| Unreadable)?;
    let sealer = environment.sealer().ok_or(Unreadable)?;
    let clear = sealer
        .open(&sealed, &sealing_context(&environment.id))
        .map_err(|_| Unreadable)?;
    Ok(OpenTrigger {
        secrets: trigger::credentials(&clear),
        trigger: clear.into(),
    })
}
