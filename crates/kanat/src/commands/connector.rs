//! `kanat connector`: the catalog, and instances of its entries.

mod config;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session, given};
use crate::client::name::{INSTANCE, segment};
use crate::exit::failure;
use crate::output::Json;
use crate::output::table::{self, Column};

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

const COLUMNS: [Column; 7] = [
    ("NAME", "name"),
    ("ENTRY", "catalogId"),
    ("HEALTH", "health.status"),
    ("BASE URL", "config.base_url"),
    ("ID", "id"),
    ("DISPLAY NAME", "displayName"),
    ("LAST ERROR", "lastError.message"),
];
const ENTRY_COLUMNS: [Column; 4] = [
    ("ID", "id"),
    ("CATEGORY", "category"),
    ("AUTHENTICATION", "authentication"),
    ("DESCRIPTION", "description"),
];

const ENDPOINTS: [Column; 4] = [
    ("ENDPOINT", "endpoint"),
    ("SAMPLES", "samples"),
    ("FIRST SEEN", "firstSeenAt"),
    ("LAST SEEN", "lastSeenAt"),
];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Catalog {
                entry: Some(entry), ..
            } => {
                let answer = client
                    .get(&format!("/connectors/catalog/{}", segment(&entry)), &[])
                    .await?;
                session.print(&answer, catalog_entry)
            }
            Self::Catalog {
                entry: None,
                category,
                search,
                page,
            } => {
                let query = [
                    page.query(),
                    given([("category", &category), ("search", &search)]),
                ]
                .concat();
                let answer = client.get("/connectors/catalog", &query).await?;
                session.list(&answer, &ENTRY_COLUMNS)
            }
            Self::Create {
                entry,
                name,
                display_name,
                config,
            } => {
                let config = config.read(client, &entry).await?;
                let mut body = json!({ "catalogId": entry, "name": name, "config": config });
                set(&mut body, "displayName", display_name);
                let answer = client.post(INSTANCE.path, &body).await?;
                session.print(&answer, |_| format!("connector instance {name} is created"))?;
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
                let query = [
                    page.query(),
                    given([("catalogId", &entry), ("search", &search)]),
                ]
                .concat();
                let answer = client.get(INSTANCE.path, &query).await?;
                session.list(&answer, &COLUMNS)
            }
            Self::Show { instance } => {
                let answer = client
                    .get(&client.path(&INSTANCE, &instance).await?, &[])
                    .await?;
                session.print(&answer, whole)
            }
            Self::Update {
                instance,
                name,
                display_name,
                config,
                removed,
            } => {
                let path = client.path(&INSTANCE, &instance).await?;
                let mut body = json!({});
                if let Some(changes) = config
                    .changes(client, &client.get(&path, &[]).await?, &removed)
                    .await?
                {
                    body["config"] = changes.into();
                }
                set(&mut body, "name", name);
                set(&mut body, "displayName", display_name);
                let answer = client.patch(&path, &body).await?;
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
                let answer = client
                    .get(&format!("{path}/schemas"), &page.query())
                    .await?;
                session.list(&answer, &ENDPOINTS)
            }
            Self::Check { instance } => {
                let path = client.path(&INSTANCE, &instance).await?;
                let answer = client
                    .post(&format!("{path}/schemas/check"), &json!({}))
                    .await?;
                session.print(&answer, checked)
            }
        }
    }
}

fn warned(session: &Session, answer: &Json) {
    for warning in answer.list("warnings") {
        session.hint(warning.as_text().unwrap_or_default());
    }
    if answer.has("authorization.error") {
        let why = answer.text("authorization.error");
        session.hint(&format!(
            "it cannot be used: its provider gives no access token: {why}"
        ));
    }
}

fn set(body: &mut serde_json::Value, name: &str, value: Option<String>) {
    if let Some(value) = value {
        body[name] = value.into();
    }
}

async fn test(session: &Session, instance: &str) -> Result<()> {
    let path = session.client.path(&INSTANCE, instance).await?;
    let answer = session
        .client
        .post(&format!("{path}/test"), &json!({}))
        .await?;
    session.print(&answer, tested)?;
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
    let mut out = format!(
        "{} ({} ms)",
        answer.text("message"),
        answer.text("latencyMs")
    );
    if let Some(Json::Object(headers)) = answer.at("request.headers") {
        for (name, value) in headers {
            out.push_str(&format!(
                "\n  sent {name}: {}",
                value.as_text().unwrap_or_default()
            ));
        }
    }
    out
}

async fn connect(session: &Session, instance: &str, redirect_uri: Option<String>) -> Result<()> {
    let found = session
        .client
        .get(&session.client.path(&INSTANCE, instance).await?, &[])
        .await?;
    let entry = Some(found.text("catalogId"));
    let name = Some(found.text("name"));
    let query = given([
        ("catalogId", &entry),
        ("instanceName", &name),
        ("redirectUri", &redirect_uri),
    ]);
    let answer = session
        .client
        .get("/connectors/oauth/start", &query)
        .await?;
    session.hint(&format!(
        "open this address until {}:",
        answer.text("expiresAt")
    ));
    session.print(&answer, |answer| answer.text("authorizationUrl"))
}

fn checked(answer: &Json) -> String {
    let mut out = Vec::new();
    for endpoint in answer.list("data") {
        out.push(format!(
            "{}: {}",
            endpoint.text("endpoint"),
            endpoint.text("status")
        ));
        if endpoint.has("error") {
            out.push(format!("  {}", endpoint.text("error")));
        }
        for change in endpoint.list("changes") {
            let types: Vec<_> = ["from", "to"]
                .map(|side| change.text(side))
                .into_iter()
                .filter(|t| !t.is_empty())
                .collect();
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
    let fields = [
        ("Name", "name"),
        ("Display name", "displayName"),
        ("Entry", "catalogId"),
        ("Health", "health.status"),
        ("Failed at", "lastError.at"),
        ("Last error", "lastError.message"),
        ("Authorization", "authorization.status"),
        ("Refused", "authorization.error"),
        ("Id", "id"),
        ("Created", "createdAt"),
        ("Updated", "updatedAt"),
    ];
    let config = instance
        .at("config")
        .map_or_else(String::new, crate::output::yaml::write);
    table::fields(instance, &fields) + &table::section("Config", &config)
}

fn catalog_entry(entry: &Json) -> String {
    let fields = [
        ("Id", "id"),
        ("Name", "name"),
        ("Category", "category"),
        ("Authentication", "authentication"),
        ("About", "description"),
    ];
    let mut out = table::fields(entry, &fields);
    let title = if entry.list("configFields").is_empty() {
        ""
    } else {
        "Config, set by `--set FIELD=VALUE`"
    };
    out.push_str(&table::section(
        title,
        &entry
            .list("configFields")
            .iter()
            .map(config_field)
            .collect::<String>(),
    ));
    if !entry.list("actions").is_empty() {
        let actions = entry.list("actions").iter().map(action).collect::<String>();
        out.push_str(&table::section(
            "Actions, called by `action: SLUG` of a step",
            &actions,
        ));
    }
    out
}

/// A field of a config, with its choices and its default, and what it is for.
fn config_field(field: &Json) -> String {
    let mut notes = Vec::new();
    match field.list("options") {
        [] => notes.push(field.text("type")),
        options => notes.push(
            options
                .iter()
                .filter_map(Json::as_text)
                .collect::<Vec<_>>()
                .join(" | "),
        ),
    }
    if field.text("required") == "true" {
        notes.push("required".to_owned());
    }
    if field.text("secret") == "true" {
        notes.push("secret".to_owned());
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
    let required: Vec<&str> = action
        .list("requestSchema.required")
        .iter()
        .filter_map(Json::as_text)
        .collect();
    if let Some(Json::Object(params)) = action.at("requestSchema.properties") {
        let name =
            |name: &str| format!("{name}{}", if required.contains(&name) { "*" } else { "" });
        let params: Vec<String> = params.iter().map(|(param, _)| name(param)).collect();
        out.push_str(&format!("    params: {}\n", params.join(", ")));
    }
    out
}
