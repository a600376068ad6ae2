//! `kanat node`: the data-plane nodes as the control plane sees them.

use anyhow::Result;
use clap::Subcommand;

use super::{Page, Session};
use crate::output::table::Column;

/// Commands for nodes.
#[derive(Subcommand)]
pub enum Command {
    /// List the nodes, connected ones first.
    List {
        #[command(flatten)]
        page: Page,
    },
}

const COLUMNS: [Column; 7] = [
    ("ID", "id"),
    ("STATUS", "status"),
    ("ADDRESS", "address"),
    ("VERSION", "version"),
    ("GENERATION", "generation"),
    ("IN FLIGHT", "inFlight"),
    ("LAST SEEN", "lastSeenAt"),
];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::List { page } => session.list(
                &session.client.get("/nodes", &page.query()).await?,
                &COLUMNS,
            ),
        }
    }
}
