//! Reach of published APIs: which calls come to one. The host of a call chooses the environment, so
//! that an environment without an address of its own is reached by no call, unless it is the
//! default one.

use anyhow::Result;

use crate::client::Client;
use crate::client::name::ENVIRONMENT;
use crate::commands::Session;
use crate::commands::hint::quoted;
use crate::exit::failure;
use crate::output::{Format, Json};

/// Tells a person when no call reaches an API or a version of one.
pub async fn hint(session: &Session, of: &Json) {
    if session.format == Format::Table
        && let Some(reason) = missing(&session.client, of).await
    {
        session.hint(&reason);
    }
}

/// Refuses an API that no call reaches: a call would run another environment's API.
pub async fn require(client: &Client, api: &Json) -> Result<()> {
    match missing(client, api).await {
        Some(reason) => Err(failure(reason)),
        None => Ok(()),
    }
}

/// Adds to the failure to reach an API where its address comes from, and what to do.
pub async fn explain(client: &Client, api: &Json, error: &anyhow::Error) -> anyhow::Error {
    let path = ENVIRONMENT.at(&api.text("environmentId"));
    let environment = client.get(&path, &[]).await;
    let environment = environment.ok().filter(|found| found.has("baseUrl"));
    let Some(environment) = environment else {
        return failure(format!(
            "{error}\nthe address is the one that the service has for itself"
        ));
    };
    let name = environment.text("name");
    failure(format!(
        "{error}\nthe address comes from the baseUrl of environment {name}, which is {}; change it \
         with `kanat environment update {} --base-url https://HOST`",
        environment.text("baseUrl"),
        quoted(&name)
    ))
}

/// Returns why no call reaches an API, and what to do.
async fn missing(client: &Client, of: &Json) -> Option<String> {
    if of.has("url") {
        return None;
    }
    let path = ENVIRONMENT.at(&of.text("environmentId"));
    let environment = client.get(&path, &[]).await;
    let name = environment.map_or_else(|_| of.text("environmentId"), |found| found.text("name"));
    Some(format!(
        "nothing reaches the published APIs of environment {name} yet: it has no base URL; give it \
         a host of its own with `kanat environment update {} --base-url https://HOST`",
        quoted(&name)
    ))
}
