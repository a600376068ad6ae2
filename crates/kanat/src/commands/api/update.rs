//! `kanat api update`: changes to a published API and to the current one of its versions.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{Content, pair, whole};
use crate::client::name::API;
use crate::commands::confirm::{Consent, Decision};
use crate::commands::{Session, input};
use crate::exit::usage;
use crate::output::Json;

/// Arguments of `kanat api update`: the changes.
#[derive(Args)]
pub struct Update {
    api: String,
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    description: Option<String>,
    /// Path below the environment's base URL, such as `orders/{id}`.
    #[arg(long)]
    path: Option<String>,
    /// GET, POST, PUT, PATCH or DELETE.
    #[arg(long)]
    method: Option<String>,
    /// Name or id of another flow.
    #[arg(long)]
    flow: Option<String>,
    /// `api_key`, `oauth2` or `none`.
    #[arg(long)]
    auth: Option<String>,
    /// JSON file with `issuer`, `audience`, `jwksUrl` and `scopes`.
    #[arg(long)]
    oauth2: Option<String>,
    /// `strict` or `lenient`.
    #[arg(long)]
    validation: Option<String>,
    /// How long a call waits for the flow, such as `30s`.
    #[arg(long)]
    deadline: Option<String>,
    /// Treatment of the message of a call that ran out of time: `continue` or `discard`.
    #[arg(long)]
    on_timeout: Option<String>,
    /// `true` refuses an answer that does not fit its schema.
    #[arg(long)]
    strict_response: Option<bool>,
    /// Status of the answer: a number, or an expression that gives one.
    #[arg(long)]
    response_status: Option<String>,
    /// A header of the answer as NAME=VALUE, whose value may be a template; those that are given
    /// replace all others.
    #[arg(long = "response-header", value_name = "NAME=VALUE", value_parser = pair)]
    response_headers: Vec<(String, String)>,
    /// An origin whose pages may call, such as `https://shop.example`, or `*`; those that are given
    /// replace all others, and an empty text takes all away.
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    cors_origins: Vec<String>,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    consent: Consent,
}

impl Update {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        let path = client.path(&API, &self.api).await?;
        let mut body = self.fields()?;
        let before = client.get(&path, &[]).await?;
        if !self.cors_origins.is_empty() {
            body.insert("cors", self.cors(before.at("cors"))?);
        }
        if self.moves(&before) {
            let what = format!(
                "calls of {} /{} get 404 from now on",
                before.text("method"),
                before.text("path").trim_start_matches('/')
            );
            match self.consent.ask(&what)? {
                Decision::Stop => return Ok(()),
                Decision::Act => {}
            }
        }
        if body.is_empty() {
            return Err(usage(
                "nothing is to be changed: `kanat api update --help` lists the fields",
            ));
        }
        session.print(&client.patch(&path, &body).await?, whole)
    }

    /// Returns whether the calls that there are lead to the API no more.
    fn moves(&self, before: &Json) -> bool {
        let bare = |path: &str| path.trim_matches('/').to_owned();
        let path = self.path.as_deref().map(bare);
        path.is_some_and(|path| path != bare(&before.text("path")))
            || self
                .method
                .as_ref()
                .is_some_and(|method| !method.eq_ignore_ascii_case(&before.text("method")))
    }

    fn fields(&self) -> Result<BTreeMap<&'static str, Box<RawValue>>> {
        let mut body = BTreeMap::new();
        let texts = [
            ("name", &self.name),
            ("description", &self.description),
            ("path", &self.path),
            ("method", &self.method),
            ("flowName", &self.flow),
            ("authType", &self.auth),
            ("validationMode", &self.validation),
            ("deadline", &self.deadline),
            ("onTimeout", &self.on_timeout),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                body.insert(name, to_raw_value(text)?);
            }
        }
        if let Some(file) = &self.oauth2 {
            body.insert("oauth2", input::json(file)?);
        }
        if let Some(strict) = self.strict_response {
            body.insert("strictResponse", to_raw_value(&strict)?);
        }
        if let Some(status) = &self.response_status {
            let number = status
                .parse::<u16>()
                .ok()
                .map(|number| to_raw_value(&number));
            body.insert(
                "responseStatus",
                number.unwrap_or_else(|| to_raw_value(status))?,
            );
        }
        if !self.response_headers.is_empty() {
            let headers: BTreeMap<&str, &str> = self
                .response_headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            body.insert("responseHeaders", to_raw_value(&headers)?);
        }
        body.extend(self.content.members("requestSchema")?);
        Ok(body)
    }

    /// The cross-origin rules of before with other origins.
    fn cors(&self, before: Option<&Json>) -> Result<Box<RawValue>> {
        let text = before.map_or_else(|| "{}".to_owned(), Json::compact);
        let mut cors: serde_json::Value = serde_json::from_str(&text)?;
        if cors.is_null() {
            cors = json!({});
        }
        let origins: Vec<&String> = self
            .cors_origins
            .iter()
            .filter(|origin| !origin.is_empty())
            .collect();
        cors["origins"] = json!(origins);
        Ok(to_raw_value(&cors)?)
    }
}
