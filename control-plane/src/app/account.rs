//! Use-cases of the account: the caller, and the account and environment of the call.

use kanat_model::Error;
use kanat_store::account::{self, Account};
use kanat_store::environment::{self, Environment};

use crate::app::{App, Caller};

/// The account and the environment that a caller works with.
pub struct Place {
    pub account: Account,
    pub environment: Environment,
}

/// Returns the caller's account and the environment of the request.
pub async fn place(app: &App, caller: &Caller) -> Result<Place, Error> {
    let mut tx = app.store.read().await?;
    let account = account::get(&mut tx, &caller.account_id).await?;
    let account = account.ok_or_else(|| Error::not_found("account", caller.account_id.as_str()))?;
    let environment =
        environment::find(&mut tx, &caller.account_id, caller.environment_id.as_str()).await?;
    let environment = environment
        .ok_or_else(|| Error::not_found("environment", caller.environment_id.as_str()))?;
    Ok(Place {
        account,
        environment,
    })
}
