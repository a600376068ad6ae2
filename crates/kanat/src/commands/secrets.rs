//! `kanat secrets`: what the service seals at rest.

use anyhow::Result;
use clap::Subcommand;

use super::Session;
use crate::output::Json;

/// Commands for sealed secrets.
#[derive(Subcommand)]
pub enum Command {
    /// Seal everything anew: under a new master key, where the service keeps the key in a file of
    /// its own; else under the first one of those that it was given.
    Rotate,
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::Rotate => {
                let answer = session.client.post_long("/secrets/rotate", "{}").await?;
                session.print(&answer, summary)?;
                session.hint(&next(&answer));
                Ok(())
            }
        }
    }
}

fn summary(answer: &Json) -> String {
    let key = answer.text("keyId");
    let resealed = answer.text("resealed");
    let which = if answer.text("newKey") == "true" {
        "the new master key"
    } else {
        "the master key"
    };
    format!("{resealed} values were sealed anew; everything is under {which} {key}")
}

/// Returns what is to be done now.
fn next(answer: &Json) -> String {
    let former = answer.texts("formerKeys");
    let lost = match answer.text("unreadable").as_str() {
        "" | "0" => String::new(),
        unreadable => format!("no key opens {unreadable} values, which the log names; "),
    };
    if former.is_empty() {
        return format!(
            "{lost}former backups open with the master.key that was copied with them, and with no \
             other: make new ones now"
        );
    }
    let former = former.join(", ");
    let from = answer.text("formerKeysMayGoAt");
    format!(
        "{lost}from {from} on the settings of every control plane do without the former key \
         {former}"
    )
}
