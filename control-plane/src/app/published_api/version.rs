//! Versions of published APIs: each has its schemas, its flow and its answer; the former ones go on
//! until they are ended.

use kanat_engine::Answer;
use kanat_flow::{Response, parse_response, parse_stored_response};
use kanat_model::id::PublishedApiId;
use kanat_model::published_api::{MAX_VERSION, VersionStatus, version_label, version_number};
use kanat_model::{Code, Error, FieldError, Result, Timestamp};
use kanat_schema::Schema;
use kanat_store::Db;
use kanat_store::flow::{self, Flow};
use kanat_store::published_api::version::{self, Content as Texts, Version};
use kanat_store::published_api::{self, PublishedApi};

use super::content::{CheckedContent, Content};
use super::{ApiView, current, publish, seen, warnings};
use crate::app::audit::{self, VersionOfApi};
use crate::app::flow::{EnvironmentNames, response_scope, response_texts};
use crate::app::{App, Call, ChangeResult, PublishTransaction};

/// A version that was asked for, and all that goes with it.
#[derive(Debug, Clone)]
pub struct SeenVersion {
    pub seen: ApiView,
    pub version: Version,
}

/// Adds an active version. What is left out is as in the current one.
pub async fn create(
    call: &Call,
    id: &PublishedApiId,
    label: &str,
    content: Content,
) -> Result<ChangeResult<SeenVersion>> {
    let content = content.check("schema").await?;
    let mut change = call.change().await?;
    let Some(api) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return answer_repeat(call, change, id, label).await;
    };
    let wrong = || {
        let meant = format!("v{label}");
        let hint = match version_number(&meant) {
            Some(_) => format!("; did you mean {meant:?}?"),
            None => String::new(),
        };
        format!("{label:?} is no label of a version: v1 to v{MAX_VERSION}{hint}")
    };
    let number = version_number(label).ok_or_else(|| Error::field("version", wrong()))?;
    let versions = version::list(&mut change, id).await?;
    if versions.iter().any(|version| version.number == number) {
        return Err(Error::already_exists("version", label));
    }
    let former = current(&versions).cloned().ok_or_else(Error::internal)?;
    let mut made = Version {
        number,
        status: VersionStatus::Active,
        sunset_at: None,
        created_at: Timestamp::now(),
        deprecated_at: None,
        retired_at: None,
        ..former
    };
    write(&call.app, &mut change, &api, &mut made, content).await?;
    version::insert(&mut change, id, &made).await?;
    finish(call, change, api, None, number).await
}

/// Says when a version is to end.
pub async fn deprecate(
    call: &Call,
    id: &PublishedApiId,
    label: &str,
    sunset_date: &str,
) -> Result<ChangeResult<SeenVersion>> {
    let mut change = call.change().await?;
    let Some(api) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return answer_repeat(call, change, id, label).await;
    };
    let mut version = labelled(&mut change, &api, label).await?;
    let before = version.clone();
    let sunset_at = date(sunset_date).ok_or_else(|| {
        Error::field(
            "sunsetDate",
            format!("{sunset_date:?} is no day: give one as in 2026-12-31 (YYYY-MM-DD)"),
        )
    })?;
    version.status = version.status.deprecate()?;
    version.sunset_at = Some(sunset_at);
    version.deprecated_at = version.deprecated_at.or(Some(Timestamp::now()));
    version::update(&mut change, id, &version).await?;
    finish(call, change, api, Some(before), version.number).await
}

/// When a version is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retire {
    AfterItsSunset,
    AtOnce,
}

/// Ends a version: its callers are sent to the current one.
pub async fn retire(
    call: &Call,
    id: &PublishedApiId,
    label: &str,
    when: Retire,
) -> Result<ChangeResult<SeenVersion>> {
    let mut change = call.change().await?;
    let Some(api) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return answer_repeat(call, change, id, label).await;
    };
    let mut version = labelled(&mut change, &api, label).await?;
    let before = version.clone();
    let now = Timestamp::now();
    version.status = match when {
        Retire::AfterItsSunset => version.status.retire(version.sunset_at, now)?,
        Retire::AtOnce => version.status.retire_at_once()?,
    };
    version.retired_at = Some(now);
    version::update(&mut change, id, &version).await?;
    finish(call, change, api, Some(before), version.number).await
}

/// Version `v1` of a new API.
pub async fn first(
    app: &App,
    db: &mut Db,
    api: &PublishedApi,
    content: CheckedContent,
) -> Result<Version> {
    let mut made = Version {
        number: 1,
        status: VersionStatus::Active,
        flow_id: "".into(),
        flow_name: String::new(),
        content: Texts::default(),
        sunset_at: None,
        created_at: api.created_at,
        deprecated_at: None,
        retired_at: None,
    };
    write(app, db, api, &mut made, content).await?;
    Ok(made)
}

/// Changes what the current version takes, calls and answers.
pub async fn change_current(
    app: &App,
    db: &mut Db,
    api: &PublishedApi,
    content: CheckedContent,
) -> Result<()> {
    if content.is_empty() {
        return Ok(());
    }
    let versions = version::list(db, &api.id).await?;
    let mut version = current(&versions).cloned().ok_or_else(Error::internal)?;
    write(app, db, api, &mut version, content).await?;
    Ok(version::update(db, &api.id, &version).await?)
}

/// Checks the answer of the current version of an API that has become strict.
pub async fn check_current(db: &mut Db, api: &PublishedApi) -> Result<()> {
    let versions = version::list(db, &api.id).await?;
    let version = current(&versions).ok_or_else(Error::internal)?;
    let response = parse_stored_response(&response_texts(&version.content), None)
        .map_err(|faults| refused(&faults))?;
    refuse_unfit_string(api, &response, &version.content).await
}

/// Puts what is asked for into a version, when all of it is right.
async fn write(
    app: &App,
    db: &mut Db,
    api: &PublishedApi,
    version: &mut Version,
    asked: CheckedContent,
) -> Result<()> {
    let asked = asked.into_inner();
    let flow = match &asked.flow {
        Some(name) => callable(db, api, name).await?,
        None => callable(db, api, version.flow_id.as_str()).await?,
    };
    version.flow_id = flow.id.clone();
    version.flow_name = flow.name.clone();
    let texts = &mut version.content;
    for (asked, text) in [
        (asked.request_schema, &mut texts.request_schema),
        (asked.response_schema, &mut texts.response_schema),
        (asked.response_mapping, &mut texts.response_mapping),
        (asked.response_status, &mut texts.response_status),
        (asked.response_headers, &mut texts.response_headers),
    ] {
        asked.apply(text);
    }
    // An answer that is built is given: its call waits, whatever the answer looks like.
    if texts.response_mapping.is_some() && texts.response_schema.is_none() {
        texts.response_schema = Some("true".to_owned());
    }
    check_answer(app, db, &flow, texts, api).await
}

/// The flow of that name or id, when APIs can call it.
async fn callable(db: &mut Db, api: &PublishedApi, name: &str) -> Result<Flow> {
    let found = flow::find(db, &api.environment_id, name).await?;
    let found =
        found.ok_or_else(|| Error::field("flowName", format!("there is no flow {name:?}")))?;
    if found.trigger_kind != "api" {
        let message = format!(
            "the flow {:?} has the trigger {}; APIs call flows with the trigger api",
            found.name, found.trigger_kind
        );
        return Err(Error::field("flowName", message));
    }
    Ok(found)
}

/// Checks an answer, which reads the draft of the flow or what is deployed of it.
async fn check_answer(
    app: &App,
    db: &mut Db,
    flow: &Flow,
    texts: &Texts,
    api: &PublishedApi,
) -> Result<()> {
    let scope = response_scope(app, db, flow).await?;
    let response =
        parse_response(&response_texts(texts), &scope).map_err(|faults| refused(&faults))?;
    let names = EnvironmentNames::load(db, &flow.environment_id).await?;
    let missing = response.check_names(&names);
    if !missing.is_empty() {
        return Err(refused(&missing));
    }
    refuse_unfit_string(api, &response, texts).await?;
    // By the compiler that nodes have, too: one that refused it would refuse the whole API.
    match response.to_plan().as_ref().map(Answer::compile) {
        Some(Err(error)) => Err(Error::field("responseMapping", error.to_string())),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Refuses an answer that is always a string under a schema that accepts none: every call would run
/// the flow, and then get 502.
async fn refuse_unfit_string(api: &PublishedApi, response: &Response, texts: &Texts) -> Result<()> {
    let is_judged = api.strict_response && response.body_is_always_string();
    let Some(schema) = texts.response_schema.clone().filter(|_| is_judged) else {
        return Ok(());
    };
    let refuses = move || Schema::compile(&schema).is_ok_and(|schema| schema.refuses_strings());
    let refuses = tokio::task::spawn_blocking(refuses).await;
    if !refuses.map_err(|_| Error::internal())? {
        return Ok(());
    }
    let message = "is a text for every call, and the responseSchema of the version accepts no \
                   text: give an object such as {\"id\": \"source.id\"}, or a whole expression \
                   such as \"source\"";
    Err(Error::field("responseMapping", message))
}

fn refused(faults: &[kanat_flow::Diagnostic]) -> Error {
    let details: Vec<_> = faults
        .iter()
        .map(|fault| FieldError::new(&fault.path, &fault.message))
        .collect();
    match faults {
        [only] => Error::field(&only.path, &only.message),
        many => Error::invalid(
            format!("the answer is wrong in {} places", many.len()),
            details,
        ),
    }
}

/// The version of an API with that label.
async fn labelled(db: &mut Db, api: &PublishedApi, label: &str) -> Result<Version> {
    let versions = version::list(db, &api.id).await?;
    let found = versions
        .into_iter()
        .find(|version| version_label(version.number) == label);
    let missing = || {
        Error::new(
            Code::NotFound,
            format!("published API {:?} has no version {label:?}", api.name),
        )
        .with_resource("published API", &api.name)
    };
    found.ok_or_else(missing)
}

/// Answers a call that has made its change of a version before a crash.
async fn answer_repeat(
    call: &Call,
    mut change: PublishTransaction<'_>,
    id: &PublishedApiId,
    label: &str,
) -> Result<ChangeResult<SeenVersion>> {
    let api = call.existing(&mut change, id).await?;
    let version = labelled(&mut change, &api, label).await?;
    let seen = seen(&call.app, &mut change, api).await?;
    change.answer_repeat(SeenVersion { seen, version }).await
}

async fn finish(
    call: &Call,
    mut change: PublishTransaction<'_>,
    mut api: PublishedApi,
    before: Option<Version>,
    number: u32,
) -> Result<ChangeResult<SeenVersion>> {
    api.updated_at = Timestamp::now();
    published_api::update(&mut change, &mut api).await?;
    let seen = publish::api(&mut change, api).await?;
    let version = seen
        .versions
        .iter()
        .find(|version| version.number == number)
        .cloned();
    let version = version.ok_or_else(Error::internal)?;
    let of_api = |version| VersionOfApi {
        api: &seen.api,
        version,
    };
    match &before {
        None => audit::created(call, &mut change, &of_api(&version)).await?,
        Some(before) => {
            audit::updated(call, &mut change, &of_api(before), &of_api(&version)).await?;
        }
    }
    let done = warnings::commit(change, seen, number).await?;
    Ok(done.map(|seen| SeenVersion { seen, version }))
}

/// 00:00 UTC of a day written as `YYYY-MM-DD`.
fn date(text: &str) -> Option<Timestamp> {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    if shape != "0000-00-00" {
        return None;
    }
    Timestamp::parse(&format!("{text}T00:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sunset_is_a_day() {
        assert_eq!(
            date("2026-12-31").unwrap().to_string(),
            "2026-12-31T00:00:00.000Z"
        );
        assert_eq!(
            date("1999-01-01").unwrap().to_string(),
            "1999-01-01T00:00:00.000Z"
        );
        assert!(date("2028-02-29").is_some());
        for wrong in [
            "",
            "2026-02-30",
            "2026-13-01",
            "31.12.2026",
            "2026-12-31T00:00:00Z",
            "26-12-31",
            "tomorrow",
        ] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }
}
