//! Use-cases of published APIs. Every change publishes the API whole, with all of its versions:
//! nodes swap it at once.

mod check;
mod content;
pub mod document;
mod publish;
pub mod version;
mod warnings;

use kanat_model::id::PublishedApiId;
use kanat_model::page::{ListPage, Page};
use kanat_model::published_api::{Cors, OAuth2, OnTimeout, Validation, VersionStatus};
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_plan_stream::Kind;
use kanat_store::published_api::version::Version;
use kanat_store::published_api::{self, PublishedApi, uses};
use kanat_store::{Db, consumer_key, environment};

use crate::app::audit::WholeApi;
use crate::app::{App, Call, ChangeResult, audit, name, resource};
pub use content::Content;

resource!(
    "published API",
    PublishedApiId,
    PublishedApi,
    published_api::get,
    environment_id,
    revision
);

/// An API to be published.
#[derive(Debug, Default)]
pub struct NewPublishedApi {
    /// Method and path when left out.
    pub name: Option<String>,
    pub description: String,
    pub path: String,
    /// `POST` when left out.
    pub method: Option<String>,
    /// `api_key` when left out.
    pub auth: Option<String>,
    pub oauth2: Option<OAuth2>,
    /// `strict` when left out.
    pub validation: Option<String>,
    /// `30s` when left out.
    pub deadline: Option<String>,
    /// `continue` when left out.
    pub on_timeout: Option<String>,
    pub strict_response: bool,
    pub cors: Option<Cors>,
    /// Content of version `v1`.
    pub content: Content,
}

/// Fields that an update changes; a field that is left out stays.
#[derive(Debug, Default)]
pub struct Update {
    pub name: Option<String>,
    pub description: Option<String>,
    pub path: Option<String>,
    pub method: Option<String>,
    pub auth: Option<String>,
    pub oauth2: Option<OAuth2>,
    pub validation: Option<String>,
    pub deadline: Option<String>,
    pub on_timeout: Option<String>,
    pub strict_response: Option<bool>,
    /// One without origins takes away what is there.
    pub cors: Option<Cors>,
    /// Content of the current version.
    pub content: Content,
}

/// An API as callers see it.
#[derive(Debug, Clone)]
pub struct ApiView {
    pub api: PublishedApi,
    /// Highest number first.
    pub versions: Vec<Version>,
    /// Address at which consumers call, without a `/` at the end. None in an environment that no
    /// call reaches: one without an address that is not the default one.
    pub base_url: Option<String>,
    /// Warnings about the version that a change has written; empty in all other answers.
    pub warnings: Vec<String>,
}

impl ApiView {
    /// The version that calls without one reach.
    pub fn current(&self) -> Option<&Version> {
        current(&self.versions)
    }

    /// Returns the API with its current version, for the audit log.
    fn whole(&self) -> WholeApi<'_> {
        WholeApi {
            api: &self.api,
            current: self.current(),
        }
    }

    /// Returns the address of a path below the base URL.
    pub fn url(&self, path: &str) -> Option<String> {
        let base_url = self.base_url.as_ref()?;
        Some(format!("{base_url}/{path}"))
    }
}

/// Publishes a flow.
pub async fn create(call: &Call, new: NewPublishedApi) -> Result<ChangeResult<ApiView>> {
    let (path, shape) = check::path(&new.path)?;
    let method = check::method(new.method.as_deref().unwrap_or("POST"))?;
    let auth = check::auth(new.auth.as_deref().unwrap_or("api_key"))?;
    let now = Timestamp::now();
    let api = PublishedApi {
        id: PublishedApiId::generate(),
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        name: match &new.name {
            Some(name) => name::check("name", name)?,
            None => name::check("path", &format!("{} /{path}", method.as_str()))?,
        },
        description: name::check_text("description", new.description)?,
        method,
        path,
        shape,
        auth,
        oauth2: check::oauth2(auth, new.oauth2)?,
        validation: new
            .validation
            .as_deref()
            .map_or(Ok(Validation::Strict), check::validation)?,
        deadline_ms: check::deadline(new.deadline.as_deref().unwrap_or("30s"))?,
        on_timeout: new
            .on_timeout
            .as_deref()
            .map_or(Ok(OnTimeout::Continue), check::on_timeout)?,
        strict_response: new.strict_response,
        cors: new.cors.map(check::cors).transpose()?.flatten(),
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    if new
        .content
        .flow
        .as_ref()
        .is_none_or(|name| name.trim().is_empty())
    {
        return Err(Error::field(
            "flowName",
            "is required: the name of a flow with the trigger api",
        ));
    }
    let content = new.content.check("requestSchema").await?;
    let mut change = call.change().await?;
    if let Some(made) = call.made::<PublishedApiId>(&mut change).await? {
        let made = seen(&call.app, &mut change, made).await?;
        return change.answer_repeat(made).await;
    }
    call.caller
        .record_idempotent_result(&mut change, &api.id)
        .await?;
    refuse_conflict(&mut change, &api).await?;
    let first = version::first(&call.app, &mut change, &api, content).await?;
    published_api::insert(&mut change, &api).await?;
    published_api::version::insert(&mut change, &api.id, &first).await?;
    let seen = publish::api(&mut change, api).await?;
    audit::created(call, &mut change, &seen.whole()).await?;
    warnings::commit(change, seen, first.number).await
}

/// The environment's APIs, newest first.
pub async fn list(call: &Call, search: &str, page: Page) -> Result<ListPage<ApiView>> {
    let mut tx = call.read().await?;
    let ListPage { items, total, page } =
        published_api::list(&mut tx, &call.caller.environment_id, search, page).await?;
    let mut shown = Vec::with_capacity(items.len());
    for api in items {
        shown.push(seen(&call.app, &mut tx, api).await?);
    }
    Ok(ListPage {
        items: shown,
        total,
        page,
    })
}

/// One API.
pub async fn get(call: &Call, id: &PublishedApiId) -> Result<ApiView> {
    let mut tx = call.read().await?;
    let api = call.existing(&mut tx, id).await?;
    seen(&call.app, &mut tx, api).await
}

/// Changes what the update names.
pub async fn update(
    call: &Call,
    id: &PublishedApiId,
    mut update: Update,
) -> Result<ChangeResult<ApiView>> {
    let content = std::mem::take(&mut update.content)
        .check("requestSchema")
        .await?;
    let mut change = call.change().await?;
    let (mut api, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        let seen = seen(&call.app, &mut change, api).await?;
        return change.answer_repeat(seen).await;
    }
    let before = seen(&call.app, &mut change, api.clone()).await?;
    apply(&mut api, &update)?;
    refuse_conflict(&mut change, &api).await?;
    version::change_current(&call.app, &mut change, &api, content).await?;
    if api.strict_response && !before.api.strict_response {
        version::check_current(&mut change, &api).await?;
    }
    api.updated_at = Timestamp::now();
    published_api::update(&mut change, &mut api).await?;
    let seen = publish::api(&mut change, api).await?;
    audit::updated(call, &mut change, &before.whole(), &seen.whole()).await?;
    let written = seen.current().ok_or_else(Error::internal)?.number;
    warnings::commit(change, seen, written).await
}

/// Takes an API out of service, with its keys.
pub async fn delete(call: &Call, id: &PublishedApiId) -> Result<ChangeResult<()>> {
    let mut change = call.change().await?;
    let Some(api) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return change.answer_repeat(()).await;
    };
    let found = seen(&call.app, &mut change, api).await?;
    audit::deleted(call, &mut change, &found.whole()).await?;
    let now = Timestamp::now();
    published_api::delete(&mut change, &call.caller.environment_id, id, now).await?;
    uses::replace(&mut change, id, &[]).await?;
    for key in consumer_key::end_all(&mut change, id, now).await? {
        change.remove(Kind::ConsumerKey, &key).await?;
    }
    change.remove(Kind::PublishedApi, id).await?;
    change.mark_urgent();
    change.commit(()).await
}

/// The version that calls without one reach: the latest active one, else the latest deprecated one,
/// else the latest. `versions` begin with the highest number.
pub fn current(versions: &[Version]) -> Option<&Version> {
    let latest = |status| versions.iter().find(|version| version.status == status);
    VersionStatus::ALL.iter().find_map(|status| latest(*status))
}

async fn seen(app: &App, db: &mut Db, api: PublishedApi) -> Result<ApiView> {
    let versions = published_api::version::list(db, &api.id).await?;
    let environment = environment::find(db, &api.account_id, api.environment_id.as_str()).await?;
    let base_url = environment.and_then(|environment| {
        let of_default = || app.public_url.base().to_owned();
        let is_default = environment.is_default;
        environment.base_url.or_else(|| is_default.then(of_default))
    });
    Ok(ApiView {
        api,
        versions,
        base_url,
        warnings: Vec::new(),
    })
}

/// Changes the fields of the API itself, without those of its versions.
fn apply(api: &mut PublishedApi, update: &Update) -> Result<()> {
    if let Some(name) = &update.name {
        api.name = name::check("name", name)?;
    }
    if let Some(description) = &update.description {
        api.description = name::check_text("description", description.clone())?;
    }
    if let Some(path) = &update.path {
        (api.path, api.shape) = check::path(path)?;
    }
    if let Some(method) = &update.method {
        api.method = check::method(method)?;
    }
    if let Some(auth) = &update.auth {
        api.auth = check::auth(auth)?;
    }
    if update.auth.is_some() || update.oauth2.is_some() {
        let kept = api.oauth2.take().filter(|_| check::takes_tokens(api.auth));
        api.oauth2 = check::oauth2(api.auth, update.oauth2.clone().or(kept))?;
    }
    if let Some(mode) = &update.validation {
        api.validation = check::validation(mode)?;
    }
    if let Some(deadline) = &update.deadline {
        api.deadline_ms = check::deadline(deadline)?;
    }
    if let Some(on_timeout) = &update.on_timeout {
        api.on_timeout = check::on_timeout(on_timeout)?;
    }
    if let Some(strict) = update.strict_response {
        api.strict_response = strict;
    }
    if let Some(cors) = &update.cors {
        api.cors = check::cors(cors.clone())?;
    }
    Ok(())
}

async fn refuse_conflict(db: &mut Db, api: &PublishedApi) -> Result<()> {
    let found = published_api::by_route(db, &api.environment_id, api.method, &api.shape).await?;
    match found.filter(|other| other.id != api.id) {
        Some(other) => {
            let method = api.method.as_str();
            let path = &api.path;
            let message = format!(
                "{method} /{path} takes the same requests as the published API {:?} ({method} /{})",
                other.name, other.path
            );
            Err(Error::new(Code::AlreadyExists, message).with_resource("published API", other.name))
        }
        None => Ok(()),
    }
}
