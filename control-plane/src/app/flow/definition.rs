//! Definitions that callers send: what is wrong with them, in the words of an error; and how they
//! are kept. One with a secret that is written out is sealed, and stands masked beside its seal.

use std::borrow::Cow;
use std::collections::HashMap;

use kanat_auth::Sealer;
use kanat_flow::{Definition, Diagnostic};
use kanat_model::id::FlowId;
use kanat_model::{Error, FieldError, Result};
use kanat_script::apart;
use kanat_store::flow::{self, Flow};
use kanat_store::flow_use::User;
use kanat_store::flow_version::FlowVersion;
use kanat_store::meta;

use crate::app::App;

/// The bytes of a definition that takes long to check.
const LARGE: usize = 64 * 1024;

/// A definition as the store has it.
#[derive(Debug, Clone, Copy)]
pub struct StoredDefinition<'r> {
    flow_id: &'r FlowId,
    masked: &'r str,
    sealed: Option<&'r [u8]>,
}

impl<'r> From<&'r Flow> for StoredDefinition<'r> {
    fn from(flow: &'r Flow) -> Self {
        Self {
            flow_id: &flow.id,
            masked: &flow.yaml_config,
            sealed: flow.sealed_config.as_deref(),
        }
    }
}

impl<'r> From<&'r FlowVersion> for StoredDefinition<'r> {
    fn from(version: &'r FlowVersion) -> Self {
        Self {
            flow_id: &version.flow_id,
            masked: &version.yaml_config,
            sealed: version.sealed_config.as_deref(),
        }
    }
}

impl<'r> From<&'r User> for StoredDefinition<'r> {
    fn from(user: &'r User) -> Self {
        Self {
            flow_id: &user.flow_id,
            masked: &user.yaml_config,
            sealed: user.sealed_config.as_deref(),
        }
    }
}

/// Returns the text of a definition as it was written.
pub fn text<'r>(sealer: &Sealer, stored: impl Into<StoredDefinition<'r>>) -> Result<Cow<'r, str>> {
    let StoredDefinition {
        flow_id,
        masked,
        sealed,
    } = stored.into();
    let Some(sealed) = sealed else {
        return Ok(masked.into());
    };
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(
            flow.id = %flow_id,
            error = %error,
            "the definition of a flow cannot be read",
        );
        Error::internal()
    };
    let plain = sealer
        .open(sealed, &seal_context(flow_id))
        .map_err(|error| failed(&error))?;
    String::from_utf8(plain)
        .map(Cow::Owned)
        .map_err(|_| failed(&"it is no text"))
}

/// Returns a definition that the store has, which was checked when it was stored.
pub fn stored<'r>(sealer: &Sealer, stored: impl Into<StoredDefinition<'r>>) -> Result<Definition> {
    kanat_flow::parse_stored(&text(sealer, stored)?).map_err(|faults| wrong(&faults))
}

/// Returns a definition that the store has, checked anew: builds before may have known fewer
/// faults.
pub fn checked<'r>(sealer: &Sealer, stored: impl Into<StoredDefinition<'r>>) -> Result<Definition> {
    parse(&text(sealer, stored)?)
}

/// Returns whether the description of a flow is that of its definition.
pub fn describes(sealer: &Sealer, flow: &Flow) -> bool {
    stored(sealer, flow).is_ok_and(|definition| {
        kanat_flow::text_without_secrets(&definition, &definition.description) == flow.description
    })
}

/// Gives a flow another draft. A description that repeats a secret of it is kept without.
pub fn keep(sealer: &Sealer, flow: &mut Flow, yaml: String, definition: &Definition) {
    flow.description = kanat_flow::text_without_secrets(definition, &flow.description);
    match kanat_flow::without_secrets(&yaml, definition) {
        Some(masked) => {
            flow.sealed_config = Some(sealer.seal(yaml.as_bytes(), &seal_context(&flow.id)));
            flow.yaml_config = masked;
        }
        None => {
            flow.sealed_config = None;
            flow.yaml_config = yaml;
        }
    }
}

/// The mark of a store whose definitions of former builds were looked through. It has another
/// number for each build that knows more secrets.
const SEALED: &str = "literal_secrets_2";

/// Definitions that are looked through at a time.
const PAGE: u32 = 100;

/// Seals what earlier builds kept in the clear: definitions with secrets that are written out. Once
/// for a store.
pub async fn seal_all(app: &App) -> Result<()> {
    if meta::get(&mut *app.store.read().await?, SEALED)
        .await?
        .is_some()
    {
        return Ok(());
    }
    let _active = app.master_keys.calls.begin();
    let mut after = (FlowId::from(""), 0);
    // The same text has the same seal: what is deployed is no draft.
    let mut seals: HashMap<String, Vec<u8>> = HashMap::new();
    loop {
        let page = flow::unsealed(&mut *app.store.read().await?, (&after.0, after.1), PAGE).await?;
        let Some(last) = page.last() else { break };
        let end = (last.flow_id.clone(), i64::from(last.version));
        for plain in page {
            if plain.flow_id != after.0 {
                seals.clear();
                after.0 = plain.flow_id.clone();
            }
            let Ok(definition) = parse(&plain.yaml_config) else {
                continue;
            };
            let Some(masked) = kanat_flow::without_secrets(&plain.yaml_config, &definition) else {
                continue;
            };
            let seal = || {
                app.sealer
                    .seal(plain.yaml_config.as_bytes(), &seal_context(&plain.flow_id))
            };
            let sealed = seals.entry(plain.yaml_config.clone()).or_insert_with(seal);
            let mut tx = app.store.begin().await?;
            flow::seal(&mut tx, &plain, &masked, sealed).await?;
            tx.commit().await?;
        }
        after = end;
    }
    let mut tx = app.store.begin().await?;
    meta::set(&mut tx, SEALED, "sealed").await?;
    Ok(tx.commit().await?)
}

/// The context under which a definition at rest is sealed.
pub fn seal_context(flow: &FlowId) -> String {
    format!("definition/{flow}")
}

/// A definition that is right in itself. Errors name all that is wrong.
pub fn parse(yaml: &str) -> Result<Definition> {
    check_storable(yaml)?;
    kanat_flow::parse(yaml).map_err(|faults| wrong(&faults))
}

/// A definition that a caller sends, checked as [`parse`] does and without holding up others.
pub async fn parse_sent(yaml: &str) -> Result<Definition> {
    check_storable(yaml)?;
    check_sent(yaml).await.map_err(|faults| wrong(&faults))
}

/// Parses and checks a definition that a caller sends.
pub async fn check_sent(yaml: &str) -> Result<Definition, Vec<Diagnostic>> {
    if yaml.len() < LARGE {
        return kanat_flow::parse(yaml);
    }
    apart::apart(|| kanat_flow::parse(yaml)).await
}

/// Refuses a text that PostgreSQL cannot store.
fn check_storable(yaml: &str) -> Result<()> {
    if yaml.contains('\0') {
        return Err(Error::field(
            "yamlConfig",
            "must not contain a NUL character",
        ));
    }
    Ok(())
}

fn wrong(faults: &[Diagnostic]) -> Error {
    invalid("the definition is wrong", faults)
}

/// One detail a diagnostic: its field is the path in the definition, its message begins with line
/// and column.
pub fn invalid(message: &str, faults: &[Diagnostic]) -> Error {
    let details = faults.iter().map(|fault| {
        let field = if fault.path.is_empty() {
            "yamlConfig"
        } else {
            &fault.path
        };
        FieldError::new(
            field,
            format!(
                "line {}, column {}: {}",
                fault.line, fault.column, fault.message
            ),
        )
    });
    let summary = match faults {
        [only] => format!("{message}: {only}"),
        many => format!("{message} in {} places", many.len()),
    };
    Error::invalid(summary, details.collect())
}

#[cfg(test)]
mod tests {
    use kanat_flow::Severity;

    use super::*;

    #[test]
    fn every_fault_is_a_detail_with_path_and_place() {
        let fault = |path: &str, line| Diagnostic {
            severity: Severity::Error,
            message: "unknown key".to_owned(),
            path: path.to_owned(),
            line,
            column: 3,
        };
        let error = invalid(
            "the definition is wrong",
            &[fault("maping", 4), fault("", 1)],
        );
        let details: Vec<_> = error
            .details
            .iter()
            .map(|d| (d.field.as_str(), d.message.as_str()))
            .collect();
        assert_eq!(
            details,
            [
                ("maping", "line 4, column 3: unknown key"),
                ("yamlConfig", "line 1, column 3: unknown key"),
            ]
        );
        assert_eq!(error.message, "the definition is wrong in 2 places");
    }
}
