//! Use-cases of environments.

use kanat_model::Error;
use kanat_model::page::{Page, Paged};
use kanat_store::environment::{self, Environment};

use crate::app::{App, Caller};

/// The account's environments, oldest first.
pub async fn list(app: &App, caller: &Caller, page: Page) -> Result<Paged<Environment>, Error> {
    let mut tx = app.store.read().await?;
    Ok(environment::list(&mut tx, &caller.account_id, page).await?)
}
