//! The measures, one file for each group: its loads and its results.

mod backlog;
mod burst;
mod gateway;
mod idle;
mod mapping;
mod postgres;
pub mod published;
mod scale;
mod webhook;

use anyhow::Result;

use crate::finding::Report;
use crate::plan::Plan;

/// Measures that are taken together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// P1, P2, P3, P8 and the memory of P6.
    Webhook,
    /// P4.
    Burst,
    /// The idle CPU of P6.
    Idle,
    /// P5.
    Published,
    /// P7.
    Postgres,
    /// P9.
    Mapping,
    /// P10.
    Scale,
    /// P11.
    Backlog,
    /// P12.
    Gateway,
}

impl Group {
    pub const ALL: [Self; 9] = [
        Self::Webhook,
        Self::Burst,
        Self::Idle,
        Self::Published,
        Self::Postgres,
        Self::Mapping,
        Self::Scale,
        Self::Backlog,
        Self::Gateway,
    ];

    /// Names of the measures of a group.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Webhook => &["P1", "P2", "P3", "P6", "P8"],
            Self::Burst => &["P4"],
            Self::Idle => &["P6"],
            Self::Published => &["P5"],
            Self::Postgres => &["P7"],
            Self::Mapping => &["P9"],
            Self::Scale => &["P10"],
            Self::Backlog => &["P11"],
            Self::Gateway => &["P12"],
        }
    }

    pub async fn run(self, plan: &Plan) -> Result<Report> {
        let findings = match self {
            Self::Webhook => return webhook::measure(plan).await,
            Self::Burst => burst::measure(plan).await,
            Self::Idle => idle::measure(plan).await,
            Self::Published => published::measure(plan).await,
            Self::Postgres => postgres::measure(plan).await,
            Self::Mapping => mapping::measure(plan).await,
            Self::Scale => scale::measure(plan).await,
            Self::Backlog => backlog::measure(plan).await,
            Self::Gateway => gateway::measure(plan).await,
        };
        Ok(findings?.into())
    }
}
