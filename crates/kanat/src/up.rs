//! `kanat up`: the whole service in one process.

pub mod service;

use anyhow::Result;

use crate::process::{self, Frame};
use crate::settings;

/// Runs until SIGTERM or SIGINT, then drains.
pub async fn run(flags: settings::up::Flags, sources: settings::Sources) -> Result<()> {
    let Some(settings) = settings::resolve(&flags, sources)? else {
        return Ok(());
    };
    process::run(Frame::of(&settings.process), service::start(settings)).await
}
