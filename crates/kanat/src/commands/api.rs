//! `kanat api`: flows as endpoints that consumers call.

mod keywords;
mod update;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::{Args, Subcommand};
use kanat_model::Secret;
use reqwest::Method;
use serde_json::value::{RawValue, to_raw_value};

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session, given, input};
use crate::cli::secret;
use crate::client::name::{API, FLOW, segment};
use crate::exit::usage;
use crate::output::table::{self, Column};
use crate::output::{self, Json};

/// Commands for published APIs. An API is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// Publish a flow that has the trigger api.
    Create(Box<Create>),
    /// List the published APIs of the environment.
    List {
        /// Looks into name, description and path.
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one published API with its versions.
    Show { api: String },
    /// Change fields of a published API; the others stay as they are. Flow, schemas and answer are
    /// those of the current version.
    Update(Box<update::Update>),
    /// Print the OpenAPI document of a published API.
    Document { api: String },
    /// Call a published API, as its consumers do.
    Call(Call),
    /// Take a published API out of service, with its keys.
    Delete {
        api: String,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Arguments of `kanat api create`.
#[derive(Args)]
pub struct Create {
    /// Name or id of the flow.
    flow: String,
    /// Path below the environment's base URL, such as `orders/{id}`.
    path: String,
    /// [default: method and path]
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    description: Option<String>,
    /// GET, POST, PUT, PATCH or DELETE.
    #[arg(long, default_value = "POST")]
    method: String,
    /// `api_key`, `oauth2` or `none`.
    #[arg(long, default_value = "api_key")]
    auth: String,
    /// JSON file with `issuer`, `audience`, `jwksUrl` and `scopes`.
    #[arg(long)]
    oauth2: Option<String>,
    /// `strict` or `lenient`.
    #[arg(long, default_value = "strict")]
    validation: String,
    /// How long a call waits for the flow, such as `30s`.
    #[arg(long)]
    deadline: Option<String>,
    #[command(flatten)]
    content: Content,
}

/// Schemas and response mapping of a version.
#[derive(Args)]
pub struct Content {
    /// JSON file with the schema of requests; `-` is standard input, `true` takes any.
    #[arg(long)]
    schema: Option<String>,
    /// JSON file with the schema of answers, or `true` for any; with one, calls wait for the flow.
    #[arg(long)]
    response_schema: Option<String>,
    /// JSON file with the mapping block of answers.
    #[arg(long, conflicts_with = "response")]
    response_mapping: Option<String>,
    /// Expression or template that builds the answer. A new API without --response-schema then
    /// gives any answer.
    #[arg(long)]
    response: Option<String>,
}

impl Content {
    /// The members of a request; that of the request schema has this name.
    pub fn members(&self, schema: &'static str) -> Result<Vec<(&'static str, Box<RawValue>)>> {
        let mut members = Vec::new();
        for (name, text) in [
            (schema, &self.schema),
            ("responseSchema", &self.response_schema),
        ] {
            if let Some(text) = text {
                members.push((name, schema_of(text)?));
            }
        }
        if let Some(file) = &self.response_mapping {
            members.push(("responseMapping", input::json(file)?));
        }
        if let Some(text) = &self.response {
            members.push(("responseMapping", to_raw_value(text)?));
        }
        Ok(members)
    }
}

/// Arguments of `kanat api call`.
#[derive(Args)]
pub struct Call {
    api: String,
    /// A version such as `v1` [default: the current one].
    #[arg(long)]
    version: Option<String>,
    /// A consumer key, or a token of the issuer that the API names.
    #[arg(long, env = "KANAT_CONSUMER_KEY", hide_env_values = true, value_parser = secret)]
    key: Option<Secret<String>>,
    /// JSON file with the body; `-` is standard input [default: null].
    #[arg(long)]
    data: Option<String>,
    /// A parameter of the path, or of the query of GET and DELETE, as NAME=VALUE.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
}

const COLUMNS: [Column; 7] = [
    ("NAME", "name"),
    ("METHOD", "method"),
    ("PATH", "path"),
    ("FLOW", "flowName"),
    ("AUTH", "authType"),
    ("VERSION", "currentVersion"),
    ("ID", "id"),
];

/// The columns of a list of versions.
pub const VERSIONS: [Column; 5] = [
    ("VERSION", "version"),
    ("STATUS", "status"),
    ("SUNSET", "sunsetDate"),
    ("FLOW", "flowName"),
    ("URL", "url"),
];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List { search, page } => {
                let query = [page.query(), given([("search", &search)])].concat();
                let answer = client.get(API.path, &query).await?;
                session.list(&answer, &COLUMNS)
            }
            Self::Show { api } => {
                let answer = client.get(&client.path(&API, &api).await?, &[]).await?;
                session.print(&answer, whole)
            }
            Self::Update(update) => update.run(session).await,
            Self::Document { api } => {
                let path = client.path(&API, &api).await?;
                let document = client.get(&format!("{path}/openapi.json"), &[]).await?;
                output::line(&document.pretty())
            }
            Self::Call(call) => call.run(session).await,
            Self::Delete { api, consent } => {
                session
                    .delete(
                        &API,
                        &api,
                        "with its versions and its consumers' keys",
                        consent,
                    )
                    .await
            }
        }
    }
}

impl Create {
    async fn run(self, session: &Session) -> Result<()> {
        let mut body: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
        let texts = [
            ("flowName", Some(&self.flow)),
            ("path", Some(&self.path)),
            ("name", self.name.as_ref()),
            ("description", self.description.as_ref()),
            ("method", Some(&self.method)),
            ("authType", Some(&self.auth)),
            ("validationMode", Some(&self.validation)),
            ("deadline", self.deadline.as_ref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                body.insert(name, to_raw_value(text)?);
            }
        }
        if let Some(file) = &self.oauth2 {
            body.insert("oauth2", input::json(file)?);
        }
        body.extend(self.content.members("requestSchema")?);
        let answer = session.client.post(API.path, &body).await?;
        let name = answer.text("name");
        session.print(&answer, |answer| {
            format!(
                "published API {name} is at {} {}",
                answer.text("method"),
                answer.text("url")
            )
        })?;
        if answer.text("authType") == "api_key" {
            session.hint(&format!(
                "make a key with `kanat key create {name:?} CONSUMER`"
            ));
        }
        let flow = session
            .client
            .get(&session.client.path(&FLOW, &self.flow).await?, &[])
            .await?;
        if flow.text("status") == "draft" {
            let command = format!("kanat flow deploy {}", quoted(&flow.text("name")));
            session.hint(&format!(
                "flow {} is a draft: calls get 503 until `{command}`",
                flow.text("name")
            ));
        }
        Ok(())
    }
}

impl Call {
    async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        let api = client
            .get(&client.path(&API, &self.api).await?, &[])
            .await?;
        let mut url = match &self.version {
            None => api.text("url"),
            Some(wanted) => {
                let found = api
                    .list("versions")
                    .iter()
                    .find(|version| version.text("version") == *wanted);
                found.map(|version| version.text("url")).ok_or_else(|| {
                    usage(format!(
                        "{} has no version {wanted}: `kanat version list` shows those there are",
                        self.api
                    ))
                })?
            }
        };
        let mut query = Vec::new();
        for (name, value) in self.params {
            let place = format!("{{{name}}}");
            if url.contains(&place) {
                url = url.replace(&place, &segment(&value));
            } else {
                query.push((name, value));
            }
        }
        if let Some((_, rest)) = url.split_once('{') {
            let name = rest.split('}').next().unwrap_or(rest);
            return Err(usage(format!(
                "the path has the parameter {name}: give --param {name}=VALUE"
            )));
        }
        let method = api.text("method");
        let mut request = client
            .raw(Method::from_bytes(method.as_bytes())?, &url)
            .query(&query);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        if !matches!(method.as_str(), "GET" | "DELETE") {
            let data = self
                .data
                .as_deref()
                .map_or_else(|| Ok(to_raw_value(&())?), input::json)?;
            request = request.json(&data);
        }
        let text = client.call(request).await?.text().await?;
        match Json::parse(&text) {
            Ok(answer) => session.print(&answer, Json::pretty),
            Err(_) => output::line(&text),
        }
    }
}

/// The schema `true` or `false`, or that in a file. A file of such a name is given as `./true`.
/// Prints warnings about misspelt keywords.
fn schema_of(text: &str) -> Result<Box<RawValue>> {
    if matches!(text, "true" | "false") {
        return Ok(to_raw_value(&(text == "true"))?);
    }
    let schema = input::json(text)?;
    let parsed = serde_json::from_str(schema.get()).unwrap_or_default();
    for warning in keywords::misspelt(&parsed) {
        output::hint(&format!("warning: {warning}"));
    }
    Ok(schema)
}

fn pair(text: &str) -> Result<(String, String), String> {
    let found = text.split_once('=').filter(|(name, _)| !name.is_empty());
    found
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "is not NAME=VALUE".to_owned())
}

fn whole(api: &Json) -> String {
    let fields = [
        ("Name", "name"),
        ("Description", "description"),
        ("Method", "method"),
        ("Path", "path"),
        ("Url", "url"),
        ("Flow", "flowName"),
        ("Auth", "authType"),
        ("Issuer", "oauth2.issuer"),
        ("Request", "request"),
        ("Validation", "validationMode"),
        ("Answer", "answer"),
        ("Deadline", "deadline"),
        ("On timeout", "onTimeout"),
        ("Id", "id"),
        ("Updated", "updatedAt"),
    ];
    let versions = table::rows(api.list("versions"), &VERSIONS);
    let said = [("request", request(api)), ("answer", response(api))];
    let shown = api
        .clone()
        .with(said.map(|(name, text)| (name, Json::Text(text))));
    format!("{}\n{versions}", table::fields(&shown, &fields))
}

/// Returns what the current version takes.
fn request(api: &Json) -> String {
    if api.has("requestSchema") {
        "what fits its schema".to_owned()
    } else {
        "anything: it has no schema".to_owned()
    }
}

/// Returns what the current version answers. Without a schema of answers a call does not wait for
/// the flow.
fn response(api: &Json) -> String {
    if !api.has("responseSchema") {
        return "202 with the message's id".to_owned();
    }
    let of = if api.has("responseMapping") {
        "the flow's result by a response mapping"
    } else {
        "the flow's result"
    };
    let schema = if api.text("responseSchema") == "true" {
        "of any form"
    } else {
        "with a schema"
    };
    format!("{of}, {schema}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_an_api_answers() {
        let told = |members: &str| response(&Json::parse(&format!("{{{members}}}")).unwrap());
        assert_eq!(told(""), "202 with the message's id");
        assert_eq!(
            told(r#""responseSchema":true"#),
            "the flow's result, of any form"
        );
        let mapped = told(r#""responseSchema":{"type":"object"},"responseMapping":"source""#);
        assert_eq!(
            mapped,
            "the flow's result by a response mapping, with a schema"
        );
    }
}
