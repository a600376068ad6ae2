//! `kanat adapter`: JavaScript that reshapes payloads.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session, input};
use crate::client::name::ADAPTER;
use crate::exit::failure;
use crate::output::{Json, table, yaml};

/// Commands for adapters. An adapter is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// Create an adapter of the code in a file, or of a template.
    #[command(group = clap::ArgGroup::new("origin").required(true).args(["code", "template"]))]
    Create {
        name: String,
        /// JavaScript with `function transform(input, context)`; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        code: Option<String>,
        /// Begin with this template; see `kanat adapter templates`.
        #[arg(long)]
        template: Option<String>,
        /// `transform`, `source` or `target` [default: the template's, or transform].
        #[arg(long = "type")]
        kind: Option<String>,
        #[arg(long)]
        description: Option<String>,
    },
    /// List the adapters of the environment.
    List {
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one adapter with its code.
    Show { adapter: String },
    /// Replace the code or other fields of an adapter; the others stay as they are.
    Update {
        adapter: String,
        /// `-` is standard input.
        #[arg(long, value_name = "FILE")]
        code: Option<String>,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        description: Option<String>,
    },
    /// Run an adapter on an input; the exit code is 1 when its code fails.
    Test {
        adapter: String,
        /// JSON; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        data: String,
    },
    /// Take an adapter out of service.
    Delete {
        adapter: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// List the templates to begin with.
    Templates {
        #[command(flatten)]
        page: Page,
    },
}

const COLUMNS: &str = "NAME:name,TYPE:type,VERSION:version,ID:id,DESCRIPTION:description";
const FIELDS: &str = "Name:name,Type:type,Version:version,About:description,Id:id,\
                      Created:createdAt,Updated:updatedAt";

/// Path of the templates, and the columns of their list.
const TEMPLATES: &str = "/adapters/templates";
const TEMPLATE_COLUMNS: &str = "TEMPLATE:id,TYPE:type,DESCRIPTION:description";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create {
                name,
                code,
                template,
                kind,
                description,
            } => {
                let origin = match (code, template) {
                    (Some(file), _) => json!({ "code": input::text(&file)? }).into(),
                    (None, template) => {
                        from_template(session, &template.unwrap_or_default()).await?
                    }
                };
                let body = origin.with([
                    ("name", Some(Json::Text(name.clone()))),
                    ("type", kind.map(Json::Text)),
                    ("description", description.map(Json::Text)),
                ]);
                let created = |_: &Json| format!("adapter {name} is created");
                session.post(ADAPTER.path, &body, created).await?;
                session.hint(&format!(
                    "try it with `kanat adapter test {} --data FILE`",
                    quoted(&name)
                ));
                Ok(())
            }
            Self::List { search, page } => {
                let query = page.with([("search", search)]);
                session.list(ADAPTER.path, query, COLUMNS).await
            }
            Self::Show { adapter } => {
                let path = client.path(&ADAPTER, &adapter).await?;
                session.show(&path, whole).await
            }
            Self::Update {
                adapter,
                code,
                name,
                description,
            } => {
                let code = code.as_deref().map(input::text).transpose()?;
                let body = json!({ "code": code, "name": name, "description": description });
                let path = client.path(&ADAPTER, &adapter).await?;
                session.print(&client.patch(&path, &Json::given(body)).await?, whole)
            }
            Self::Test { adapter, data } => test(session, &adapter, &data).await,
            Self::Delete { adapter, consent } => {
                let what = "with its code, unless deployed flows or published APIs call it";
                session.delete(&ADAPTER, &adapter, what, consent).await
            }
            Self::Templates { page } => {
                session
                    .list(TEMPLATES, page.with([]), TEMPLATE_COLUMNS)
                    .await
            }
        }
    }
}

async fn from_template(session: &Session, id: &str) -> Result<Json> {
    let templates = session.client.all(TEMPLATES, &[]).await?;
    let found = templates.iter().find(|template| template.text("id") == id);
    let found = found.ok_or_else(|| {
        failure(format!(
            "no adapter template is called {id:?}\n`kanat adapter templates` shows those there are"
        ))
    })?;
    Ok(Json::from(json!({
        "code": found.text("code"),
        "type": found.text("type"),
        "description": found.text("description"),
    })))
}

async fn test(session: &Session, adapter: &str, data: &str) -> Result<()> {
    let trial = Json::from(json!({})).with([("input", Some(input::payload(data, None)?))]);
    let path = session.client.path(&ADAPTER, adapter).await?;
    let answer = session
        .post(&format!("{path}/test"), &trial, tested)
        .await?;
    if !answer.has("error") {
        return Ok(());
    }
    let place = match (answer.text("error.line"), answer.text("error.column")) {
        (line, column) if !line.is_empty() => format!("line {line}, column {column}: "),
        _ => String::new(),
    };
    Err(failure(format!(
        "adapter {adapter} failed: {place}{}",
        answer.text("error.message")
    )))
}

fn tested(answer: &Json) -> String {
    let logs = answer.texts("logs").into_iter();
    let logs = logs.map(|line| format!("log: {line}"));
    let output = answer.at("output").map(yaml::write);
    logs.chain(output).collect::<Vec<_>>().join("\n")
}

fn whole(adapter: &Json) -> String {
    table::fields(adapter, FIELDS) + &table::section("Code", &adapter.text("code"))
}
