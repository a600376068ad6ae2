//! Reads of polls and of the records that flows have seen.

use kanat_model::id::FlowId;
use sqlx::Pool;

use crate::dialect::{Dialect, Statement};
use crate::row::{self, Columns};
use crate::{PollStanding, SeenRecord};

pub(crate) async fn standings<D: Dialect>(
    reader: &Pool<D>,
    flow_ids: &[FlowId],
) -> sqlx::Result<Vec<(FlowId, PollStanding)>> {
    let flow_ids: Vec<&str> = flow_ids.iter().map(FlowId::as_str).collect();
    let mut standings = Statement::<D>::new(
        "SELECT flow_id, due_at, held_until, ended_at, error FROM polls WHERE flow_id",
    );
    D::one_of_set(&mut standings.0, &flow_ids);
    let rows = standings.read(reader).await?;
    row::all(&rows, row::poll_standing)
}

pub(crate) async fn flows<D: Dialect>(reader: &Pool<D>) -> sqlx::Result<Vec<FlowId>> {
    let mut flows = Statement::<D>::new("SELECT flow_id FROM polls ORDER BY flow_id");
    let rows = flows.read(reader).await?;
    row::all(&rows, |row| row.id("flow_id"))
}

pub(crate) async fn seen<D: Dialect>(
    reader: &Pool<D>,
    flow_id: &FlowId,
    ids: &[String],
) -> sqlx::Result<Vec<SeenRecord>> {
    let mut seen = seen_statement::<D>(flow_id, ids);
    let rows = seen.read(reader).await?;
    row::all(&rows, row::seen_record)
}

/// Returns the statement for those of these records that a flow has seen.
pub(crate) fn seen_statement<D: Dialect>(flow_id: &FlowId, ids: &[String]) -> Statement<D> {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut seen = Statement::new("SELECT id, hash, count, seen_at FROM seen_records");
    seen.text(" WHERE flow_id = ", flow_id.as_str())
        .push(" AND id");
    D::one_of_set(&mut seen.0, &ids);
    seen
}
