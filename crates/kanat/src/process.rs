//! What the processes have in common: the way from their first line to their last, the data folder, listeners and
//! databases.

pub mod clock;
mod confinement;
pub mod database;
pub mod egress;
pub mod folder;
pub mod identity;
pub mod listener;
pub mod live;
pub mod page;
pub mod plain;
pub mod signals;
pub mod waiting;

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use kanat_model::Secret;

use crate::settings::environment;
use crate::traces::Traces;
use crate::{exit, output};
use signals::Signals;

/// A running service, as `kanat up`, `kanat control-plane` and `kanat data-plane` each are one.
pub trait Process: Sized {
    /// Where it is reached from this machine.
    fn url(&self) -> &str;

    /// The owner's key, when this start made it: to be shown once.
    fn new_owner_key(&self) -> Option<&Secret<String>> {
        None
    }

    /// Waits until somebody other than this machine's operator wishes it to stop, and gives the time that it has.
    fn stop_wished(&self) -> impl Future<Output = Duration>;

    /// Says from now on that it is not ready, and serves all the same.
    fn leave(&self);

    /// Takes nothing more in, finishes what is in flight within the time, and closes.
    fn stop(self, within: Duration) -> impl Future<Output = ()>;
}

/// How a process stops.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// For what is in flight.
    pub drain: Duration,
    /// Before that, for proxies to turn away.
    pub grace: Duration,
}

/// Runs until SIGTERM, SIGINT or a wish to stop; then drains.
pub async fn run<P: Process>(
    log: &str,
    otlp_endpoint: Option<&str>,
    stop: Stop,
    start: impl Future<Output = Result<P>>,
) -> Result<()> {
    kanat_telemetry::install(log).map_err(|error| exit::usage(format!("bad setting: log: {error}")))?;
    confinement::close();
    environment::warn();
    confinement::warn(&kanat_script::Options::default().program);
    let mut signals = Signals::listen()?;
    let traces = Traces::start(otlp_endpoint);
    let _watched = clock::watch();
    let process = tokio::select! {
        started = start => started?,
        () = signals.next() => return Ok(()),
    };
    if let Some(key) = process.new_owner_key() {
        let (url, key) = (process.url(), key.expose());
        eprintln!("the owner's API key, shown this once: {key}\nlog in with: kanat login --url {url} --api-key {key}");
    }
    // Whoever started us may have closed our output; that is no reason to end.
    let _ = output::line(&format!("kanat {} listening on {}", env!("CARGO_PKG_VERSION"), process.url()));
    // Who asks for what was wished already asks for the same: a drain. Only the signal after that one means more.
    let (within, signals_to_end) = tokio::select! {
        () = signals.next() => (stop.drain, 1),
        within = process.stop_wished() => (within, 2),
    };
    tracing::info!("stopping: finishing what is in flight; a second signal ends at once");
    let stopping = async {
        process.leave();
        tokio::time::sleep(stop.grace).await;
        process.stop(within).await;
        if let Some(traces) = traces {
            traces.stop().await;
        }
    };
    signals.unless_again(signals_to_end, stopping).await;
    Ok(())
}
