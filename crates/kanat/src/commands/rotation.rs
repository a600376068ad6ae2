//! Replacement of a secret by a new one: the former one ends at once, or after a grace period.

use std::time::Duration;

use anyhow::Result;
use kanat_model::Timestamp;

use super::confirm::Consent;
use crate::client::Refusal;

/// Flags of commands that replace a secret.
#[derive(clap::Args)]
pub struct Rotation {
    /// How long the former one is taken beside the new one, such as `24h` [default: not at all,
    /// after a question].
    #[arg(long)]
    pub grace: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

impl Rotation {
    /// Tells that `what` will be replaced. Asks for consent where the former one ends at once, with
    /// these `consequences`.
    ///
    /// # Errors
    ///
    /// When the answer is no, and when there is neither `--yes` nor a terminal.
    pub fn ask(&self, what: &str, consequences: &str) -> Result<()> {
        if self.consent.is_dry_run()
            && let Some(grace) = &self.grace
            && let Err(reason) = kanat_flow::duration::parse(grace)
        {
            let error = kanat_model::Error::field("gracePeriod", reason);
            return Err(Refusal::of(&error).into());
        }
        match &self.grace {
            Some(grace) if !ends_at_once(grace) => self.consent.announce(&format!(
                "{what} will be replaced, and taken for another {grace}"
            )),
            Some(_) | None => self.consent.ask(&format!(
                "{what} will be replaced, and end at once; {consequences}"
            )),
        }
    }

    /// Returns whether the answer is given on the command line, so that nothing has to be looked up
    /// for a question.
    pub fn is_given(&self) -> bool {
        self.consent.is_given()
    }

    /// Returns the notice about the former one, which was replaced at this instant (ISO 8601).
    pub fn notice(&self, what: &str, at: &str) -> String {
        let grace = self
            .grace
            .as_deref()
            .and_then(|grace| kanat_flow::duration::parse(grace).ok());
        match (grace.unwrap_or(Duration::ZERO), Timestamp::parse(at)) {
            (Duration::ZERO, _) => format!("the former {what} is taken no more"),
            (grace, Some(at)) => format!("the former {what} is taken until {}", at.after(grace)),
            (grace, None) => format!(
                "the former {what} is taken for another {}",
                kanat_flow::duration::format(grace)
            ),
        }
    }
}

/// Returns whether a grace period is none. One that cannot be read is refused by the service.
fn ends_at_once(grace: &str) -> bool {
    kanat_flow::duration::parse(grace) == Ok(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        rotation: Rotation,
    }

    #[test]
    fn without_a_grace_period_the_former_one_ends_at_once() {
        let rotation = |arguments: &[&str]| {
            Command::parse_from([&["rotate"][..], arguments].concat()).rotation
        };
        let notice = |arguments: &[&str]| rotation(arguments).notice("key", "2026-01-31T12:00:00Z");
        assert_eq!(
            notice(&["--grace", "1d"]),
            "the former key is taken until 2026-02-01T12:00:00.000Z"
        );
        for arguments in [&["--grace", "0s"][..], &[]] {
            assert_eq!(notice(arguments), "the former key is taken no more");
            let yes = [arguments, &["--yes"]].concat();
            rotation(&yes).ask("the key", "").unwrap();
        }
    }
}
