//! Published APIs that call a flow: neither the flow nor what their responses read of it is taken
//! from them.

use kanat_flow::definition::Trigger;
use kanat_flow::{
    Definition, Diagnostic, ResponseScope, ResponseTexts, Severity, parse_stored_response,
};
use kanat_model::id::FlowId;
use kanat_model::published_api::version_label;
use kanat_model::{Error, Result};
use kanat_store::Db;
use kanat_store::flow::Flow;
use kanat_store::published_api::uses::{self, CallingVersion};
use kanat_store::published_api::version::Content;

use super::answer_fields::AnswerFields;

/// Refuses to take a flow from the APIs that call it.
pub async fn refuse(db: &mut Db, flow: &Flow, consequence: &str) -> Result<()> {
    match called_by(&uses::callers(db, &flow.id).await?) {
        None => Ok(()),
        Some(called) => Err(Error::precondition(format!(
            "flow {:?} {called}; {consequence}",
            flow.name
        ))),
    }
}

/// Returns why the definition cannot be deployed as that of `flow`: an API could not call it any
/// more, or its response would lack a value.
pub async fn deploy_refusal(
    db: &mut Db,
    flow: &Flow,
    definition: &Definition,
) -> Result<Option<Error>> {
    let faults = faults(db, &flow.id, definition).await?;
    let refused = || Error::precondition(format!("flow {:?} {}", flow.name, faults.join("; ")));
    Ok((!faults.is_empty()).then(refused))
}

/// Returns an error for each reason of a [`deploy_refusal`], and a warning for each version whose
/// schema of answers the mapping of the flow cannot fit.
pub async fn findings(
    db: &mut Db,
    flow: &FlowId,
    definition: &Definition,
) -> Result<Vec<Diagnostic>> {
    let diagnostic = |severity: Severity| {
        move |fault: String| Diagnostic {
            severity,
            message: format!("the flow {fault}"),
            path: String::new(),
            line: 1,
            column: 1,
        }
    };
    let Some(versions) = versions_that_may_call(db, flow, definition).await? else {
        let taken = taken(db, flow).await?.into_iter();
        return Ok(taken.map(diagnostic(Severity::Error)).collect());
    };
    let refusals = lost_values(&versions, definition).into_iter();
    let unfit = unfit_answers(&versions, definition).await?.into_iter();
    let unfit = unfit.map(diagnostic(Severity::Warning));
    let refusals = refusals.map(diagnostic(Severity::Error));
    Ok(refusals.chain(unfit).collect())
}

/// Returns why answers of versions that give the mapping of the flow never fit their schemas.
async fn unfit_answers(
    versions: &[CallingVersion],
    definition: &Definition,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for version in versions {
        let schema = version.content.response_schema.clone();
        let Some(schema) = schema.filter(|_| version.strict_response) else {
            continue;
        };
        let Some(fields) = AnswerFields::of_flow(&version.content, definition) else {
            continue;
        };
        let warnings = fields.warnings(schema).await?;
        faults.extend(warnings.into_iter().map(|warning| {
            format!(
                "is called by version {} of published API {:?}: {warning}",
                version_label(version.number),
                version.api_name
            )
        }));
    }
    Ok(faults)
}

async fn faults(db: &mut Db, flow: &FlowId, definition: &Definition) -> Result<Vec<String>> {
    match versions_that_may_call(db, flow, definition).await? {
        Some(versions) => Ok(lost_values(&versions, definition)),
        None => Ok(taken(db, flow).await?.into_iter().collect()),
    }
}

/// Returns the versions that call the flow; `None` for a definition that no API can call.
async fn versions_that_may_call(
    db: &mut Db,
    flow: &FlowId,
    definition: &Definition,
) -> Result<Option<Vec<CallingVersion>>> {
    match definition.source.trigger {
        Trigger::Api => Ok(Some(uses::calling_versions(db, flow).await?)),
        _ => Ok(None),
    }
}

/// Returns why the flow cannot get a definition that no API can call, if an API calls it.
async fn taken(db: &mut Db, flow: &FlowId) -> Result<Option<String>> {
    let called = called_by(&uses::callers(db, flow).await?);
    Ok(called.map(|called| format!("{called}; its trigger stays api")))
}

fn lost_values(versions: &[CallingVersion], definition: &Definition) -> Vec<String> {
    let scope = ResponseScope::from(definition);
    let lost = |version| lost_value(version, &scope);
    versions.iter().filter_map(lost).collect()
}

/// Returns the texts of a version from which its response is made.
pub fn response_texts(content: &Content) -> ResponseTexts<'_> {
    ResponseTexts {
        mapping: content.response_mapping.as_deref(),
        status: content.response_status.as_deref(),
        headers: content.response_headers.as_deref(),
    }
}

fn called_by(callers: &[String]) -> Option<String> {
    (!callers.is_empty()).then(|| format!("is called by published APIs: {}", callers.join(", ")))
}

/// Returns the first value of the version's response that a flow of this scope does not have.
fn lost_value(version: &CallingVersion, scope: &ResponseScope) -> Option<String> {
    let texts = response_texts(&version.content);
    let faults = parse_stored_response(&texts, Some(scope)).err()?;
    let fault = faults.first()?;
    Some(format!(
        "is called by published API {:?}, of which version {} reads what the definition does not \
         have ({}: {}); change its response first",
        version.api_name,
        version_label(version.number),
        fault.path,
        fault.message
    ))
}
