//! Observability of a process. Logs: text on a terminal, JSON elsewhere, always on standard error.
//! Metrics: [`mod@metrics`]. Traces: [`spans`].

pub mod metrics;
pub mod spans;
mod throttle;

use std::io::IsTerminal;

use kanat_model::nearest;
use tracing_subscriber::EnvFilter;

pub use metrics::metrics;
pub use throttle::Throttle;

/// Levels of a filter, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Checks a filter of the log. It is in the syntax of `tracing`'s filters, such as `info` or
/// `info,kanat_data_plane=debug`; a module has its level.
///
/// # Errors
/// A filter that cannot be read, or a word in it that is neither a level nor a module with its
/// level.
pub fn check_filter(filter: &str) -> Result<(), Error> {
    env_filter(filter).map(drop)
}

fn env_filter(filter: &str) -> Result<EnvFilter, Error> {
    // A word alone is a module to `tracing`: a misspelt level would silence everything.
    let is_level = |word: &str| LEVELS.contains(&word.to_lowercase().as_str());
    let words: Vec<&str> = filter.split(',').map(str::trim).collect();
    if let Some(word) = words
        .iter()
        .find(|word| !word.contains(['=', '[', ']', '{', '}']) && !is_level(word))
    {
        let near = nearest::nearest(word, LEVELS)
            .map(|near| format!("; did you mean {near:?}?"))
            .unwrap_or_default();
        let levels = LEVELS.join(", ");
        return Err(Error::Filter(format!(
            "{word:?} is none of the levels {levels}{near}"
        )));
    }
    EnvFilter::try_new(words.join(",")).map_err(|error| Error::Filter(error.to_string()))
}

/// Installs the process-wide log.
///
/// # Errors
/// A filter that [`check_filter`] refuses, or a log that is installed already.
pub fn install(filter: &str) -> Result<(), Error> {
    let filter = env_filter(filter)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let installed = if std::io::stderr().is_terminal() {
        log.with_target(false).compact().try_init()
    } else {
        log.json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_ansi(false)
            .try_init()
    };
    installed.map_err(|error| Error::Installed(error.to_string()))
}

/// Reason why the log could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the log filter cannot be read: {0}")]
    Filter(String),
    #[error("a log is installed already: {0}")]
    Installed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_silence_everything_by_mistake_is_refused() {
        for filter in [
            "info",
            "WARN",
            "off",
            "info,kanat_data_plane=debug",
            "warn, sqlx=error",
            "kanat[span]=info",
        ] {
            assert!(check_filter(filter).is_ok(), "{filter}");
        }
        for filter in ["", "inof", "info,kanat_data_plane", "kanat=inof", "info,"] {
            assert!(check_filter(filter).is_err(), "{filter}");
        }
        assert!(
            check_filter("inof")
                .unwrap_err()
                .to_string()
                .contains("did you mean \"info\"?")
        );
    }
}
