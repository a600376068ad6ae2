//! `kanat whoami`: the service that commands speak to, and as whom.

use anyhow::Result;

use super::Session;
use crate::output::table;

/// Arguments of `kanat whoami`.
#[derive(clap::Args)]
pub struct Whoami {}

impl Whoami {
    pub async fn run(self, session: &Session) -> Result<()> {
        let me = session.client.get("/me", &[]).await?;
        let fields = [
            ("API key", "name"),
            ("Role", "role"),
            ("Account", "account.name"),
            ("Environment", "environment.name"),
            ("Id", "id"),
        ];
        session.print(&me, |me| {
            format!(
                "Service:      {}\n{}",
                session.client.url(),
                table::fields(me, &fields)
            )
        })
    }
}
