//! `kanat flow diff`: the paths of a definition whose values differ.

use std::fmt::Write;

use anyhow::Result;

use crate::client::name::FLOW;
use crate::commands::Session;
use crate::exit::usage;
use crate::output::Json;

/// Arguments of `kanat flow diff`.
#[derive(clap::Args)]
pub struct Diff {
    flow: String,
    /// Number of a version, or `draft` [default: the version that runs].
    from: Option<String>,
    /// Number of a version, or `draft`.
    #[arg(default_value = "draft")]
    to: String,
}

impl Diff {
    pub async fn run(self, session: &Session) -> Result<()> {
        let path = session.client.path(&FLOW, &self.flow).await?;
        let from = match self.from {
            Some(from) => from,
            None => deployed(session, &path, &self.flow).await?,
        };
        let number = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
        let query = [("to", number(&self.to))];
        let answer = session
            .client
            .get(&format!("{path}/versions/{}/diff", number(&from)), &query)
            .await?;
        session.print(&answer, show)
    }
}

async fn deployed(session: &Session, path: &str, name: &str) -> Result<String> {
    let flow = session.client.get(path, &[]).await?;
    match flow.text("deployedVersion") {
        none if none.is_empty() => Err(usage(format!(
            "flow {name} was never deployed: there is nothing to compare"
        ))),
        version => Ok(version),
    }
}

/// A line for each path: `+` is new, `-` is gone, `~` has another value.
fn show(answer: &Json) -> String {
    let mut out = String::new();
    for change in answer.list("changes") {
        let value = |path: &str| change.at(path).map(Json::compact);
        let _ = match (value("before"), value("after")) {
            (None, after) => writeln!(
                out,
                "+ {}: {}",
                change.text("path"),
                after.unwrap_or_default()
            ),
            (Some(before), None) => writeln!(out, "- {}: {before}", change.text("path")),
            (Some(before), Some(after)) => {
                writeln!(out, "~ {}: {before} -> {after}", change.text("path"))
            }
        };
    }
    if out.is_empty() {
        return format!(
            "{} and {} are the same definition",
            edition(answer, "from"),
            edition(answer, "to")
        );
    }
    out
}

fn edition(answer: &Json, path: &str) -> String {
    match answer.text(path).as_str() {
        "draft" => "the draft".to_owned(),
        number => format!("version {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_each_path() {
        let answer = r#"{"from":"1","to":"draft","changes":[
            {"path":"mapping.a","before":"source.x","after":"source.y"},
            {"path":"when","after":"source.a"},{"path":"b","before":1}]}"#;
        let shown = show(&Json::parse(answer).unwrap());
        assert_eq!(
            shown,
            "~ mapping.a: \"source.x\" -> \"source.y\"\n+ when: \"source.a\"\n- b: 1\n"
        );
        let same = show(&Json::parse(r#"{"from":"1","to":"draft","changes":[]}"#).unwrap());
        assert_eq!(same, "version 1 and the draft are the same definition");
    }
}
