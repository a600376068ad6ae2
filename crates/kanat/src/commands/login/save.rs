//! The end of a login: what it found is saved, and a person sees what it is.

use anyhow::Result;

use crate::client::credentials::{Credentials, Lock};
use crate::output;

/// Saves credentials, and prints `summary`.
///
/// # Errors
/// The file cannot be written.
pub async fn save(credentials: &Credentials, summary: &str) -> Result<()> {
    let lock = Lock::take().await?;
    let path = lock.save(credentials)?;
    output::line(summary)?;
    if let Some(environment) = &credentials.environment {
        output::hint(&format!(
            "commands go to environment {environment} unless --env names another one"
        ));
    }
    output::hint(&format!("saved in {}", path.display()));
    Ok(())
}
