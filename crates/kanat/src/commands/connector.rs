//! `kanat connector`: the catalog, and instances of its entries.

mod config;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session, query};
use crate::client::name::{INSTANCE, segment};
use crate::exit::failure;
use crate::output::{Json, table, yaml};

/// Commands for connectors. An instance is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// List the catalog, or show one entry with its config fields and actions.
    Catalog {
        entry: Option<String>,
        #[arg(long)]
        category: Option<String>,
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Create an instance of a catalog entry.
    Create {
        /// Catalog entry, such as `http`.
        entry: String,
        /// Name by which flows call the instance.
        name: String,
        /// Name for people.
        #[arg(long)]
        display_name: Option<String>,
        #[command(flatten)]
        config: config::Flags,
    },
    /// List the instances of the environment.
    List {
        /// Only those of this catalog entry.
        #[arg(long)]
        entry: Option<String>,
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one instance; its secrets are masked.
    Show { instance: String },
    /// Change fields of an instance; the others stay as they are.
    Update {
        instance: String,
        #[arg(long)]
        name: Option<String>,
        /// Name for people.
        #[arg(long)]
        display_name: Option<String>,
        #[command(flatten)]
        config: config::Flags,
        #[command(flatten)]
        removed: config::UnsetFlags,
    },
    /// Take an instance out of service.
    Delete {
        instance: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Call the instance's base URL with its credentials.
    Test { instance: String },
    /// Connect an instance by OAuth2: prints the address at which a person consents.
    Connect {
        instance: String,
        /// Address to which the provider sends the person back [default: the service's own
        /// address].
        #[arg(long)]
        redirect_uri: Option<String>,
    },
    /// Show what the instance's endpoints answer, as far as it was seen.
    Schemas {
        instance: String,
        #[command(flatten)]
        page: Page,
    },
    /// Ask the instance's endpoints, and show the changes in their answers.
    Check { instance: String },
}

const COLUMNS: &str = "NAME:name,ENTRY:catalogId,HEALTH:health.status,BASE URL:config.base_url,\
                       ID:id,DISPLAY NAME:displayName,LAST ERROR:lastError.message";
const FIELDS: &str = "Name:name,Display name:displayName,Entry:catalogId,Health:health.status,\
                      Health since:health.since,Failed at:lastError.at,\
                      Last error:lastError.message,Authorization:authorization.status,\
                      Refused:authorization.error,Id:id,Created:createdAt,Updated:updatedAt";
const ENDPOINTS: &str = "ENDPOINT:endpoint,SAMPLES:samples,FIRST SEEN:firstSeenAt,\
                         LAST SEEN:lastSeenAt";

/// Path of the catalog, and the columns and fields of its entries.
const CATALOG: &str = "/connectors/catalog";
const ENTRY_COLUMNS: &str = "ID:id,CATEGORY:category,AUTHENTICATION:authentication,\
                             DESCRIPTION:description";
const ENTRY_FIELDS: &str = "Id:id,Name:name,Category:category,Authentication:authentication,\
                            About:description";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Catalog {
                entry: Some(entry), ..
            } => {
                let path = format!("{CATALOG}/{}", segment(&entry));
                session.show(&path, catalog_entry).await
            }
            Self::Catalog {
                entry: None,
                category,
                search,
                page,
            } => {
                let query = page.with([("category", category), ("search", search)]);
                session.list(CATALOG, query, ENTRY_COLUMNS).await
            }
            Self::Create {
                entry,
                name,
                display_name,
                config,
            } => {
                let config = config.read(client, &entry).await?;
                let body = Json::given(json!({
                    "catalogId": entry, "name": name, "displayName": display_name, "config": config,
                }));
                let created = |_: &Json| format!("connector instance {name} is created");
                let answer = session.post(INSTANCE.path, &body, created).await?;
                warned(session, &answer);
                session.hint(&format!(
                    "try it with `kanat connector test {}`",
                    quoted(&name)
                ));
                Ok(())
            }
            Self::List {
                entry,
                search,
                page,
            } => {
                let query = page.with([("catalogId", entry), ("search", search)]);
                session.list(INSTANCE.path, query, COLUMNS).await
            }
            Self::Show { instance } => {
                let path = client.path(&INSTANCE, &instance).await?;
                session.show(&path, whole).await
            }
            Self::Update {
                instance,
                name,
                display_name,
                config,
                removed,
            } => {
                let path = client.path(&INSTANCE, &instance).await?;
                let before = client.get(&path, &[]).await?;
                let config = config.changes(client, &before, &removed).await?;
                let body = Json::given(json!({
                    "name": name, "displayName": display_name, "config": config,
                }));
                let answer = client.patch(&path, &body).await;
                let answer = answer.map_err(|error| removed.explain(error))?;
                session.print(&answer, whole)?;
                warned(session, &answer);
                Ok(())
            }
            Self::Delete { instance, consent } => {
                let what = "with its credentials, unless deployed flows use it";
                session.delete(&INSTANCE, &instance, what, consent).await
            }
            Self::Test { instance } => test(session, &instance).await,
            Self::Connect {
                instance,
                redirect_uri,
            } => connect(session, &instance, redirect_uri).await,
            Self::Schemas { instance, page } => {
                let path = client.path(&INSTANCE, &instance).await?;
                session
                    .list(&format!("{path}/schemas"), page.with([]), ENDPOINTS)
                    .await
            }
            Self::Check { instance } => {
                let path = client.path(&INSTANCE, &instance).await?;
                session
                    .post(&format!("{path}/schemas/check"), &json!({}), checked)
                    .await
                    .map(drop)
            }
        }
    }
}

fn warned(session: &Session, answer: &Json) {
    session.warn(answer);
    if answer.has("authorization.error") {
        let why = answer.text("authorization.error");
        session.hint(&format!(
            "it cannot be used: its provider gives no access token: {why}"
        ));
    } else if answer.text("authorization.status") == "missing" {
        let name = quoted(&answer.text("name"));
        session.hint(&match answer.text("health.reason") {
            why if why.is_empty() => format!(
                "it has no access token yet: where a person gives consent, `kanat connector \
                 connect {name}` has the address"
            ),
            why => format!("it has no access token yet: {why}"),
        });
    }
}

async fn test(session: &Session, instance: &str) -> Result<()> {
    let path = session.client.path(&INSTANCE, instance).await?;
    let answer = session
        .post(&format!("{path}/test"), &json!({}), tested)
        .await?;
    if answer.text("ok") == "true" {
        Ok(())
    } else {
        Err(failure(format!(
            "connector instance {instance} does not work"
        )))
    }
}

/// Returns the result of a test, and the headers that it sent.
fn tested(answer: &Json) -> String {
    let message = answer.text("message");
    let mut out = format!("{message} ({} ms)", answer.text("latencyMs"));
    for (name, value) in answer.members("request.headers") {
        out += &format!("\n  sent {name}: {}", value.as_text().unwrap_or_default());
    }
    out
}

async fn connect(session: &Session, instance: &str, redirect_uri: Option<String>) -> Result<()> {
    let client = &session.client;
    let path = client.path(&INSTANCE, instance).await?;
    let found = client.get(&path, &[]).await?;
    let query = query([
        ("catalogId", Some(found.text("catalogId"))),
        ("instanceName", Some(found.text("name"))),
        ("redirectUri", redirect_uri),
    ]);
    let answer = client.get("/connectors/oauth/start", &query).await?;
    session.hint(&format!(
        "open this address until {}:",
        answer.text("expiresAt")
    ));
    session.print(&answer, |answer| answer.text("authorizationUrl"))
}

fn checked(answer: &Json) -> String {
    let mut out = Vec::new();
    for endpoint in answer.list("data") {
        let status = endpoint.text("status");
        out.push(format!("{}: {status}", endpoint.text("endpoint")));
        if endpoint.has("error") {
            out.push(format!("  {}", endpoint.text("error")));
        }
        for change in endpoint.list("changes") {
            let mut types = ["from", "to"].map(|side| change.text(side)).to_vec();
            types.retain(|t| !t.is_empty());
            out.push(format!(
                "  {} {} ({})",
                change.text("kind"),
                change.text("path"),
                types.join(" -> ")
            ));
        }
    }
    if out.is_empty() {
        "no endpoint of the instance was seen yet".to_owned()
    } else {
        out.join("\n")
    }
}

fn whole(instance: &Json) -> String {
    let config = instance.at("config").map_or_else(String::new, yaml::write);
    table::fields(instance, FIELDS) + &table::section("Config", &config)
}

fn catalog_entry(entry: &Json) -> String {
    let fields: String = entry
        .list("configFields")
        .iter()
        .map(config_field)
        .collect();
    let title = if fields.is_empty() {
        ""
    } else {
        "Config, set by `--set FIELD=VALUE`"
    };
    let mut out = table::fields(entry, ENTRY_FIELDS) + &table::section(title, &fields);
    let actions: String = entry.list("actions").iter().map(action).collect();
    if !actions.is_empty() {
        let id = entry.text("id");
        let title = format!("Actions, called by `action: {id}.ACTION` of a step");
        out += &table::section(&title, &actions);
    }
    out
}

/// A field of a config, with its choices and its default, and what it is for.
fn config_field(field: &Json) -> String {
    let mut notes = vec![match field.texts("options").as_slice() {
        [] => field.text("type"),
        options => options.join(" | "),
    }];
    for note in ["required", "secret"] {
        if field.text(note) == "true" {
            notes.push(note.to_owned());
        }
    }
    if field.has("default") {
        notes.push(format!("default {}", field.text("default")));
    }
    format!(
        "{} ({})\n    {}\n",
        field.text("name"),
        notes.join(", "),
        field.text("description")
    )
}

/// An action, what it calls, and the params that it takes; those with `*` are required.
fn action(action: &Json) -> String {
    let call = format!("{} {}", action.text("method"), action.text("path"));
    let mut out = format!(
        "{} ({call})\n    {}\n",
        action.text("slug"),
        action.text("description")
    );
    let required = action.texts("requestSchema.required");
    let params = action.members("requestSchema.properties");
    let params = params.map(|(param, _)| match required.contains(&param) {
        true => format!("{param}*"),
        false => param.to_owned(),
    });
    let params: Vec<String> = params.collect();
    if !params.is_empty() {
        out += &format!("    params: {}\n", params.join(", "));
    }
    out
}
