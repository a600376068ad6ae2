//! Schemas of the answers of an instance's endpoints: taken up as nodes report them, listed, and
//! compared from check to check. Shapes hold no values.

use std::collections::HashMap;

use kanat_catalog::shape::{Change, Shape, compare};
use kanat_model::id::InstanceId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, Result, Timestamp};
use kanat_store::Db;
use kanat_store::endpoint_schema::{self, EndpointSchema};

use super::live;
use crate::app::Call;

/// No more endpoints of one instance are kept apart.
const MAX_ENDPOINTS: u64 = 500;

/// Result of a check of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointCheck {
    pub endpoint: String,
    /// It has answered now, or since the last check.
    pub seen: bool,
    pub changes: Vec<Change>,
    /// Why it could not be asked now.
    pub error: Option<String>,
}

/// Takes up what was seen of an endpoint. The first that is seen of it is what later ones are
/// compared with.
pub async fn take_up(db: &mut Db, id: &InstanceId, endpoint: &str, shape: Shape) -> Result<()> {
    if shape.is_empty() {
        return Ok(());
    }
    let now = Timestamp::now();
    let samples = shape.seen();
    let row = match endpoint_schema::get(db, id, endpoint).await? {
        Some(row) => {
            let mut seen = read(&row.seen)?;
            seen.merge(shape);
            EndpointSchema {
                seen: text(&seen)?,
                samples: row.samples + samples,
                last_seen_at: now,
                ..row
            }
        }
        None if endpoint_schema::list(
            db,
            id,
            Page {
                limit: 1,
                offset: 0,
            },
        )
        .await?
        .total
            >= MAX_ENDPOINTS =>
        {
            return Ok(());
        }
        None => EndpointSchema {
            instance_id: id.clone(),
            endpoint: endpoint.to_owned(),
            accepted: Some(text(&shape)?),
            seen: text(&Shape::default())?,
            samples,
            first_seen_at: now,
            last_seen_at: now,
            checked_at: None,
        },
    };
    endpoint_schema::put(db, &row).await?;
    Ok(())
}

/// The endpoints of an instance by name, each with all that was seen of it.
pub async fn list(
    call: &Call,
    id: &InstanceId,
    page: Page,
) -> Result<ListPage<(EndpointSchema, Shape)>> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, id).await?;
    let ListPage { items, total, page } = endpoint_schema::list(&mut tx, id, page).await?;
    let whole = |row: EndpointSchema| {
        let shape = whole(&row)?;
        Ok((row, shape))
    };
    Ok(ListPage {
        items: items.into_iter().map(whole).collect::<Result<_>>()?,
        total,
        page,
    })
}

/// Has nodes tell what they have received, asks the endpoints that can be asked, and compares what
/// each answers, now and since the last check, with what it answered before, which from now on is
/// both.
pub async fn check(call: &Call, id: &InstanceId) -> Result<(Timestamp, Vec<EndpointCheck>)> {
    existing_now(call, id).await?;
    call.app
        .hub
        .flush_observations(&call.caller.environment_id)
        .await;
    let now = Timestamp::now();
    let mut answers = ask(call, id).await?;
    let mut tx = call.write().await?;
    call.existing(&mut tx, id).await?;
    let mut checked = Vec::new();
    let mut page = Page {
        limit: Page::MAX_LIMIT,
        offset: 0,
    };
    loop {
        let found = endpoint_schema::list(&mut tx, id, page).await?;
        if found.items.is_empty() {
            break;
        }
        page.offset += page.limit;
        for row in found.items {
            let before = accepted(&row)?;
            let mut seen = read(&row.seen)?;
            let mut error = None;
            let mut last_seen_at = row.last_seen_at;
            match answers.remove(&row.endpoint) {
                Some(Ok(shape)) => {
                    last_seen_at = now;
                    seen.merge(shape);
                }
                Some(Err(message)) => error = Some(message),
                None => {}
            }
            let changes = compare(&before, &seen);
            // What has changed is what is expected from now on; what has not is only known better.
            let next = if changes.is_empty() {
                whole(&row)?
            } else {
                seen.clone()
            };
            // Before the first check it is known because it has answered.
            let answered = !seen.is_empty() || row.checked_at.is_none();
            checked.push(EndpointCheck {
                endpoint: row.endpoint.clone(),
                seen: answered,
                changes,
                error,
            });
            let row = EndpointSchema {
                accepted: Some(text(&next)?),
                seen: text(&Shape::default())?,
                checked_at: Some(now),
                last_seen_at,
                ..row
            };
            endpoint_schema::put(&mut tx, &row).await?;
        }
    }
    tx.commit().await?;
    Ok((now, checked))
}

/// Errors when there is no such instance to ask for.
async fn existing_now(call: &Call, id: &InstanceId) -> Result<()> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, id).await?;
    Ok(())
}

/// Asks the endpoints of an instance for their present answers.
async fn ask(call: &Call, id: &InstanceId) -> Result<HashMap<String, Result<Shape, String>>> {
    let mut tx = call.read().await?;
    let row = call.existing(&mut tx, id).await?;
    let page = Page {
        limit: Page::MAX_LIMIT,
        offset: 0,
    };
    let known: Vec<String> = endpoint_schema::list(&mut tx, id, page)
        .await?
        .items
        .into_iter()
        .map(|row| row.endpoint)
        .collect();
    let instance = super::ready(&call.app, &mut tx, &row).await?;
    drop(tx);
    Ok(match instance {
        Ok(instance) => live::ask(&call.app, &instance, &known).await,
        Err(message) => known
            .into_iter()
            .map(|endpoint| (endpoint, Err(message.clone())))
            .collect(),
    })
}

fn accepted(row: &EndpointSchema) -> Result<Shape> {
    row.accepted
        .as_deref()
        .map_or_else(|| Ok(Shape::default()), read)
}

fn whole(row: &EndpointSchema) -> Result<Shape> {
    let mut shape = accepted(row)?;
    shape.merge(read(&row.seen)?);
    Ok(shape)
}

fn read(text: &str) -> Result<Shape> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(error = %error, "a tracked schema cannot be read");
        Error::internal()
    })
}

fn text(shape: &Shape) -> Result<String> {
    serde_json::to_string(shape).map_err(|error| {
        tracing::error!(error = %error, "a tracked schema cannot be written");
        Error::internal()
    })
}
