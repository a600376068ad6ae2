//! `kanat api update`: changes to a published API and to the current one of its versions.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Content, pair, whole};
use crate::client::name::API;
use crate::commands::confirm::Consent;
use crate::commands::{Session, input};
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
        let before = client.get(&path, &[]).await?;
        let changes = self.changes(&before)?;
        if self.moves(&before) {
            self.consent.ask(&format!(
                "calls of {} /{} get 404 from now on",
                before.text("method"),
                before.text("path").trim_start_matches('/')
            ))?;
        }
        let advice = "`kanat api update --help` lists the fields";
        session.change(&path, &changes, advice, whole).await
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

    fn changes(&self, before: &Json) -> Result<Json> {
        let status = self.response_status.as_deref().map(|status| {
            let number = status.parse::<u16>();
            number.map_or_else(|_| json!(status), |number| json!(number))
        });
        let headers = BTreeMap::from_iter(self.response_headers.iter().cloned());
        let members = json!({
            "name": self.name,
            "description": self.description,
            "path": self.path,
            "method": self.method,
            "flowName": self.flow,
            "authType": self.auth,
            "validationMode": self.validation,
            "deadline": self.deadline,
            "onTimeout": self.on_timeout,
            "strictResponse": self.strict_response,
            "responseStatus": status,
            "responseHeaders": (!headers.is_empty()).then_some(headers),
        });
        let oauth2 = self.oauth2.as_deref().map(input::json).transpose()?;
        Ok(Json::given(members)
            .with([("oauth2", oauth2), ("cors", self.cors(before))])
            .with(self.content.members("requestSchema")?))
    }

    /// The cross-origin rules of before with other origins; none where they stay.
    fn cors(&self, before: &Json) -> Option<Json> {
        let mut origins = self.cors_origins.clone();
        if origins.is_empty() {
            return None;
        }
        origins.retain(|origin| !origin.is_empty());
        let rules = before.at("cors").filter(|_| before.has("cors"));
        let rules = rules.cloned().unwrap_or_else(|| json!({}).into());
        Some(rules.with([("origins", Some(json!(origins).into()))]))
    }
}
