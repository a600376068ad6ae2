//! Announcements between processes over PostgreSQL's notifications, so that the others learn of a
//! change before their next poll. Announcements may get lost, so listeners poll as well. SQLite has
//! one process and no announcements.

use std::time::Duration;

use kanat_database::Servers;
use kanat_model::id::{EnvironmentId, NodeId};

use crate::{Db, Result};

const CHANNEL: &str = "kanat_announcements";

/// A change that other processes hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// An environment reached a generation; what is urgent must not wait for other changes.
    Published {
        environment_id: EnvironmentId,
        generation: u64,
        urgent: bool,
    },
    /// An operator wishes a node to drain within that time.
    Drain { node_id: NodeId, within: Duration },
}

const NOTIFY: &str = "SELECT CAST(pg_notify($1, $2) AS TEXT)";

/// Tells the other processes, once the transaction is committed.
pub async fn announce(db: &mut Db, announcement: &Announcement) -> Result<()> {
    if db.is_shared() {
        db.execute(NOTIFY, &[&CHANNEL, &announcement.to_text()])
            .await?;
    }
    Ok(())
}

/// Hears what is announced.
pub struct Listener {
    inner: kanat_database::Listener,
}

impl Listener {
    pub(crate) async fn open(servers: &Servers) -> Result<Self> {
        Ok(Self {
            inner: kanat_database::Listener::connect(servers, CHANNEL).await?,
        })
    }

    /// Returns the next announcement.
    ///
    /// # Errors
    /// The connection was lost, and with it perhaps some announcements: open another one.
    pub async fn next(&mut self) -> Result<Announcement> {
        loop {
            // Another build may say more than this one knows.
            if let Some(announcement) = Announcement::parse(&self.inner.next().await?) {
                return Ok(announcement);
            }
        }
    }
}

impl Announcement {
    fn to_text(&self) -> String {
        match self {
            Self::Published {
                environment_id,
                generation,
                urgent,
            } => {
                let urgency = if *urgent { "now" } else { "soon" };
                format!("published {environment_id} {generation} {urgency}")
            }
            Self::Drain { node_id, within } => format!("drain {node_id} {}", within.as_secs()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        match words.next()? {
            "published" => Some(Self::Published {
                environment_id: EnvironmentId::from(words.next()?),
                generation: words.next()?.parse().ok()?,
                urgent: words.next()? == "now",
            }),
            "drain" => Some(Self::Drain {
                node_id: NodeId::from(words.next()?),
                within: Duration::from_secs(words.next()?.parse().ok()?),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_reads_back() {
        let published = |urgent| {
            let environment_id = EnvironmentId::from("env_1");
            Announcement::Published {
                environment_id,
                generation: 7,
                urgent,
            }
        };
        let drain = Announcement::Drain {
            node_id: NodeId::from("node_1"),
            within: Duration::from_secs(25),
        };
        for said in [published(true), published(false), drain] {
            assert_eq!(Announcement::parse(&said.to_text()), Some(said));
        }
        for text in [
            "",
            "published env_1",
            "published env_1 x now",
            "drain node_1",
            "tomorrow env_1 7 now",
        ] {
            assert_eq!(Announcement::parse(text), None, "{text}");
        }
    }
}
