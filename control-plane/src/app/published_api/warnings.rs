//! Warnings about schemas that no call of a version can satisfy.

use kanat_model::published_api::{Path, Validation};
use kanat_model::{Error, Result};
use kanat_schema::Schema;
use kanat_store::flow;
use kanat_store::published_api::PublishedApi;
use kanat_store::published_api::version::Version;

use super::ApiView;
use crate::app::flow::{AnswerFields, definition, quoted};
use crate::app::{ChangeResult, PublishTransaction};

/// Commits the change of an API, and warns about the schemas of the version that was written. They
/// are compiled after the commit: that may take long, and other changes would wait for it.
pub async fn commit(
    mut change: PublishTransaction<'_>,
    seen: ApiView,
    number: u32,
) -> Result<ChangeResult<ApiView>> {
    let version = seen
        .versions
        .iter()
        .find(|version| version.number == number);
    let version = version.cloned().ok_or_else(Error::internal)?;
    let answer = judged_answer(&mut change, &seen.api, &version).await?;
    let mut done = change.commit(seen).await?;
    let request = judged_parameters(&done.value.api, &version);
    if let Some((schema, parameters)) = request {
        let refused = move || refused_parameters(&schema, &parameters);
        let refused = tokio::task::spawn_blocking(refused).await;
        let refused = refused.map_err(|_| Error::internal())?;
        done.value.warnings.extend(refused);
    }
    if let Some((schema, fields)) = answer {
        done.value.warnings.extend(fields.warnings(schema).await?);
    }
    Ok(done)
}

/// Returns the schema that answers of the version have to fit, and the fields that they have.
async fn judged_answer(
    change: &mut PublishTransaction<'_>,
    api: &PublishedApi,
    version: &Version,
) -> Result<Option<(String, AnswerFields)>> {
    let schema = version.content.response_schema.clone();
    let Some(schema) = schema.filter(|_| api.strict_response) else {
        return Ok(None);
    };
    let sealer = &change.app.sealer;
    let flow = flow::get(change, &api.environment_id, &version.flow_id).await?;
    let definition = flow.and_then(|flow| definition::stored(sealer, &flow).ok());
    let fields = definition.and_then(|found| AnswerFields::of(&version.content, &found));
    Ok(fields.map(|fields| (schema, fields)))
}

/// Returns the schema that requests have to fit, and the parameters of the path that are part of
/// each.
fn judged_parameters(api: &PublishedApi, version: &Version) -> Option<(String, Vec<String>)> {
    let is_judged = api.validation == Validation::Strict && !api.method.has_body();
    let schema = version.content.request_schema.clone();
    let path = Path::parse(&api.path).ok()?;
    let parameters = path.parameters().into_iter().map(str::to_owned).collect();
    schema
        .filter(|_| is_judged)
        .map(|schema| (schema, parameters))
}

fn refused_parameters(schema: &str, parameters: &[String]) -> Option<String> {
    let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let schema = Schema::compile(schema).ok()?;
    quoted(&schema.refused_members(&parameters)).map(|names| {
        format!(
            "the schema of requests does not allow {names}, which the path adds to the input of \
             GET and DELETE: each call gets 422"
        )
    })
}
