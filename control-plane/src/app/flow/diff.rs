//! Differences between two versions of a flow, or between a version and the draft.

use kanat_flow::Definition;
use kanat_flow::diff::{self, Change};
use kanat_model::id::FlowId;
use kanat_model::{Error, Result};
use kanat_store::Db;
use kanat_store::flow::Flow;

use super::{definition, version};
use crate::app::{App, Call};

/// A definition of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    Draft,
    /// From 1.
    Version(u32),
}

impl Edition {
    /// Reads `draft` or the number of a version; errors name `field`.
    pub fn parse(field: &str, text: &str) -> Result<Self> {
        match text {
            "draft" => Ok(Self::Draft),
            number => number.parse().map(Self::Version).map_err(|_| {
                Error::field(
                    field,
                    format!("{text:?} is neither the number of a version nor draft"),
                )
            }),
        }
    }

    /// Returns its definition; errors when the flow has no such version.
    pub async fn definition(self, app: &App, db: &mut Db, flow: &Flow) -> Result<Definition> {
        match self {
            Self::Draft => definition::stored(&app.sealer, flow),
            Self::Version(number) => {
                definition::stored(&app.sealer, &version::existing(db, flow, number).await?)
            }
        }
    }
}

impl std::fmt::Display for Edition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Draft => f.write_str("draft"),
            Self::Version(number) => number.fmt(f),
        }
    }
}

/// Returns the changes that lead from one definition of a flow to another.
pub async fn diff(call: &Call, id: &FlowId, from: Edition, to: Edition) -> Result<Vec<Change>> {
    let mut tx = call.read().await?;
    let flow = call.existing(&mut tx, id).await?;
    let before = from.definition(&call.app, &mut tx, &flow).await?;
    let after = to.definition(&call.app, &mut tx, &flow).await?;
    Ok(diff::between(&before, &after))
}
