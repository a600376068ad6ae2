//! What a definition may say and nodes cannot run yet.

use crate::definition::{Definition, Trigger};

/// What in the definition cannot be run by this version, in plain words; `None` when all of it can.
pub fn unsupported(definition: &Definition) -> Option<String> {
    let what = match &definition.source.trigger {
        Trigger::Api => format!("flows with the trigger {}", definition.source.trigger.as_str()),
        Trigger::Webhook { .. } | Trigger::Schedule(_) | Trigger::Poll(_) | Trigger::Manual => return None,
    };
    Some(format!("{what} cannot be deployed yet: this version of Kanat does not run them"))
}
