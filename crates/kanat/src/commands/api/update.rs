//! `kanat api update`: changes to a published API and to the current one of its versions.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::show::whole;
use super::{Conduct, Content};
use crate::client::name::API;
use crate::commands::confirm::Consent;
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
    #[command(flatten)]
    conduct: Conduct,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    consent: Consent,
}

impl Update {
    pub async fn run(self, session: &Session) -> Result<()> {
        self.check()?;
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

    /// Refuses words that the service does not take, before a question is asked.
    fn check(&self) -> Result<()> {
        let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
        let method = self
            .method
            .as_ref()
            .map(|method| method.to_ascii_uppercase());
        for (flag, given, known) in [
            ("--method", method.as_ref(), &methods[..]),
            ("--auth", self.auth.as_ref(), &["api_key", "oauth2", "none"]),
            (
                "--validation",
                self.validation.as_ref(),
                &["strict", "lenient"],
            ),
        ] {
            if let Some(given) = given
                && !known.contains(&given.as_str())
            {
                return Err(usage(format!(
                    "{flag} {given:?} is none of {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
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
        let members = json!({
            "name": self.name,
            "description": self.description,
            "path": self.path,
            "method": self.method,
            "flowName": self.flow,
            "authType": self.auth,
            "validationMode": self.validation,
        });
        let oauth2 = self.oauth2.as_deref().map(input::json).transpose()?;
        Ok(Json::given(members)
            .with([("oauth2", oauth2)])
            .with(self.conduct.members(before))
            .with(self.content.members("requestSchema")?))
    }
}
