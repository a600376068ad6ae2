//! Adapters as evaluations call them: from within, and without waiting on a core for the worker.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kanat_mapping::{AdapterError, AdapterRef, Adapters};
use kanat_model::adapter;
use parking_lot::Mutex;

use crate::failure::Kind;
use crate::pool::{Asker, Pool, blocking};
use crate::script::Script;
use crate::session::Session;
use crate::wire::Log;

/// An adapter of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    pub id: String,
    pub name: String,
    pub version: u32,
    pub kind: adapter::Kind,
    pub script: Script,
}

/// The adapters of an environment.
pub trait Scripts: Sync {
    fn adapter(&self, named: AdapterRef<'_>) -> Option<&Adapter>;
}

/// By name; found by id too.
impl Scripts for HashMap<String, Adapter> {
    fn adapter(&self, named: AdapterRef<'_>) -> Option<&Adapter> {
        match named {
            AdapterRef::Name(name) => self.get(name),
            AdapterRef::Id(id) => self.values().find(|adapter| adapter.id == id),
        }
    }
}

/// The calls that one attempt of a message makes: they share the time of one call.
pub struct Caller<'a> {
    pool: Pool,
    /// Whose calls they are; those of others do not wait for them.
    asker: Asker<'a>,
    /// Argument `context` of the code, a JSON object.
    context: String,
    left: Option<(Duration, Duration)>,
    reports: Vec<Report>,
}

/// Result of the calls of one adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub name: String,
    pub version: u32,
    pub calls: u32,
    pub duration: Duration,
    pub logs: Vec<Log>,
    /// Why the last call failed.
    pub error: Option<String>,
}

impl<'a> Caller<'a> {
    pub fn new(pool: &Pool, asker: Asker<'a>, context: impl Into<String>) -> Self {
        Self {
            pool: pool.clone(),
            asker,
            context: context.into(),
            left: None,
            reports: Vec::new(),
        }
    }

    /// Sets what the code gets as `context`, a JSON object.
    pub fn set_context(&mut self, context: String) {
        self.context = context;
    }

    /// Evaluates with a worker at hand. The evaluation blocks while it calls adapters: on its
    /// thread, on no core.
    pub async fn evaluate<T>(
        &mut self,
        scripts: &dyn Scripts,
        evaluate: impl FnOnce(&dyn Adapters) -> T,
    ) -> T {
        let mut session = self.pool.lease(self.asker).await;
        if let Some(left) = self.left {
            session.set_time_left(left);
        }
        let calls = Calls {
            scripts,
            context: &self.context,
            state: Mutex::new((session, Vec::new())),
        };
        let value = blocking(|| evaluate(&calls));
        let (session, reports) = calls.state.into_inner();
        self.left = Some(session.time_left());
        self.reports.extend(reports);
        value
    }

    /// Takes the reports of the adapters, in the order of their first calls.
    pub fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }
}

struct Calls<'c> {
    scripts: &'c dyn Scripts,
    context: &'c str,
    state: Mutex<(Session, Vec<Report>)>,
}

impl Adapters for Calls<'_> {
    fn kind(&self, adapter: AdapterRef<'_>) -> Option<adapter::Kind> {
        self.scripts.adapter(adapter).map(|adapter| adapter.kind)
    }

    fn call(&self, adapter: AdapterRef<'_>, input: &str) -> Result<Option<String>, AdapterError> {
        let adapter = self
            .scripts
            .adapter(adapter)
            .ok_or_else(|| AdapterError::missing(adapter))?;
        let begun = Instant::now();
        let mut state = self.state.lock();
        let (session, reports) = &mut *state;
        let called = session.call(&adapter.script, input, self.context);
        let report = Report::of(adapter, reports);
        report.calls = report.calls.saturating_add(1);
        report.duration += begun.elapsed();
        report.add(called.logs);
        called.output.map_err(|failure| {
            let message = format!("the adapter {:?} failed: {failure}", adapter.name);
            report.error = Some(message.clone());
            match failure.kind {
                Kind::Code | Kind::Thrown | Kind::Time | Kind::Memory => {
                    AdapterError::Failed(message)
                }
                Kind::Unavailable => AdapterError::Unavailable(message),
            }
        })
    }
}

impl Report {
    /// Lines that are kept of all calls of an adapter, and bytes of them.
    const KEPT: (usize, usize) = (100, 12 << 10);

    /// Returns the report as a trace shows it: `{"version", "calls", "logs"}`.
    pub fn to_json(&self) -> String {
        let mut json = format!(
            r#"{{"version":{},"calls":{},"logs":["#,
            self.version, self.calls
        )
        .into_bytes();
        for (place, log) in self.logs.iter().enumerate() {
            if place > 0 {
                json.push(b',');
            }
            kanat_json::write_string(&log.line(), &mut json);
        }
        json.extend_from_slice(b"]}");
        String::from_utf8(json).unwrap_or_default()
    }

    fn of<'r>(adapter: &Adapter, reports: &'r mut Vec<Self>) -> &'r mut Self {
        let place = reports
            .iter()
            .position(|report| report.name == adapter.name)
            .unwrap_or_else(|| {
                reports.push(Self {
                    name: adapter.name.clone(),
                    version: adapter.version,
                    calls: 0,
                    duration: Duration::ZERO,
                    logs: Vec::new(),
                    error: None,
                });
                reports.len() - 1
            });
        &mut reports[place]
    }

    fn add(&mut self, logs: Vec<Log>) {
        for log in logs {
            let bytes: usize = self.logs.iter().map(|log| log.message.len()).sum();
            if self.logs.len() < Self::KEPT.0 && bytes + log.message.len() <= Self::KEPT.1 {
                self.logs.push(log);
            }
        }
    }
}
