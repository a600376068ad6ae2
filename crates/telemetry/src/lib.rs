//! What a process tells of itself. Logs: human text on a terminal, JSON elsewhere, always on standard error. Metrics: in
//! [`mod@metrics`]. Traces: in [`spans`].

pub mod metrics;
pub mod spans;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

pub use metrics::metrics;

/// Installs the process-wide log. `filter` is in the syntax of `tracing`'s filters, such as `info` or
/// `info,kanat_data_plane=debug`. Errors when the filter cannot be read or a log is installed already.
pub fn install(filter: &str) -> Result<(), Error> {
    let filter = EnvFilter::try_new(filter).map_err(|error| Error::Filter(error.to_string()))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = if std::io::stderr().is_terminal() {
        log.with_target(false).compact().try_init()
    } else {
        log.json().flatten_event(true).with_current_span(false).with_span_list(false).with_ansi(false).try_init()
    };
    installed.map_err(|error| Error::Installed(error.to_string()))
}

/// Why the log could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the log filter cannot be read: {0}")]
    Filter(String),
    #[error("a log is installed already: {0}")]
    Installed(String),
}
