//! Use-cases of environments. What nodes have to know of one is published in it.

mod variables;

use std::time::Duration;

use kanat_auth::Sealer;
use kanat_model::environment::Promoters;
use kanat_model::id::{AccountId, EnvironmentId};
use kanat_model::nearest;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_net::Authority;
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1 as plan;
use kanat_store::environment::{self, Environment};
use kanat_store::{Db, Store, flow, meta};
use prost::Message;
use url::Url;

use crate::app::faults::both;
use crate::app::{
    App, Call, ChangeResult, FieldUpdate, PublishTransaction, ResourceRevision, audit,
    beyond_binding, change, kept_key, name,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl ResourceRevision for Environment {
    fn revision(&self) -> u64 {
        self.revision
    }
}

/// Fields that a call gives; what is left out gets its default in a new environment, and stays in
/// one that is changed.
#[derive(Debug, Default)]
pub struct Fields {
    pub name: Option<String>,
    /// An empty one takes away what is there.
    pub base_url: Option<String>,
    pub is_protected: Option<bool>,
    pub promoters: Option<String>,
    /// All variables, a JSON object of texts.
    pub variables: Option<String>,
    pub retention_days: FieldUpdate<u32>,
}

/// Makes an environment.
pub async fn create(call: &Call, fields: Fields) -> Result<ChangeResult<Environment>> {
    call.caller.refuse_if_bound()?;
    let account = call.caller.account_id.clone();
    let mut made = Environment::new(account, String::new(), Timestamp::now());
    set(&call.app, &mut made, fields)?;
    let mut change = PublishTransaction::begin_unlocked(&call.app, &made.id).await?;
    if let Some(id) = call.caller.find_idempotent_result(&mut change).await? {
        drop(change);
        let id = EnvironmentId::new(id);
        let mut change = PublishTransaction::begin(&call.app, &id).await?;
        let made = existing(call, &mut change, id.as_str()).await?;
        return change.answer_repeat(made).await;
    }
    call.caller
        .record_idempotent_result(&mut change, &made.id)
        .await?;
    refuse_hosts_of_others(&mut change, &made).await?;
    environment::insert(&mut change, &made).await?;
    publish(&mut change, &made).await?;
    audit::created(call, &mut change, &made).await?;
    change.commit(made).await
}

/// The account's environments, oldest first; of them the one that the key is bound to, if it is.
pub async fn list(call: &Call, page: Page) -> Result<ListPage<Environment>> {
    let mut tx = call.read().await?;
    let bound_to = call.caller.bound_to.as_ref();
    let bound_to = bound_to.map_or("", EnvironmentId::as_str);
    Ok(environment::list(&mut tx, &call.caller.account_id, bound_to, page).await?)
}

/// One environment.
pub async fn get(call: &Call, id_or_name: &str) -> Result<Environment> {
    existing(call, &mut *call.read().await?, id_or_name).await
}

/// Changes what the update names.
pub async fn update(
    call: &Call,
    id_or_name: &str,
    fields: Fields,
) -> Result<ChangeResult<Environment>> {
    let id = get(call, id_or_name).await?.id;
    let mut change = PublishTransaction::begin(&call.app, &id).await?;
    let before = existing(call, &mut change, id.as_str()).await?;
    if call.caller.repeats(&mut change, &id).await? {
        return change.answer_repeat(before).await;
    }
    call.if_match.check(before.revision)?;
    let mut after = before.clone();
    set(&call.app, &mut after, fields)?;
    if after != before {
        variables::refuse_removals(&call.app, &mut change, &before, &after).await?;
        if after.base_url != before.base_url {
            refuse_hosts_of_others(&mut change, &after).await?;
        }
        after.updated_at = Timestamp::now();
        environment::update(&mut change, &mut after).await?;
        publish(&mut change, &after).await?;
    }
    audit::updated(call, &mut change, &before, &after).await?;
    change.commit(after).await
}

/// Deletes an environment in which there is nothing.
pub async fn delete(call: &Call, id_or_name: &str) -> Result<()> {
    call.caller.refuse_if_bound()?;
    let mut tx = call.write().await?;
    if call.caller.repeats(&mut tx, id_or_name).await? {
        return Ok(());
    }
    let found = existing(call, &mut tx, id_or_name).await?;
    change::lock(&mut tx, &found.id).await?;
    call.if_match.check(found.revision)?;
    let name = &found.name;
    if found.is_default {
        let message = format!("environment {name:?} is the default one, which stays");
        return Err(Error::precondition(message));
    }
    let contents = environment::contents(&mut tx, &found.id).await?;
    let contents: Vec<String> = contents
        .into_iter()
        .filter(|(_, total)| *total > 0)
        .map(|(kind, total)| format!("{kind} ({total})"))
        .collect();
    if !contents.is_empty() {
        let contents = contents.join(", ");
        let message = format!("environment {name:?} is not empty, delete first: {contents}");
        return Err(Error::precondition(message));
    }
    environment::delete(&mut tx, &found.id, Timestamp::now()).await?;
    // Nothing that it sealed is run again.
    meta::remove(&mut tx, &sealing_context(&found.id)).await?;
    audit::deleted(call, &mut tx, &found).await?;
    Ok(tx.commit().await?)
}

/// Checks the fields that are given, and sets them.
fn set(app: &App, environment: &mut Environment, fields: Fields) -> Result<()> {
    let name = fields.name.map(|name| check_name(&name)).transpose();
    let base_url = fields.base_url.map(|text| check_base_url(&text));
    let (name, base_url) = both(name, base_url.transpose())?;
    if let Some(name) = name {
        environment.name = name;
    }
    if let Some(base_url) = base_url {
        environment.base_url = base_url;
    }
    if let Some(is_protected) = fields.is_protected {
        environment.is_protected = is_protected;
    }
    if let Some(promoters) = fields.promoters {
        environment.promoters = Promoters::parse(&promoters).ok_or_else(|| {
            let message = format!("{promoters:?} is not a role that promotes: editor or admin");
            Error::field("promoters", message)
        })?;
    }
    if let Some(variables) = fields.variables {
        environment.variables = variables::check(&variables)?;
    }
    if let FieldUpdate::Set(days) = fields.retention_days
        && environment.retention_days != Some(days)
    {
        check_retention(days, app.retention.messages)?;
    }
    fields.retention_days.apply(&mut environment.retention_days);
    Ok(())
}

/// The mark of a store of whose environments the settings have been published, and what it says
/// since these have keys.
const PUBLISHED: &str = "environment_settings";
const WITH_SEALING_KEYS: &str = "with sealing keys";

/// The host name of the service's public URL, as it was published last.
const PUBLIC_HOST: &str = "public_host";

/// Publishes the settings of all environments of a new store, of one that is older than this build,
/// and when the service has another public URL than before; `public_host` is `None` when this
/// process knows none. Before anything is served: other control planes find the settings by
/// looking. Nothing of what is published is read: that is not to be touched when it cannot be
/// trusted.
pub async fn publish_all(
    store: &Store,
    sealer: &Sealer,
    public_host: Option<String>,
) -> Result<()> {
    if is_published(&mut *store.read().await?, public_host.as_deref()).await? {
        return Ok(());
    }
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    // Another control plane may have started meanwhile.
    if is_published(&mut tx, public_host.as_deref()).await? {
        return Ok(());
    }
    if let Some(public_host) = &public_host {
        meta::set(&mut tx, PUBLIC_HOST, public_host).await?;
    }
    for environment in environment::all(&mut tx).await? {
        environment::lock(&mut tx, &environment.id).await?;
        let resource_id = Kind::Environment.resource_id(environment.id.as_str());
        let body = settings(&mut tx, sealer, &environment)
            .await?
            .encode_to_vec();
        change::put(&mut tx, sealer, &environment.id, &resource_id, &body).await?;
    }
    meta::set(&mut tx, PUBLISHED, WITH_SEALING_KEYS).await?;
    Ok(tx.commit().await?)
}

/// Returns whether the settings of all environments are published, with this host name of the
/// public URL if it is known.
async fn is_published(db: &mut Db, public_host: Option<&str>) -> Result<bool> {
    let is_published = meta::get(db, PUBLISHED)
        .await?
        .is_some_and(|mark| mark == WITH_SEALING_KEYS);
    let former = meta::get(db, PUBLIC_HOST).await?.unwrap_or_default();
    Ok(is_published && public_host.is_none_or(|public_host| public_host == former))
}

async fn existing(call: &Call, db: &mut Db, id_or_name: &str) -> Result<Environment> {
    let account = &call.caller.account_id;
    let found = environment::find(db, account, id_or_name).await?;
    let bound_to = call.caller.bound_to.as_ref();
    match found {
        Some(found) if bound_to.is_none_or(|bound| *bound == found.id) => Ok(found),
        Some(_) | None if bound_to.is_some() => Err(beyond_binding()),
        Some(_) | None => Err(unknown(db, account, id_or_name).await?),
    }
}

/// Returns the error for an environment that does not exist, with the nearest name of those that
/// do.
pub async fn unknown(db: &mut Db, account: &AccountId, wanted: &str) -> Result<Error> {
    let all = environment::list(db, account, "", Page::new(Some(500), None)).await?;
    let near = nearest::suggestion(
        wanted,
        all.items
            .iter()
            .map(|environment| environment.name.as_str()),
    );
    Ok(Error::new(
        Code::NotFound,
        format!("environment {wanted:?} does not exist{near}"),
    )
    .with_resource("environment", wanted))
}

async fn publish(change: &mut PublishTransaction<'_>, environment: &Environment) -> Result<()> {
    let sealer = &change.app.sealer;
    let settings = settings(change, sealer, environment).await?;
    change
        .put(Kind::Environment, &environment.id, &settings)
        .await
}

/// Returns what nodes have to know.
async fn settings(
    db: &mut Db,
    sealer: &Sealer,
    environment: &Environment,
) -> Result<plan::EnvironmentSettings> {
    Ok(plan::EnvironmentSettings {
        id: environment.id.to_string(),
        name: environment.name.clone(),
        base_url: environment.base_url.clone().unwrap_or_default(),
        is_default: environment.is_default,
        public_host: meta::get(db, PUBLIC_HOST).await?.unwrap_or_default(),
        sealing_key: sealing_key(db, sealer, &environment.id).await?.to_vec(),
        variables: variables::to_plan(&environment.variables),
    })
}

/// Returns what seals a plan in the message log; `None` for a plan without secrets, which is not
/// sealed.
pub async fn sealer_of(app: &App, plan: &plan::FlowPlan) -> Result<Option<Sealer>> {
    if plan.literal_secrets.is_empty() {
        return Ok(None);
    }
    let id = EnvironmentId::from(plan.environment_id.as_str());
    sealer(app, &id).await.map(Some)
}

/// Returns what seals the credentials of requests and the plans of an environment in the message
/// log.
pub async fn sealer(app: &App, id: &EnvironmentId) -> Result<Sealer> {
    let mut tx = app.store.begin().await?;
    let key = sealing_key(&mut tx, &app.sealer, id).await?;
    tx.commit().await?;
    Sealer::from_keys(&[key]).map_err(|_| Error::internal())
}

/// Seals the keys of all environments under the master key in use; gives how many were under a
/// former one.
pub async fn renew_sealing_keys(db: &mut Db, sealer: &Sealer) -> Result<u32> {
    let mut renewed = 0;
    for environment in environment::all(db).await? {
        let name = sealing_context(&environment.id);
        renewed += u32::from(kept_key::renew(db, sealer, &name).await?);
    }
    Ok(renewed)
}

/// The context under which the key of an environment is sealed, and its name.
fn sealing_context(environment: &EnvironmentId) -> String {
    format!("sealing_key/{environment}")
}

/// The key of an environment, which is made when it is asked for first.
async fn sealing_key(
    db: &mut Db,
    sealer: &Sealer,
    environment: &EnvironmentId,
) -> Result<[u8; 32]> {
    let name = sealing_context(environment);
    match kept_key::find(db, sealer, &name).await? {
        Some(key) => Ok(key),
        None => kept_key::make(db, sealer, &name).await,
    }
}

/// A name that cannot be taken for the id of another environment.
fn check_name(name: &str) -> Result<String> {
    let name = name::check("name", name)?;
    if name.starts_with(&format!("{}_", EnvironmentId::PREFIX)) {
        return Err(Error::field(
            "name",
            format!("begins with {}_, as ids do", EnvironmentId::PREFIX),
        ));
    }
    Ok(name)
}

/// Refuses days for which an environment cannot keep its messages. The service drops them after
/// `longest`, if ever.
fn check_retention(days: u32, longest: Option<Duration>) -> Result<()> {
    let wrong = |problem: String| Err(Error::field("retentionDays", problem));
    if days == 0 {
        return wrong("must be at least 1".to_owned());
    }
    match longest {
        Some(longest) if DAY * days > longest => {
            let longest = longest.as_secs() / DAY.as_secs();
            wrong(format!(
                "is more than the {longest} days that this service keeps messages \
                 (--retention-days)"
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// Drops the ended messages of environments that keep them for a shorter time than the service, and
/// returns their number.
pub async fn drop_old_messages(app: &App, now: Timestamp) -> Result<u64> {
    let environments = environment::all(&mut *app.store.read().await?).await?;
    let mut dropped = 0;
    for environment in environments {
        let keep = environment.retention_days.map(|days| DAY * days);
        let longest = app.retention.messages;
        if let Some(keep) = keep.filter(|keep| longest.is_none_or(|longest| *keep < longest)) {
            let flows = flow::ids(&mut *app.store.read().await?, &environment.id).await?;
            dropped += app.log.retain_flows(&flows, now.before(keep)).await?;
        }
    }
    Ok(dropped)
}

/// Scheme, host and port, as requests are compared with them; none of an empty text.
fn check_base_url(text: &str) -> Result<Option<String>> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let wrong = |why: &str| {
        Error::field(
            "baseUrl",
            format!("{text:?} {why}: give one such as https://api.example.com"),
        )
    };
    let url = Url::parse(text.trim()).map_err(|_| wrong("is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("is no http or https address"));
    }
    let bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if !bare || url.path() != "/" {
        return Err(wrong("has more than scheme, host and port"));
    }
    Ok(Some(url.origin().ascii_serialization()))
}

/// Refuses a base URL whose host has the calls of another environment, whatever its scheme is:
/// nodes tell calls by their hosts.
async fn refuse_hosts_of_others(db: &mut Db, environment: &Environment) -> Result<()> {
    let (Some(base_url), Some(own)) = (&environment.base_url, authority(environment)) else {
        return Ok(());
    };
    if !environment.is_default && own.has_no_domain() {
        let message = format!(
            "{base_url:?} has no domain: calls to IP addresses and such names are those of the \
             default environment"
        );
        return Err(Error::field("baseUrl", message));
    }
    let taken = |by: &str| Error::new(Code::AlreadyExists, format!("{base_url} is the {by}"));
    let public_host = meta::get(db, PUBLIC_HOST).await?.unwrap_or_default();
    if !environment.is_default && own.name() == Authority::new(&public_host).name() {
        return Err(taken("address of the service, of the default environment"));
    }
    for other in environment::all(db).await? {
        if other.id != environment.id && authority(&other).as_ref() == Some(&own) {
            return Err(match other.account_id == environment.account_id {
                true => taken(&format!("base URL of the environment {:?}", other.name))
                    .with_resource("environment", other.name),
                false => taken("base URL of another account"),
            });
        }
    }
    Ok(())
}

fn authority(environment: &Environment) -> Option<Authority> {
    let url = Url::parse(environment.base_url.as_deref()?).ok()?;
    Authority::of_url(&url)
}

#[cfg(test)]
mod tests {
    use kanat_auth::Role;

    use super::*;
    use crate::app::testing;

    #[test]
    fn a_base_url_is_scheme_host_and_port() {
        for (text, expect) in [
            ("https://API.example.com/", Some("https://api.example.com")),
            (
                "https://api.example.com:443",
                Some("https://api.example.com"),
            ),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("", None),
            (" ", None),
        ] {
            assert_eq!(check_base_url(text).unwrap().as_deref(), expect, "{text}");
        }
        for wrong in [
            "api.example.com",
            "ftp://x.example",
            "https://x.example/v1",
            "https://u@x.example",
            "https://x.example?a",
            "//x",
        ] {
            assert_eq!(
                check_base_url(wrong).unwrap_err().details[0].field,
                "baseUrl",
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_name_is_no_id() {
        assert_eq!(check_name(" canary ").unwrap(), "canary");
        assert!(check_name("env_1").is_err());
    }

    #[tokio::test]
    async fn a_repeat_of_a_call_that_was_not_answered_gives_the_environment_that_it_made() {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        let mut call = testing::call(&app, Role::Owner).await;
        call.caller.idempotency_id = Some("a-key".to_owned());
        let fields = || Fields {
            name: Some("eu".to_owned()),
            ..Fields::default()
        };
        let made = create(&call, fields()).await.unwrap().value;
        assert_eq!(create(&call, fields()).await.unwrap().value.id, made.id);
    }
}
