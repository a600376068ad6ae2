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
        let advice = "`kanat api update --help` lists the fields";
        if !changes.is_empty() {
            self.ask(&before, &changes)?;
        }
        session.change(&path, &changes, advice, whole).await
    }

    /// Asks where callers are shut out, or let in without a credential.
    fn ask(&self, before: &Json, changes: &Json) -> Result<()> {
        let consequences = [self.moved(before), self.opened_or_closed(before)];
        let consequences: Vec<String> = consequences.into_iter().flatten().collect();
        if !consequences.is_empty() {
            return self.consent.ask(&consequences.join("; "));
        }
        let fields: Vec<&str> = changes.members("").map(|(name, _)| name).collect();
        self.consent.announce(&format!(
            "published API {} would be changed: {}",
            before.text("name"),
            fields.join(", ")
        ))
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

    /// Returns what becomes of the calls that there are where another path or method is given.
    fn moved(&self, before: &Json) -> Option<String> {
        let bare = |path: &str| path.trim_matches('/').to_owned();
        let former = bare(&before.text("path"));
        let path = self.path.as_deref().map_or_else(|| former.clone(), bare);
        let method = before.text("method");
        let keeps_method = self
            .method
            .as_ref()
            .is_none_or(|given| given.eq_ignore_ascii_case(&method));
        let place = place(before);
        if shape(&path) != shape(&former) {
            Some(format!(
                "calls of {place} get 404 from now on, unless another API has the new place"
            ))
        } else if !keeps_method {
            Some(format!(
                "calls of {place} get 405 from now on, unless another API takes that method"
            ))
        } else {
            (path != former).then(|| {
                format!(
                    "calls of {place} go on, and their flow gets the parameters of the path by \
                     their new names: /{path}"
                )
            })
        }
    }

    /// Returns who may call from now on where another kind of authentication is given.
    fn opened_or_closed(&self, before: &Json) -> Option<String> {
        let former = before.text("authType");
        let auth = self.auth.as_ref().filter(|auth| **auth != former)?;
        let place = place(before);
        let text = match (auth.as_str(), former.as_str()) {
            ("none", _) => format!("anybody may call {place} without a credential from now on"),
            (_, "api_key") => format!("calls of {place} with a consumer key get 401 from now on"),
            (_, "oauth2") => format!("calls of {place} with an access token get 401 from now on"),
            _ => format!("calls of {place} without a credential get 401 from now on"),
        };
        Some(text)
    }

    /// Returns the members of the request.
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

/// Returns the method and the path of an API.
fn place(api: &Json) -> String {
    let path = api.text("path");
    format!("{} /{}", api.text("method"), path.trim_start_matches('/'))
}

/// Returns a path without the names of its parameters, which make no difference to calls.
fn shape(path: &str) -> Vec<&str> {
    let segments = path.split('/');
    segments
        .map(|segment| {
            if segment.starts_with('{') {
                "{}"
            } else {
                segment
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        update: Update,
    }

    /// Returns what becomes of calls of an API with this authentication by an update.
    fn consequence(auth: &str, arguments: &str) -> Option<String> {
        let before = format!(r#"{{"method":"POST","path":"/stock","authType":"{auth}"}}"#);
        let before = Json::parse(&before).unwrap();
        let arguments = ["update", "stock"].into_iter().chain(arguments.split(' '));
        let update = Command::parse_from(arguments).update;
        update.opened_or_closed(&before)
    }

    #[test]
    fn another_authentication_lets_callers_in_or_shuts_them_out() {
        for (former, auth, expected) in [
            ("api_key", "none", "anybody may call POST /stock"),
            ("oauth2", "none", "anybody may call POST /stock"),
            ("api_key", "oauth2", "with a consumer key get 401"),
            ("oauth2", "api_key", "with an access token get 401"),
            ("none", "api_key", "without a credential get 401"),
        ] {
            let text = consequence(former, &format!("--auth {auth}")).unwrap();
            assert!(text.contains(expected), "{former} to {auth}: {text}");
        }
    }

    #[test]
    fn what_leaves_the_authentication_alone_shuts_nobody_out() {
        assert_eq!(consequence("api_key", "--auth api_key"), None);
        assert_eq!(consequence("api_key", "--deadline 2s"), None);
    }

    #[test]
    fn names_of_parameters_make_no_other_path() {
        assert_eq!(shape("things/{id}"), shape("things/{sku}"));
        assert_ne!(shape("things/{id}"), shape("things/id"));
    }
}
