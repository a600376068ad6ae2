//! Resources that stay because deployed flows, published APIs or waiting messages use them.

use kanat_message_log::{Filter, Position, Tenant};
use kanat_model::Error;
use kanat_model::message::Status;
use kanat_model::page::Page;
use kanat_store::published_api::uses;
use kanat_store::{Db, flow_use};

use crate::app::App;

/// Users that an error names. The store returns one more where there are more.
const MAX_NAMED: usize = 10;

/// Id under which the use of a variable of an environment is noted.
pub fn variable_id(environment: &str, name: &str) -> String {
    format!("variable/{environment}/{name}")
}

/// Refuses a change of a resource that is in use. The error says `is_used`, as in `adapter "x" is
/// called by`, the users, and then `consequence`.
pub async fn refuse(
    app: &App,
    db: &mut Db,
    resource_id: &str,
    is_used: &str,
    consequence: &str,
) -> Result<(), Error> {
    let refuse = |kind: &str, users: &[String]| {
        if users.is_empty() {
            return Ok(());
        }
        let named = users[..users.len().min(MAX_NAMED)].join(", ");
        let others = if users.len() > MAX_NAMED {
            " and others"
        } else {
            ""
        };
        let message = format!("{is_used} {kind}: {named}{others}{consequence}");
        Err(Error::precondition(message))
    };
    refuse("deployed flows", &flow_use::users(db, resource_id).await?)?;
    let apis = uses::users(db, resource_id).await?;
    refuse("the answers of published APIs", &apis)?;
    // The log is asked last, because it counts messages.
    let flows = waiting(app, db, resource_id).await?;
    refuse(
        "messages that wait under earlier versions of the flows",
        &flows,
    )
}

/// Returns the names of flows with messages that wait under an earlier version which uses the
/// resource: these messages could not end well without it.
async fn waiting(app: &App, db: &mut Db, resource_id: &str) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for user in flow_use::former(db, resource_id).await? {
        let tenant = Tenant {
            account_id: user.account_id,
            environment_id: user.environment_id,
        };
        let filter = Filter {
            statuses: Status::WAITING.to_vec(),
            max_version: Some(user.last_version),
            ..Filter::flow(tenant, user.flow_id)
        };
        let one = Position::Page(Page {
            limit: 1,
            offset: 0,
        });
        if app.log.list(&filter, one).await?.total > 0 {
            names.push(user.name);
        }
    }
    Ok(names)
}
