//! `kanat adapter`: JavaScript that reshapes payloads.

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::confirm::Consent;
use super::{Page, Session, given, input};
use crate::client::name::ADAPTER;
use crate::exit::failure;
use crate::output::Json;
use crate::output::table::{self, Column};

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

const COLUMNS: [Column; 5] = [
    ("NAME", "name"),
    ("TYPE", "type"),
    ("VERSION", "version"),
    ("ID", "id"),
    ("DESCRIPTION", "description"),
];
const TEMPLATES: [Column; 3] = [
    ("TEMPLATE", "id"),
    ("TYPE", "type"),
    ("DESCRIPTION", "description"),
];

#[derive(Serialize)]
struct Trial {
    input: Box<RawValue>,
}

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
                let begun = match (code, template) {
                    (Some(file), _) => json!({ "code": input::text(&file)? }),
                    (None, template) => {
                        from_template(session, &template.unwrap_or_default()).await?
                    }
                };
                let mut body = with(begun, &[("type", kind), ("description", description)]);
                body["name"] = name.clone().into();
                let answer = client.post(ADAPTER.path, &body).await?;
                session.print(&answer, |_| format!("adapter {name} is created"))?;
                session.hint(&format!(
                    "try it with `kanat adapter test {name} --data FILE`"
                ));
                Ok(())
            }
            Self::List { search, page } => {
                let query = [page.query(), given([("search", &search)])].concat();
                let answer = client.get(ADAPTER.path, &query).await?;
                session.list(&answer, &COLUMNS)
            }
            Self::Show { adapter } => {
                let answer = client
                    .get(&client.path(&ADAPTER, &adapter).await?, &[])
                    .await?;
                session.print(&answer, whole)
            }
            Self::Update {
                adapter,
                code,
                name,
                description,
            } => {
                let code = code.as_deref().map(input::text).transpose()?;
                let body = with(
                    json!({}),
                    &[("code", code), ("name", name), ("description", description)],
                );
                let answer = client
                    .patch(&client.path(&ADAPTER, &adapter).await?, &body)
                    .await?;
                session.print(&answer, whole)
            }
            Self::Test { adapter, data } => test(session, &adapter, &data).await,
            Self::Delete { adapter, consent } => {
                let what = "with its code, unless deployed flows or published APIs call it";
                session.delete(&ADAPTER, &adapter, what, consent).await
            }
            Self::Templates { page } => {
                let answer = client.get("/adapters/templates", &page.query()).await?;
                session.list(&answer, &TEMPLATES)
            }
        }
    }
}

async fn from_template(session: &Session, id: &str) -> Result<serde_json::Value> {
    let templates = session
        .client
        .get("/adapters/templates", &[("limit", "500".to_owned())])
        .await?;
    let found = templates
        .list("data")
        .iter()
        .find(|template| template.text("id") == id);
    let found = found.ok_or_else(|| {
        failure(format!(
            "no adapter template is called {id:?}\n`kanat adapter templates` shows those there are"
        ))
    })?;
    Ok(json!({
        "code": found.text("code"),
        "type": found.text("type"),
        "description": found.text("description"),
    }))
}

fn with(mut body: serde_json::Value, fields: &[(&str, Option<String>)]) -> serde_json::Value {
    for (name, value) in fields {
        if let Some(value) = value {
            body[*name] = value.as_str().into();
        }
    }
    body
}

async fn test(session: &Session, adapter: &str, data: &str) -> Result<()> {
    let trial = Trial {
        input: input::json(data)?,
    };
    let path = session.client.path(&ADAPTER, adapter).await?;
    let answer = session.client.post(&format!("{path}/test"), &trial).await?;
    session.print(&answer, tested)?;
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
    let mut out: Vec<String> = answer
        .list("logs")
        .iter()
        .filter_map(Json::as_text)
        .map(|line| format!("log: {line}"))
        .collect();
    if let Some(output) = answer.at("output") {
        out.push(crate::output::yaml::write(output));
    }
    out.join("\n")
}

fn whole(adapter: &Json) -> String {
    let fields = [
        ("Name", "name"),
        ("Type", "type"),
        ("Version", "version"),
        ("About", "description"),
        ("Id", "id"),
        ("Created", "createdAt"),
        ("Updated", "updatedAt"),
    ];
    table::fields(adapter, &fields) + &table::section("Code", &adapter.text("code"))
}
