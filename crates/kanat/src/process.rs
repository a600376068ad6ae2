//! Parts that all processes have: start and end, the data folder, listeners and databases.

pub mod backlog;
pub mod clock;
mod confinement;
pub mod database;
pub mod egress;
pub mod folder;
pub mod identity;
pub mod listener;
pub mod live;
pub mod mail;
mod owner_key;
pub mod page;
pub mod plain;
pub mod planes;
pub mod ports;
pub mod router;
pub mod server;
pub mod service;
pub mod signals;
pub mod waiting;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::settings::environment;
use crate::settings::process::Settings;
use crate::traces::Traces;
use crate::{exit, output};
use service::Service;
use signals::Signals;

/// Logging, signals and listeners of a process, from its start to its end.
pub struct Frame {
    log: String,
    otlp_endpoint: Option<String>,
    data_dir: PathBuf,
    /// Longest time for what is in flight at a stop.
    drain: Duration,
    /// Time before that, for proxies to turn away.
    grace: Duration,
}

impl Frame {
    pub fn of(settings: &Settings) -> Self {
        Self {
            log: settings.log.clone(),
            otlp_endpoint: settings.otlp_endpoint.clone(),
            data_dir: settings.data_dir.clone(),
            drain: settings.drain,
            grace: settings.drain_grace,
        }
    }
}

/// Runs until SIGTERM, SIGINT or a wish to stop; then drains.
pub async fn run(frame: Frame, start: impl Future<Output = Result<Service>>) -> Result<()> {
    let Frame {
        log,
        otlp_endpoint,
        data_dir,
        drain,
        grace,
    } = frame;
    kanat_telemetry::install(&log)
        .map_err(|error| exit::usage(format!("bad setting: log: {error}")))?;
    confinement::close();
    environment::warn();
    confinement::warn(&kanat_script::Options::default().program);
    let mut signals = Signals::listen()?;
    let traces = Traces::start(otlp_endpoint.as_deref());
    let _watched = clock::watch();
    let process = tokio::select! {
        started = start => started?,
        () = signals.next() => return Ok(()),
    };
    if let Some(key) = process.new_owner_key() {
        owner_key::show(key, process.url(), &data_dir);
    }
    // The parent process may have closed our output; that is no reason to end.
    let _ = output::line(&format!(
        "kanat {} listening on {}",
        env!("CARGO_PKG_VERSION"),
        process.url()
    ));
    // A signal after a wish to stop asks for the same: a drain. Only the next signal means more.
    let (within, signals_to_end) = tokio::select! {
        () = signals.next() => (drain, 1),
        within = process.stop_wished() => (within, 2),
    };
    tracing::info!("stopping: finishing what is in flight; a second signal ends at once");
    let stopping = async {
        process.leave();
        tokio::time::sleep(grace).await;
        process.stop(within).await;
        if let Some(traces) = traces {
            traces.stop().await;
        }
    };
    signals.unless_again(signals_to_end, stopping).await;
    Ok(())
}
