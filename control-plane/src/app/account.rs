//! Use-cases of the account: the caller, and the account and environment of the call.

use kanat_model::Error;
use kanat_store::account::{self, Account};
use kanat_store::environment::{self, Environment};

use crate::app::Call;

/// The account and the environment that a caller works with.
pub struct Place {
    pub account: Account,
    pub environment: Environment,
}

/// Returns the caller's account and the environment of the request.
pub async fn place(call: &Call) -> Result<Place, Error> {
    let mut tx = call.read().await?;
    let account = account::get(&mut tx, &call.caller.account_id).await?;
    let account =
        account.ok_or_else(|| Error::not_found("account", call.caller.account_id.as_str()))?;
    let environment = environment::find(
        &mut tx,
        &call.caller.account_id,
        call.caller.environment_id.as_str(),
    )
    .await?;
    let environment = environment
        .ok_or_else(|| Error::not_found("environment", call.caller.environment_id.as_str()))?;
    Ok(Place {
        account,
        environment,
    })
}
