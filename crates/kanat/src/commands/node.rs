//! `kanat node`: the data-plane nodes as the control plane sees them.

use anyhow::Result;
use clap::Subcommand;

use super::{Page, Session};

/// Commands for nodes.
#[derive(Subcommand)]
pub enum Command {
    /// List the nodes, connected ones first.
    List {
        #[command(flatten)]
        page: Page,
    },
}

const COLUMNS: &str = "ID:id,STATUS:status,ADDRESS:address,VERSION:version,\
                       GENERATION:generation,IN FLIGHT:inFlight,LAST SEEN:lastSeenAt";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::List { page } => session.list("/nodes", page.with([]), COLUMNS).await,
        }
    }
}
