//! `kanat logout`: forgets what `kanat login` saved.

use anyhow::Result;

use crate::client::credentials;
use crate::output;

/// Arguments of `kanat logout`.
#[derive(clap::Args)]
pub struct Logout {}

impl Logout {
    /// A key itself stays good; `kanat api-key revoke` ends it. Tokens end by themselves.
    pub async fn run(self) -> Result<()> {
        match credentials::forget().await? {
            Some(path) => output::line(&format!("logged out: {} is removed", path.display())),
            None => output::line("nobody was logged in"),
        }
    }
}
