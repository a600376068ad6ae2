//! `kanat up`: the whole service in one process.

pub mod service;

use anyhow::Result;

use crate::process::{self, Frame};
use crate::{output, settings};
use service::CombinedService;

/// Runs until SIGTERM or SIGINT, then drains.
pub async fn run(flags: settings::up::Flags, sources: settings::Sources) -> Result<()> {
    let print_config = flags.process.print_config;
    let settings = flags.resolve(sources)?;
    if print_config {
        return output::line(&settings.print()?);
    }
    process::run(
        Frame::of(&settings.process),
        CombinedService::start(settings),
    )
    .await
}
