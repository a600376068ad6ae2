//! Dry runs of deploys and rollbacks: the service checks a definition that it keeps already.

use anyhow::Result;
use kanat_flow::Severity;
use serde_json::json;

use super::diagnostics;
use crate::commands::Session;
use crate::exit::failure;
use crate::output::Json;

/// Prints the faults of a definition that would be put into service. `holder` is the flow or the
/// version that has it, and `name` is what it is called.
///
/// # Errors
///
/// When the service would refuse to deploy the definition.
pub async fn check(session: &Session, name: &str, holder: &Json) -> Result<()> {
    let text = holder.text("yamlConfig");
    let body = json!({ "yamlConfig": text });
    let answer = session.client.check("/flows/validate", &body).await?;
    refuse(name, &text, &answer)?;
    let warnings = diagnostics::faults(&answer, "warnings");
    if !warnings.is_empty() {
        diagnostics::complain(name, &text, &warnings);
    }
    Ok(())
}

/// Prints the faults of the definition of `text` for which its deploy would be refused, by an
/// answer that has them.
///
/// # Errors
///
/// There are some.
pub fn refuse(name: &str, text: &str, answer: &Json) -> Result<()> {
    let refusals = diagnostics::refusals(answer, Severity::Error);
    if refusals.is_empty() {
        return Ok(());
    }
    diagnostics::complain(name, text, &refusals);
    let count = diagnostics::counted(refusals.len());
    Err(failure(format!("{name} has {count}")))
}
