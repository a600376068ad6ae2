//! `kanat version`: versions of published APIs.

use anyhow::Result;
use clap::Subcommand;
use kanat_model::published_api::VersionStatus;
use kanat_model::{Code, Error, Timestamp};
use serde_json::json;

use super::api::{Content, VERSIONS, reach};
use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session};
use crate::client::name::{API, segment};
use crate::client::{Client, MAX_PAGE, Refusal};
use crate::output::Json;

/// Commands for versions. An API is named by its id or its name, a version by its label, as in
/// `v2`.
#[derive(Subcommand)]
pub enum Command {
    /// Add an active version to a published API; what is left out is as in the current one.
    Create {
        api: String,
        /// `v` and a number.
        version: String,
        /// Another flow than that of the current version.
        #[arg(long)]
        flow: Option<String>,
        #[command(flatten)]
        content: Content,
    },
    /// List the versions of a published API.
    List {
        api: String,
        #[command(flatten)]
        page: Page,
    },
    /// Set the date on which a version of a published API may end; until then it serves, and its
    /// answers name the date.
    Deprecate {
        api: String,
        version: String,
        /// YYYY-MM-DD.
        #[arg(long)]
        sunset: String,
    },
    /// End a deprecated version of a published API.
    Retire {
        api: String,
        version: String,
        /// Also before its sunset date.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create {
                api,
                version,
                flow,
                content,
            } => {
                let body = Json::given(json!({ "version": version, "flowName": flow }))
                    .with(content.members("schema")?);
                let path = versions(client, &api).await?;
                let created = |answer: &Json| match answer.has("url") {
                    true => format!("version {version} of {api} is at {}", answer.text("url")),
                    false => format!("version {version} of {api} is created"),
                };
                session.warn(&session.post(&path, &body, created).await?);
                let found = client.get(&client.path(&API, &api).await?, &[]).await?;
                reach::hint(session, &found).await;
                Ok(())
            }
            Self::List { api, page } => {
                let path = versions(client, &api).await?;
                session.list(&path, page.with([]), VERSIONS).await
            }
            Self::Deprecate {
                api,
                version,
                sunset,
            } => {
                let all = versions(client, &api).await?;
                let path = format!("{all}/{}/deprecate", segment(&version));
                let body = json!({ "sunsetDate": sunset });
                let deprecated = session.post(&path, &body, |answer| {
                    let date = answer.text("sunsetDate");
                    format!("version {version} of {api} is deprecated, and may end on {date}")
                });
                let answer = deprecated.await?;
                let today = Timestamp::now().to_string();
                if answer.text("sunsetDate").as_str() < today.get(..10).unwrap_or_default() {
                    session.hint(&format!(
                        "that day is past: `kanat version retire {} {version}` may end it now",
                        quoted(&api)
                    ));
                }
                Ok(())
            }
            Self::Retire {
                api,
                version,
                force,
                consent,
            } => {
                let all = versions(client, &api).await?;
                let query = [("limit", MAX_PAGE.to_string())];
                let listed = client.get(&all, &query).await?;
                if consent.is_dry_run() {
                    let found = client.get(&client.path(&API, &api).await?, &[]).await?;
                    let name = found.text("name");
                    check_retirement(&name, listed.list("data"), &version, force)?;
                }
                let serves = |other: &Json| {
                    other.text("status") != "retired" && other.text("version") != version
                };
                let what = format!("version {version} of {api} will answer 410 for ever");
                let early = check_retirement(&api, listed.list("data"), &version, false).is_err();
                match listed.list("data").iter().any(serves) {
                    false => consent.ask(&format!("{what}, and no other one serves"))?,
                    true if force && early => {
                        let promise = promise(listed.list("data"), &version);
                        consent.ask(&format!("{what}, although {promise}"))?;
                    }
                    true => consent.announce(&what)?,
                }
                let path = format!("{all}/{}/retire", segment(&version));
                let retired = |_: &Json| format!("version {version} of {api} is retired");
                let body = json!({ "force": force });
                session.post(&path, &body, retired).await.map(drop)
            }
        }
    }
}

/// Errors when the service would refuse to retire a version of the API `name`, which has these
/// versions.
fn check_retirement(name: &str, versions: &[Json], label: &str, force: bool) -> Result<()> {
    let mut versions = versions.iter();
    let found = versions.find(|version| version.text("version") == label);
    let found = found.ok_or_else(|| {
        let text = format!("published API {name:?} has no version {label:?}");
        Refusal::of(&Error::new(Code::NotFound, text))
    })?;
    // The service says what it makes of a status that is not known here.
    let Some(status) = VersionStatus::parse(&found.text("status")) else {
        return Ok(());
    };
    let sunset = Timestamp::parse(&format!("{}T00:00:00Z", found.text("sunsetDate")));
    let retired = match force {
        true => status.retire_at_once(),
        false => status.retire(sunset, Timestamp::now()),
    };
    retired.map_err(|error| Refusal::of(&error))?;
    Ok(())
}

/// Returns what callers of a version that is not to be retired yet rely on.
fn promise(versions: &[Json], label: &str) -> String {
    let found = versions
        .iter()
        .find(|version| version.text("version") == label);
    match found.map(|version| version.text("sunsetDate")) {
        Some(date) if !date.is_empty() => format!("it was to answer until {date}"),
        _ => "it is not deprecated".to_owned(),
    }
}

async fn versions(client: &Client, api: &str) -> Result<String> {
    Ok(format!("{}/versions", client.path(&API, api).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_ends_as_the_retirement_would() {
        let versions = r#"{"data":[
            {"version":"v1","status":"active"},
            {"version":"v2","status":"deprecated","sunsetDate":"9999-01-31"},
            {"version":"v3","status":"deprecated","sunsetDate":"2020-01-31"},
            {"version":"v4","status":"retired"}
        ]}"#;
        let versions = Json::parse(versions).unwrap();
        let check = |label: &str, force: bool| {
            let checked = check_retirement("prices", versions.list("data"), label, force);
            checked.map_err(|error| error.to_string()).err()
        };
        for (label, expected) in [
            ("v1", "is active cannot be retired"),
            ("v2", "is to end on 9999-01-31"),
            ("v4", "is retired already"),
            ("v77", "published API \"prices\" has no version \"v77\""),
        ] {
            let error = check(label, false).unwrap();
            assert!(error.contains(expected), "{label}: {error}");
        }
        assert_eq!(check("v3", false), None);
        assert_eq!(check("v1", true), None);
        assert_eq!(check("v2", true), None);
        assert!(check("v4", true).is_some());
    }
}
