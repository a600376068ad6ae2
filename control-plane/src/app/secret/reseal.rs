//! One pass over all sealed values of the store: what is under a former key is sealed under the one
//! in use.

use kanat_model::Result;
use kanat_model::id::{EnvironmentId, FlowId, InstanceId};
use kanat_store::audit::chain;
use kanat_store::sealed::{self, Column, Row};

use crate::app::App;
use crate::app::audit;
use crate::app::connector::{self, oauth};
use crate::app::environment;
use crate::app::flow::{definition, webhook};
use crate::app::{kept_answer, kept_key};
use crate::push::source;

/// Values of one transaction. A value may have some megabytes, and others wait for their turn to
/// write.
const BATCH_SIZE: u32 = 20;

/// Counts of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub resealed: u32,
    /// Number of values that no key at hand opens: they are as lost as they were before.
    pub unreadable: u32,
}

/// Seals anew all that is not under the key in use.
pub async fn all(app: &App) -> Result<Count> {
    let mut count = Count::default();
    for column in Column::ALL {
        let mut after = Row::default();
        while let Some(last) = some(app, column, &after, &mut count).await? {
            after = last;
        }
    }
    let mut tx = app.store.begin().await?;
    count.resealed += environment::renew_sealing_keys(&mut tx, &app.sealer).await?;
    for account in chain::accounts(&mut tx).await? {
        let name = audit::chain::key_name(&account);
        count.resealed += u32::from(kept_key::renew(&mut tx, &app.sealer, &name).await?);
    }
    sealed::forget_former_answers(&mut tx).await?;
    tx.commit().await?;
    Ok(count)
}

/// Seals some values behind a row anew; gives the row of the last one.
async fn some(app: &App, column: Column, after: &Row, count: &mut Count) -> Result<Option<Row>> {
    let mut tx = app.store.begin().await?;
    let values = sealed::page(&mut tx, column, after, &app.sealer.header(), BATCH_SIZE).await?;
    for value in &values {
        match app
            .sealer
            .renew(&value.sealed, &context(column, &value.row))
        {
            Ok(None) => {}
            Ok(Some(renewed)) => {
                // One that another control plane wrote meanwhile is under the first key as well.
                count.resealed +=
                    u32::from(sealed::replace(&mut tx, column, value, &renewed).await?);
            }
            Err(error) => {
                count.unreadable += 1;
                let Row { first, second } = &value.row;
                tracing::error!(
                    ?column,
                    row = %format!("{first} {second}").trim_end(),
                    %error,
                    "a sealed value cannot be opened",
                );
            }
        }
    }
    tx.commit().await?;
    Ok(values.into_iter().next_back().map(|value| value.row))
}

/// Returns what a value is sealed for.
fn context(column: Column, row: &Row) -> String {
    let Row { first, second } = row;
    match column {
        Column::WebhookToken => webhook::seal_context(&FlowId::from(first.as_str())),
        Column::Draft | Column::Version => definition::seal_context(&FlowId::from(first.as_str())),
        Column::ConnectorConfig => connector::seal_context(&InstanceId::from(first.as_str())),
        Column::OauthVerifier => oauth::verifier_context(&hex::decode(first).unwrap_or_default()),
        Column::OauthTokens => oauth::tokens_context(&InstanceId::from(first.as_str())),
        Column::Published => source::seal_context(&EnvironmentId::from(first.as_str()), second),
        Column::KeptAnswer => kept_answer::seal_context(first, second),
    }
}
