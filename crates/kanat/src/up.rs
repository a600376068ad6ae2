//! `kanat up`: the whole service in one process.

mod router;
pub mod whole;

use anyhow::Result;

use crate::process::{self, Frame};
use crate::{output, settings};
use whole::Whole;

/// Runs until SIGTERM or SIGINT, then drains.
pub async fn run(flags: settings::up::Flags, given: settings::Given) -> Result<()> {
    let print_config = flags.process.print_config;
    let settings = flags.resolve(given)?;
    if print_config {
        return output::line(&settings.print()?);
    }
    process::run(Frame::of(&settings.process), Whole::start(settings)).await
}
