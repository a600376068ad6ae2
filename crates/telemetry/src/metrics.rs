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
use prometheus_client::registry::{Metric, Registry, Unit};

pub use flows::{Flow, Flows, Outcome};
pub use histogram::Histogram;
pub use process::cpu_time;
pub use readings::{ControlPlane, Environment, Log, Node, Nodes, Readings, Waiting};

/// Content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
    /// Spans that could not be exported.
    pub spans_dropped: Counter,
    /// Adapter processes that were killed because their code did not end in time.
    pub adapter_kills: Counter,
    /// Messages that polls made.
    pub poll_messages: Counter,
    /// Jumps of the wall clock of more than 5 s.
    pub clock_jumps: Counter,
    /// Environments of which this node does not run the plans of its control plane's last
    /// heartbeat.
    pub outdated_environments: Gauge,
    /// Attempts by result: `delivered`, `filtered`, or the kind of the failure.
    pub attempts: CounterFamily,
    /// Calls of adapters by result: `ok`, or the kind of the failure.
    pub adapter_calls: CounterFamily,
    /// Transitions of circuit breakers to `open` or `closed`.
    pub breaker_transitions: CounterFamily,
    /// Calls that wait for their `turn` or for an open `breaker`.
    pub connector_waits: CounterFamily,
    /// Refused keys of the management API: `wrong`, or `limited` when their address has sent too
    /// many wrong ones.
    pub api_keys_refused: CounterFamily,
    /// Messages that were refused for the backlog: of `all` flows, of one `flow`, or for the `age`
    /// of a flow's.
    pub backlog_refusals: CounterFamily,
    refused: CounterFamily,
    api_requests: Family<[(&'static str, String); 2], Counter>,
    registry: Registry,
}

/// Counters of the values of one label.
#[derive(Debug, Clone)]
pub struct CounterFamily {
    label: &'static str,
    counters: Family<[(&'static str, &'static str); 1], Counter>,
}

impl CounterFamily {
    /// Counts one of `value`.
    pub fn count(&self, value: &'static str) {
        self.counters.get_or_create(&[(self.label, value)]).inc();
    }
}

/// Returns the metrics of this process.
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);
    &METRICS
}

impl Metrics {
    fn new() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process));
        let ours = &mut Namespace(registry.sub_registry_with_prefix("kanat"));
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.0.register("build", "The build that runs", version);
        let flows = Flows::default();
        ours.0.register_collector(Box::new(flows.clone()));
        Self {
            flows,
            ack: ours.histogram(
                "ack_duration",
                "From a webhook's arrival to its 202",
                histogram::SHORT,
            ),
            delivery: ours.histogram(
                "delivery_duration",
                "From a message's arrival to its delivery, retries included",
                histogram::LONG,
            ),
            attempt: ours.histogram("attempt_duration", "One call to a target", histogram::SHORT),
            api: ours.histogram(
                "api_request_duration",
                "One call of the management API, to the head of its answer",
                histogram::SHORT,
            ),
            append_failures: ours
                .metric("log_append_failures", "Messages that the log did not take"),
            settle_failures: ours.metric(
                "log_settle_failures",
                "Tries to write an outcome that failed",
            ),
            settles_fenced: ours.metric(
                "log_settles_fenced",
                "Outcomes refused because the message was taken over",
            ),
            egress_refused: ours.metric(
                "egress_refused",
                "Calls that the egress guard did not let out",
            ),
            plans_refused: ours.metric(
                "plan_resources_refused",
                "Resources that this node refused to run",
            ),
            spans_dropped: ours.metric(
                "trace_spans_dropped",
                "Spans that could not be sent to the collector",
            ),
            adapter_kills: ours.metric(
                "adapter_kills",
                "Adapter processes killed because their code did not end in time",
            ),
            poll_messages: ours.metric("poll_messages", "Messages that polls made"),
            clock_jumps: ours.metric("clock_jumps", "Jumps of the wall clock of more than 5 s"),
            outdated_environments: ours.metric(
                "node_plans_behind",
                "Environments of which this node does not run what its control plane says",
            ),
            attempts: ours.family("attempts", "Attempts by what they came to", "result", &[]),
            adapter_calls: ours.family(
                "adapter_calls",
                "Calls of adapters by what they came to",
                "result",
                &["ok", "code", "thrown", "time", "memory", "unavailable"],
            ),
            breaker_transitions: ours.family(
                "breaker_turns",
                "Turns of the circuit breakers of connectors",
                "to",
                &["open", "closed"],
            ),
            connector_waits: ours.family(
                "connector_waits",
                "Calls of connectors that waited, by what for",
                "reason",
                &["turn", "breaker"],
            ),
            api_keys_refused: ours.family(
                "api_keys_refused",
                "Keys that the management API refused, by reason",
                "reason",
                &["wrong", "limited"],
            ),
            backlog_refusals: ours.family(
                "backlog_refusals",
                "Times that intake was refused because the backlog is at its bound, by reason",
                "reason",
                &["all", "flow", "age"],
            ),
            refused: ours.family(
                "ingress_refused",
                "Requests to the data plane that were answered with an error, by reason",
                "reason",
                &[],
            ),
            api_requests: ours.metric(
                "api_requests",
                "Calls of the management API by gRPC method and code",
            ),
            registry,
        }
    }

    /// Counts a request to the data plane that was refused with this status.
    pub fn refused(&self, status: u16) {
        self.refused.count(names::refusal(status));
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
}

/// The metrics with our prefix, while they are made.
struct Namespace<'r>(&'r mut Registry);

impl Namespace<'_> {
    fn metric<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    /// Makes the counters of a label. Those of known values are exposed from the start.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: &[&'static str],
    ) -> CounterFamily {
        let counters = self.metric::<Family<_, Counter>>(name, help);
        for value in values {
            counters.get_or_create(&[(label, *value)]).inc_by(0);
        }
        CounterFamily { label, counters }
    }

    fn histogram(&mut self, name: &str, help: &str, bounds: &'static [f64]) -> Histogram {
        let histogram = Histogram::new(bounds);
        self.0
            .register_with_unit(name, help, Unit::Seconds, histogram.clone());
        histogram
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
        metrics.attempts.count("delivered");
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
