//! Differences between two versions of a flow, or between a version and the draft.

use kanat_flow::Definition;
use kanat_flow::diff::{self, Change};
use kanat_model::id::FlowId;
use kanat_model::{Code, Error};
use kanat_store::flow::Flow;
use kanat_store::{Db, flow_version};

use super::{definition, existing};
use crate::app::{App, Caller};

/// A definition of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    Draft,
    /// From 1.
    Version(u32),
}

impl Edition {
    /// Reads `draft` or the number of a version; errors name `field`.
    pub fn parse(field: &str, text: &str) -> Result<Self, Error> {
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
    pub async fn definition(
        self,
        app: &App,
        db: &mut Db,
        flow: &Flow,
    ) -> Result<Definition, Error> {
        match self {
            Self::Draft => definition::stored(&app.sealer, flow),
            Self::Version(number) => {
                let found = flow_version::get(db, &flow.id, number).await?;
                let missing = || {
                    Error::new(
                        Code::NotFound,
                        format!("flow {:?} has no version {number}", flow.name),
                    )
                    .with_resource("flow", &flow.name)
                };
                definition::stored(&app.sealer, &found.ok_or_else(missing)?)
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
pub async fn diff(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    from: Edition,
    to: Edition,
) -> Result<Vec<Change>, Error> {
    let mut tx = app.store.read().await?;
    let flow = existing(&mut tx, caller, id).await?;
    let before = from.definition(app, &mut tx, &flow).await?;
    let after = to.definition(app, &mut tx, &flow).await?;
    Ok(diff::between(&before, &after))
}
