//! Credentials that a request came with: masked in what the message log keeps, and sealed beside it
//! for a flow that reads them, so that a retry reads what the first attempt read, wherever it runs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use kanat_engine::Program;
use kanat_engine::trigger::{self, Received};
use kanat_mapping::json;
use kanat_model::id::EnvironmentId;
use sha2::{Digest, Sha256};

use crate::plans::{Environment, Runnable};

/// The member of the document that has the sealed one.
const SEALED: &str = "sealed";

/// The document that expressions see as `trigger`.
pub(crate) struct Document {
    /// As the message log keeps it.
    pub kept: Bytes,
    /// As the flow reads it.
    pub seen: Bytes,
}

/// The document of a message that is run.
pub(crate) struct Opened {
    pub trigger: Bytes,
    /// Texts of it that may not show.
    pub secrets: Vec<String>,
}

/// The credentials of a request were sealed under a key that is not at hand.
#[derive(Debug, thiserror::Error)]
#[error(
    "the credentials of the request cannot be read: they are sealed under another key than the \
     environment's"
)]
pub(crate) struct Unreadable;

impl Document {
    /// Returns a key that was made of it as it may be kept: one with a credential in it as its
    /// hash.
    pub fn key(&self, key: String) -> String {
        let is_clear = self.kept.as_ptr() != self.seen.as_ptr();
        let has_credential = is_clear
            && trigger::credentials(&self.seen)
                .iter()
                .any(|secret| key.contains(secret));
        if has_credential {
            hex::encode(Sha256::digest(key.as_bytes()))
        } else {
            key
        }
    }
}

/// Returns the document of a request.
pub(crate) fn document(runnable: &Runnable, received: &Received<'_>) -> Document {
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
    let sealed = STANDARD_NO_PAD.encode(sealer.seal(&clear, &context(&runnable.environment.id)));
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
) -> Result<Opened, Unreadable> {
    let text = std::str::from_utf8(kept).unwrap_or_default();
    let sealed = if program.reads_credentials() {
        json::member(text, SEALED)
    } else {
        None
    };
    let Some(sealed) = sealed else {
        return Ok(Opened {
            trigger: kept.clone(),
            secrets: Vec::new(),
        });
    };
    let sealed = STANDARD_NO_PAD
        .decode(json::decode(sealed).as_bytes())
        .map_err(|_| Unreadable)?;
    let sealer = environment.sealer().ok_or(Unreadable)?;
    let clear = sealer
        .open(&sealed, &context(&environment.id))
        .map_err(|_| Unreadable)?;
    Ok(Opened {
        secrets: trigger::credentials(&clear),
        trigger: clear.into(),
    })
}

fn context(environment: &EnvironmentId) -> String {
    format!("trigger/{environment}")
}
