//! What lists of flows search: names and descriptions in a form that ignores case, and the status.
//! Each function that writes a flow also writes its row here, in the same transaction.

use kanat_model::flow::Status;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::search::ignoring_case;

use crate::column::Value;
use crate::flow::Flow;
use crate::record::record;
use crate::statement::statements;
use crate::{Db, Result};

record! {
    /// Texts of a flow, and its status.
    struct FlowText {
        environment_id: EnvironmentId,
        flow_id: FlowId,
        status: Status,
        name: String,
        description: String,
    }
}

statements! {
    /// Deletes the texts of a flow.
    fn delete(environment: &EnvironmentId, id: &FlowId) =
        "DELETE FROM flow_text WHERE environment_id = $1 AND flow_id = $2";
}

const WRITE: &str = "INSERT INTO flow_text (environment_id, flow_id, status, name, description) \
                     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (environment_id, flow_id) DO UPDATE \
                     SET status = excluded.status, name = excluded.name, description = \
                     excluded.description";

/// Writes the texts of a flow that is new or changed.
pub(crate) async fn write(db: &mut Db, flow: &Flow) -> Result<()> {
    let name = ignoring_case(&flow.name);
    let description = ignoring_case(&flow.description);
    let values: [&dyn Value; 5] = [
        &flow.environment_id,
        &flow.id,
        &flow.status,
        &name,
        &description,
    ];
    db.run(WRITE, &values).await
}

const MISSING: &str = "SELECT environment_id, id AS flow_id, status, name, description FROM flow \
                       WHERE deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM flow_text WHERE \
                       flow_text.environment_id = flow.environment_id AND flow_text.flow_id = \
                       flow.id)";
const INSERT: &str =
    "INSERT INTO flow_text (environment_id, flow_id, status, name, description) VALUES";

/// Writes the texts of flows that have none, for a database that had no such table before.
pub(crate) async fn fill(db: &mut Db) -> Result<()> {
    let mut texts: Vec<FlowText> = db.all(MISSING, &[]).await?;
    for text in &mut texts {
        text.name = ignoring_case(&text.name);
        text.description = ignoring_case(&text.description);
    }
    let rows: Vec<_> = texts.iter().map(FlowText::values).collect();
    db.insert_rows(INSERT, &rows, "").await
}

impl FlowText {
    fn values(&self) -> [&dyn Value; 5] {
        [
            &self.environment_id,
            &self.flow_id,
            &self.status,
            &self.name,
            &self.description,
        ]
    }
}
