//! `kanat whoami`: the service that commands speak to, and as whom.

use anyhow::Result;

use super::Session;
use crate::output::table;

/// Arguments of `kanat whoami`.
#[derive(clap::Args)]
pub struct Whoami {}

const FIELDS: &str = "API key:name,Role:role,Account:account.name,Environment:environment.name,\
                      Id:id";

impl Whoami {
    pub async fn run(self, session: &Session) -> Result<()> {
        let url = session.client.url();
        session
            .show("/me", |me| {
                format!("Service:      {url}\n{}", table::fields(me, FIELDS))
            })
            .await
    }
}
