//! `kanat logout`: forgets what `kanat login` saved.

use anyhow::Result;

use crate::client::credentials;
use crate::output;

/// Arguments of `kanat logout`.
#[derive(clap::Args)]
pub struct Logout {}

impl Logout {
    /// The key itself stays good; `kanat api-key revoke` ends it.
    pub fn run(self) -> Result<()> {
        match credentials::forget()? {
            Some(path) => output::line(&format!("logged out: {} is removed", path.display())),
            None => output::line("nobody was logged in"),
        }
    }
}
