//! `kanat api`: flows as endpoints that consumers call.

mod conduct;
mod keywords;
pub mod reach;
mod show;
mod update;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::{Args, Subcommand};
use kanat_model::Secret;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session, input};
use crate::cli::secret;
use crate::client::Unreachable;
use crate::client::name::{API, FLOW, segment};
use crate::exit::{failure, usage};
use crate::output::{self, Json};
use conduct::Conduct;

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
    #[command(flatten)]
    conduct: Conduct,
    #[command(flatten)]
    content: Content,
}

/// Schemas and answer of a version.
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
    /// Status of the answer: a number, or an expression that gives one.
    #[arg(long)]
    response_status: Option<String>,
    /// A header of the answer as NAME=VALUE, whose value may be a template; those that are given
    /// replace all others.
    #[arg(long = "response-header", value_name = "NAME=VALUE", value_parser = pair)]
    response_headers: Vec<(String, String)>,
}

impl Content {
    /// The members of a request; that of the request schema has this name.
    pub fn members(&self, schema: &'static str) -> Result<[(&'static str, Option<Json>); 5]> {
        let schema_of = |text: &Option<String>| text.as_deref().map(schema_of).transpose();
        let mapping = match &self.response_mapping {
            Some(file) => Some(input::json(file)?),
            None => self.response.clone().map(Json::Text),
        };
        let status = self.response_status.as_deref().map(|status| {
            let number = status.parse::<u16>();
            number.map_or_else(|_| json!(status), |number| json!(number))
        });
        let headers = BTreeMap::from_iter(self.response_headers.iter().cloned());
        let headers = (!headers.is_empty()).then(|| json!(headers));
        Ok([
            (schema, schema_of(&self.schema)?),
            ("responseSchema", schema_of(&self.response_schema)?),
            ("responseMapping", mapping),
            ("responseStatus", status.map(Json::from)),
            ("responseHeaders", headers.map(Json::from)),
        ])
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
    /// A parameter of the path, or else of the query, as NAME=VALUE.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
}

const COLUMNS: &str = "NAME:name,METHOD:method,PATH:path,FLOW:flowName,AUTH:authType,\
                       VERSION:currentVersion,ID:id";
/// The columns of a list of versions.
pub const VERSIONS: &str = "VERSION:version,STATUS:status,SUNSET:sunsetDate,FLOW:flowName,URL:url";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List { search, page } => {
                let query = page.with([("search", search)]);
                let found = client.page(API.path, &query).await?;
                session.print_page(&found, COLUMNS)?;
                if let Some(api) = found.list("data").first() {
                    reach::hint(session, api).await;
                }
                Ok(())
            }
            Self::Show { api } => {
                let path = client.path(&API, &api).await?;
                let found = client.get(&path, &[]).await?;
                session.print(&found, show::whole)?;
                reach::hint(session, &found).await;
                Ok(())
            }
            Self::Update(update) => update.run(session).await,
            Self::Document { api } => {
                let path = client.path(&API, &api).await?;
                let document = client.get(&format!("{path}/openapi.json"), &[]).await?;
                output::line(&document.pretty())
            }
            Self::Call(call) => call.run(session).await,
            Self::Delete { api, consent } => {
                let what = "with its versions and its consumers' keys";
                session.delete(&API, &api, what, consent).await
            }
        }
    }
}

impl Create {
    async fn run(self, session: &Session) -> Result<()> {
        let flow = session.client.path(&FLOW, &self.flow).await?;
        let texts = json!({
            "flowName": self.flow,
            "path": self.path,
            "name": self.name,
            "description": self.description,
            "method": self.method,
            "authType": self.auth,
            "validationMode": self.validation,
        });
        let oauth2 = self.oauth2.as_deref().map(input::json).transpose()?;
        let body = Json::given(texts)
            .with([("oauth2", oauth2)])
            .with(self.conduct.members(&Json::from(json!({}))))
            .with(self.content.members("requestSchema")?);
        let created = session.post(API.path, &body, |answer| {
            let name = answer.text("name");
            match answer.has("url") {
                true => {
                    let place = format!("{} {}", answer.text("method"), answer.text("url"));
                    format!("published API {name} is at {place}")
                }
                false => format!("published API {name} is created"),
            }
        });
        let answer = created.await?;
        session.warn(&answer);
        reach::hint(session, &answer).await;
        if answer.text("authType") == "api_key" {
            let name = answer.text("name");
            session.hint(&format!(
                "make a key with `kanat key create {} CONSUMER`",
                quoted(&name)
            ));
        }
        let flow = session.client.get(&flow, &[]).await?;
        if flow.text("status") == "draft" {
            let name = flow.text("name");
            let command = format!("kanat flow deploy {}", quoted(&name));
            session.hint(&format!(
                "flow {name} is a draft: calls get 503 until `{command}`"
            ));
        }
        Ok(())
    }
}

impl Call {
    async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        let path = client.path(&API, &self.api).await?;
        let api = client.get(&path, &[]).await?;
        reach::require(client, &api).await?;
        let mut url = match &self.version {
            None => api.text("url"),
            Some(wanted) => {
                let mut versions = api.list("versions").iter();
                let found = versions.find(|version| version.text("version") == *wanted);
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
                if value.is_empty() {
                    return Err(usage(format!(
                        "the parameter {name} of the path is empty: no path has an empty segment"
                    )));
                }
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
        if matches!(method.as_str(), "GET" | "DELETE") {
            if self.data.is_some() {
                return Err(usage(format!(
                    "a call by {method} has no body: give the input with --param NAME=VALUE"
                )));
            }
        } else {
            let data = self.data.as_deref().map(input::json).transpose()?;
            request = request.json(&data);
        }
        let (status, text) = match client.call(request).await {
            Err(error) if error.is::<Unreachable>() => {
                return Err(reach::explain(client, &api, &error).await);
            }
            called => called?,
        };
        if status == StatusCode::NO_CONTENT {
            session.hint("204: the answer has no body, as where the `when` of the flow is false");
            return Ok(());
        }
        match Json::parse(&text) {
            Ok(answer) => session.print(&answer, Json::pretty)?,
            Err(_) => output::line(&text)?,
        }
        match status.is_success() {
            true => Ok(()),
            false => Err(failure(format!("the API answered {}", status.as_u16()))),
        }
    }
}

/// The schema `true` or `false`, or that in a file. A file of such a name is given as `./true`.
/// Prints warnings about misspelt keywords.
fn schema_of(text: &str) -> Result<Json> {
    if matches!(text, "true" | "false") {
        return Ok(Json::Bare(text.to_owned()));
    }
    let schema = input::json(text)?;
    for warning in keywords::misspelt(&schema) {
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
