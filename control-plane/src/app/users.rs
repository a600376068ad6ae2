//! Resources that stay because deployed flows or published APIs use them.

use kanat_model::Error;
use kanat_store::published_api::uses;
use kanat_store::{Db, flow_use};

/// Users that an error names. The store returns one more where there are more.
const MAX_NAMED: usize = 10;

/// Id under which the use of a variable of an environment is noted.
pub fn variable_id(environment: &str, name: &str) -> String {
    format!("variable/{environment}/{name}")
}

/// Refuses a change of a resource that is in use. The error says `is_used`, as in `adapter "x" is
/// called by`, the users, and then `consequence`.
pub async fn refuse(
    db: &mut Db,
    resource_id: &str,
    is_used: &str,
    consequence: &str,
) -> Result<(), Error> {
    let flows = flow_use::users(db, resource_id).await?;
    let apis = uses::users(db, resource_id).await?;
    for (kind, users) in [
        ("deployed flows", flows),
        ("the answers of published APIs", apis),
    ] {
        if !users.is_empty() {
            let named = users[..users.len().min(MAX_NAMED)].join(", ");
            let others = if users.len() > MAX_NAMED {
                " and others"
            } else {
                ""
            };
            let message = format!("{is_used} {kind}: {named}{others}{consequence}");
            return Err(Error::precondition(message));
        }
    }
    Ok(())
}
