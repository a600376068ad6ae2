//! Metrics of the process, and their exposition for Prometheus.
//!
//! Counters and histograms are global atomics: counting costs nanoseconds and needs no handle.
//! Values that matter only at a scrape are passed as [`Readings`]. Label values are bounded: flows
//! by [`Flows`], all others by lists in the code.

mod flows;
mod histogram;
mod names;
mod process;
mod readings;

use std::sync::LazyLock;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

pub use flows::{Flow, Flows, Outcome};
pub use histogram::Histogram;
pub use readings::{ControlPlane, Environment, Log, Node, Nodes, Readings, Waiting};

/// Content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type CounterFamily<const N: usize> = Family<[(&'static str, &'static str); N], Counter>;

/// Metrics of this process.
pub struct Metrics {
    /// Messages by flow and outcome.
    pub flows: Flows,
    /// Time from the arrival of a webhook to its 202.
    pub ack: Histogram,
    /// Time from the arrival of a message to its delivery.
    pub delivery: Histogram,
    /// Duration of a call to a target.
    pub attempt: Histogram,
    /// Duration of a call of the management API, to the head of its response.
    pub api: Histogram,
    /// Messages that the log did not take.
    pub append_failures: Counter,
    /// Outcomes that could not be written at the first try, counted at every try.
    pub settle_failures: Counter,
    /// Outcomes of messages that another node had taken over.
    pub settles_fenced: Counter,
    /// Calls that the egress guard refused.
    pub egress_refused: Counter,
    /// Resources that this node refused to run.
    pub plans_refused: Counter,
    /// Environments of which this node does not run the plans of its control plane's last
    /// heartbeat.
    pub plans_lag: Gauge,
    /// Spans that could not be exported.
    pub spans_dropped: Counter,
    /// Adapter processes that were killed because their code did not end in time.
    pub adapter_kills: Counter,
    /// Messages that polls made.
    pub poll_messages: Counter,
    /// Jumps of the wall clock of more than 5 s.
    pub clock_jumps: Counter,
    adapter_calls: CounterFamily<1>,
    breaker_turns: CounterFamily<1>,
    connector_waits: CounterFamily<1>,
    attempts: CounterFamily<1>,
    refused: CounterFamily<1>,
    api_keys_refused: CounterFamily<1>,
    backlog_refusals: CounterFamily<1>,
    api_requests: Family<[(&'static str, String); 2], Counter>,
    registry: Registry,
}

/// Returns the metrics of this process.
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);
    &METRICS
}

impl Metrics {
    fn new() -> Self {
        let mut metrics = Self {
            flows: Flows::default(),
            ack: Histogram::new(histogram::SHORT),
            delivery: Histogram::new(histogram::LONG),
            attempt: Histogram::new(histogram::SHORT),
            api: Histogram::new(histogram::SHORT),
            append_failures: Counter::default(),
            settle_failures: Counter::default(),
            settles_fenced: Counter::default(),
            egress_refused: Counter::default(),
            plans_refused: Counter::default(),
            plans_lag: Gauge::default(),
            spans_dropped: Counter::default(),
            adapter_kills: Counter::default(),
            poll_messages: Counter::default(),
            clock_jumps: Counter::default(),
            adapter_calls: Family::default(),
            breaker_turns: Family::default(),
            connector_waits: Family::default(),
            attempts: Family::default(),
            refused: Family::default(),
            api_keys_refused: Family::default(),
            backlog_refusals: Family::default(),
            api_requests: Family::default(),
            registry: Registry::default(),
        };
        metrics.begin();
        metrics.registry = metrics.register();
        metrics
    }

    /// Exposes the counters of all known labels from the start.
    fn begin(&self) {
        let lists: [(&CounterFamily<1>, &'static str, &[&'static str]); 5] = [
            (
                &self.adapter_calls,
                "result",
                &["ok", "code", "thrown", "time", "memory", "unavailable"],
            ),
            (&self.breaker_turns, "to", &["open", "closed"]),
            (&self.connector_waits, "reason", &["turn", "breaker"]),
            (&self.api_keys_refused, "reason", &["wrong", "limited"]),
            (&self.backlog_refusals, "reason", &["all", "flow", "age"]),
        ];
        for (family, label, values) in lists {
            for value in values {
                family.get_or_create(&[(label, value)]).inc_by(0);
            }
        }
    }

    /// Counts an attempt: `result` is `delivered`, `filtered`, or the kind of the failure.
    pub fn attempted(&self, result: &'static str) {
        self.attempts.get_or_create(&[("result", result)]).inc();
    }

    /// Counts a call of an adapter: `result` is `ok`, or the kind of the failure.
    pub fn adapter_called(&self, result: &'static str) {
        self.adapter_calls
            .get_or_create(&[("result", result)])
            .inc();
    }

    /// Counts a transition of a circuit breaker to `open` or `closed`.
    pub fn breaker_turned(&self, to: &'static str) {
        self.breaker_turns.get_or_create(&[("to", to)]).inc();
    }

    /// Counts a call that waits for its `turn` or for an open `breaker`.
    pub fn connector_waits(&self, reason: &'static str) {
        self.connector_waits
            .get_or_create(&[("reason", reason)])
            .inc();
    }

    /// Counts a request to the data plane that was refused with this status.
    pub fn refused(&self, status: u16) {
        self.refused
            .get_or_create(&[("reason", names::refusal(status))])
            .inc();
    }

    /// Counts a refused key of the management API: `wrong`, or `limited` when its address has sent
    /// too many wrong ones.
    pub fn api_key_refused(&self, reason: &'static str) {
        self.api_keys_refused
            .get_or_create(&[("reason", reason)])
            .inc();
    }

    /// Counts a message that was refused for the backlog: of `all` flows, of one `flow`, or for the
    /// `age` of a flow's.
    pub fn backlog_refused(&self, reason: &'static str) {
        self.backlog_refusals
            .get_or_create(&[("reason", reason)])
            .inc();
    }

    /// Counts a call of the management API. `method` is the path of an existing gRPC method;
    /// `status` the number of its gRPC status.
    pub fn api_called(&self, method: &str, status: u16, took: Duration) {
        let method = method.trim_start_matches('/').to_owned();
        let labels = [("method", method), ("code", names::code(status).to_owned())];
        self.api_requests.get_or_create(&labels).inc();
        self.api.observe(took);
    }

    /// Returns all metrics in the text format, including the readings.
    pub fn text(&self, readings: Readings) -> String {
        let mut now = Registry::with_prefix("kanat");
        now.register_collector(Box::new(readings));
        let mut text = String::new();
        let written = text::encode_registry(&mut text, &self.registry)
            .and_then(|()| text::encode_registry(&mut text, &now))
            .and_then(|()| text::encode_eof(&mut text));
        // Writing to a string cannot fail.
        if written.is_err() {
            tracing::error!("the metrics cannot be written");
        }
        text
    }

    fn register(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process));
        let ours = registry.sub_registry_with_prefix("kanat");
        ours.register(
            "build",
            "The build that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        ours.register_collector(Box::new(self.flows.clone()));
        for (name, help, histogram) in [
            (
                "ack_duration",
                "From a webhook's arrival to its 202",
                &self.ack,
            ),
            (
                "delivery_duration",
                "From a message's arrival to its delivery, retries included",
                &self.delivery,
            ),
            ("attempt_duration", "One call to a target", &self.attempt),
            (
                "api_request_duration",
                "One call of the management API, to the head of its answer",
                &self.api,
            ),
        ] {
            ours.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        }
        for (name, help, counter) in [
            (
                "log_append_failures",
                "Messages that the log did not take",
                &self.append_failures,
            ),
            (
                "log_settle_failures",
                "Tries to write an outcome that failed",
                &self.settle_failures,
            ),
            (
                "log_settles_fenced",
                "Outcomes refused because the message was taken over",
                &self.settles_fenced,
            ),
            (
                "egress_refused",
                "Calls that the egress guard did not let out",
                &self.egress_refused,
            ),
            (
                "plan_resources_refused",
                "Resources that this node refused to run",
                &self.plans_refused,
            ),
            (
                "trace_spans_dropped",
                "Spans that could not be sent to the collector",
                &self.spans_dropped,
            ),
            (
                "adapter_kills",
                "Adapter processes killed because their code did not end in time",
                &self.adapter_kills,
            ),
            (
                "poll_messages",
                "Messages that polls made",
                &self.poll_messages,
            ),
            (
                "clock_jumps",
                "Jumps of the wall clock of more than 5 s",
                &self.clock_jumps,
            ),
        ] {
            ours.register(name, help, counter.clone());
        }
        let help = "Environments of which this node does not run what its control plane says";
        ours.register("node_plans_behind", help, self.plans_lag.clone());
        ours.register(
            "attempts",
            "Attempts by what they came to",
            self.attempts.clone(),
        );
        let families = [
            (
                "adapter_calls",
                "Calls of adapters by what they came to",
                &self.adapter_calls,
            ),
            (
                "breaker_turns",
                "Turns of the circuit breakers of connectors",
                &self.breaker_turns,
            ),
            (
                "connector_waits",
                "Calls of connectors that waited, by what for",
                &self.connector_waits,
            ),
            (
                "api_keys_refused",
                "Keys that the management API refused, by reason",
                &self.api_keys_refused,
            ),
        ];
        for (name, help, family) in families {
            ours.register(name, help, family.clone());
        }
        let help = "Requests to the data plane that were answered with an error, by reason";
        ours.register("ingress_refused", help, self.refused.clone());
        let help = "Times that intake was refused because the backlog is at its bound, by reason";
        ours.register("backlog_refusals", help, self.backlog_refusals.clone());
        let help = "Calls of the management API by gRPC method and code";
        ours.register("api_requests", help, self.api_requests.clone());
        registry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exposed_in_the_form_that_prometheus_reads() {
        let metrics = Metrics::new();
        metrics
            .flows
            .flow("flw_1", "order \"sync\"")
            .count(Outcome::Accepted);
        metrics.attempted("delivered");
        metrics.refused(413);
        metrics.api_called("/kanat.v1.FlowService/GetFlow", 5, Duration::from_millis(3));
        metrics.egress_refused.inc();
        metrics.ack.observe(Duration::from_micros(700));
        let log = Log {
            commits: 2,
            operations: 9,
            ..Log::default()
        };
        let text = metrics.text(Readings {
            log: Some(log),
            ..Readings::default()
        });
        for line in [
            concat!(
                "kanat_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"} 1"
            ),
            "kanat_messages_accepted_total{flow_id=\"flw_1\",flow=\"order \\\"sync\\\"\"} 1",
            "kanat_attempts_total{result=\"delivered\"} 1",
            "kanat_ingress_refused_total{reason=\"too_large\"} 1",
            "kanat_api_requests_total{method=\"kanat.v1.FlowService/GetFlow\",code=\"NOT_FOUND\"} \
             1",
            "kanat_egress_refused_total 1",
            "kanat_ack_duration_seconds_bucket{le=\"0.0005\"} 0",
            "kanat_ack_duration_seconds_bucket{le=\"0.001\"} 1",
            "kanat_ack_duration_seconds_bucket{le=\"+Inf\"} 1",
            "kanat_ack_duration_seconds_sum 0.0007",
            "kanat_log_commits_total 2",
            "kanat_log_operations_total 9",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no line {line} in\n{text}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn every_metric_has_one_description_and_no_name_twice() {
        let readings = Readings {
            log: Some(Log::default()),
            node: Some(Node::default()),
            control_plane: Some(ControlPlane::default()),
        };
        let text = Metrics::new().text(readings);
        let mut types: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("# TYPE "))
            .collect();
        let found = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), found, "{text}");
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("# HELP "))
                .count(),
            found,
            "{text}"
        );
    }
}
