//! Values that are read at a scrape, because counting them all the time would serve nobody.

use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::metrics;

/// Maximum number of flows with a backlog in a scrape: those that have waited longest.
const MAX_BACKLOGS: usize = 500;

/// Readings of the roles of this process.
#[derive(Debug, Default)]
pub struct Readings {
    pub log: Option<Log>,
    pub node: Option<Node>,
    pub control_plane: Option<ControlPlane>,
}

/// The message log: counts since the start, and its backlog.
#[derive(Debug, Default)]
pub struct Log {
    pub commits: u64,
    pub operations: u64,
    pub appended: u64,
    pub settled: u64,
    pub claimed: u64,
    /// `None` when the log could not be read.
    pub waiting: Option<Vec<Waiting>>,
}

/// Due messages of a flow that no node processes.
#[derive(Debug)]
pub struct Waiting {
    pub flow_id: String,
    pub messages: u64,
    /// Age of the oldest due message.
    pub oldest: Duration,
}

/// A node of the data plane.
#[derive(Debug, Default)]
pub struct Node {
    pub ready: bool,
    pub draining: bool,
    /// Messages that are being stored or sent.
    pub in_flight: usize,
    /// Messages that hold a place in a lane.
    pub in_memory: usize,
    /// Bytes that these hold.
    pub memory_bytes: usize,
    /// Lanes, one a target.
    pub lanes: usize,
    /// Bytes of all unfinished messages of the log, about, and their bound.
    pub backlog_bytes: u64,
    pub backlog_limit_bytes: u64,
    /// Connectors whose breaker is open: their messages wait.
    pub breakers_open: usize,
    /// Messages that are due in flows of which the node cannot run some versions with the plans
    /// that it has.
    pub waiting_for_plans: u64,
    /// Id and running generation of each environment.
    pub environments: Vec<(String, u64)>,
}

/// A control plane.
#[derive(Debug, Default)]
pub struct ControlPlane {
    pub nodes: Nodes,
    /// Resources that connected nodes refuse in their present form, each counted once a node.
    pub refused: usize,
    pub environments: Vec<Environment>,
}

/// Nodes that have a stream to this control plane, by status.
#[derive(Debug, Default)]
pub struct Nodes {
    pub connected: usize,
    pub draining: usize,
}

/// One environment, as this control plane knows it.
#[derive(Debug)]
pub struct Environment {
    pub id: String,
    pub generation: u64,
    /// Number of generations by which the slowest connected node lags.
    pub lag: u64,
}

impl Collector for Readings {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut writer = Writer { encoder };
        self.log.iter().try_for_each(|log| log.write(&mut writer))?;
        self.node
            .iter()
            .try_for_each(|node| node.write(&mut writer))?;
        self.control_plane
            .iter()
            .try_for_each(|plane| plane.write(&mut writer))
    }
}

impl Log {
    fn write(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.counters([
            (
                "log_commits",
                "Transactions of the message log that reached the disk.",
                self.commits,
            ),
            (
                "log_operations",
                "Operations that these carried.",
                self.operations,
            ),
            ("log_appended", "Messages that the log took.", self.appended),
            (
                "log_settled",
                "Settlements of messages that the log took: ends of attempts, and releases.",
                self.settled,
            ),
            (
                "log_claimed",
                "Messages taken up from the log.",
                self.claimed,
            ),
        ])?;
        writer.gauges([(
            "log_readable",
            "Whether the message log could be read.",
            u64::from(self.waiting.is_some()),
        )])?;
        let mut waiting: Vec<_> = self.waiting.iter().flatten().collect();
        waiting.sort_by_key(|flow| std::cmp::Reverse(flow.oldest));
        waiting.truncate(MAX_BACKLOGS);
        let names: Vec<_> = waiting
            .iter()
            .map(|flow| metrics().flows.name(&flow.flow_id).unwrap_or_default())
            .collect();
        let labels = |at: usize| {
            let flow_id = waiting.get(at).map_or("", |flow| flow.flow_id.as_str());
            [
                ("flow_id", flow_id),
                ("flow", names.get(at).map_or("", String::as_str)),
            ]
        };
        let depth = waiting
            .iter()
            .enumerate()
            .map(|(at, flow)| (labels(at), flow.messages as f64));
        writer.gauge_family(
            "queue_depth",
            "Messages that are due and that nobody works on; 1000 is that many or more.",
            depth,
        )?;
        let age = waiting
            .iter()
            .enumerate()
            .map(|(at, flow)| (labels(at), flow.oldest.as_secs_f64()));
        writer.gauge_family(
            "queue_oldest_age_seconds",
            "How long ago the oldest of these became due.",
            age,
        )
    }
}

impl Node {
    fn write(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.gauges([
            (
                "node_ready",
                "Whether this node takes messages in and runs them.",
                u64::from(self.ready),
            ),
            (
                "node_draining",
                "Whether this node finishes what it has and goes.",
                u64::from(self.draining),
            ),
            (
                "messages_in_flight",
                "Messages that are being stored or sent.",
                self.in_flight as u64,
            ),
            (
                "messages_in_memory",
                "Messages that hold a place in a lane.",
                self.in_memory as u64,
            ),
            (
                "messages_memory_bytes",
                "Bytes that these hold.",
                self.memory_bytes as u64,
            ),
            (
                "breakers_open",
                "Connectors whose circuit breaker is open: their messages wait.",
                self.breakers_open as u64,
            ),
            (
                "messages_waiting_for_plans",
                "Messages that are due in flows of which this node cannot run some versions with \
                 the plans that it has.",
                self.waiting_for_plans,
            ),
            (
                "backlog_bytes",
                "Bytes of all unfinished messages of the log, about.",
                self.backlog_bytes,
            ),
            (
                "backlog_limit_bytes",
                "Bytes of unfinished messages at which all intake is refused.",
                self.backlog_limit_bytes,
            ),
            (
                "lanes",
                "Targets that messages were sent to.",
                self.lanes as u64,
            ),
        ])?;
        let environments = self
            .environments
            .iter()
            .map(|(id, generation)| ([("environment", id.as_str())], *generation as f64));
        writer.gauge_family(
            "node_plan_generation",
            "The generation of an environment's plans that this node runs.",
            environments,
        )
    }
}

impl ControlPlane {
    fn write(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        let nodes = [
            ("connected", self.nodes.connected),
            ("draining", self.nodes.draining),
        ];
        let nodes = nodes
            .into_iter()
            .map(|(status, nodes)| ([("status", status)], nodes as f64));
        writer.gauge_family("nodes", "Nodes with a stream to this control plane.", nodes)?;
        writer.gauges([(
            "plan_refusals",
            "Resources that connected nodes refuse to run, once a node.",
            self.refused as u64,
        )])?;
        let generations = self
            .environments
            .iter()
            .map(|e| ([("environment", e.id.as_str())], e.generation as f64));
        writer.gauge_family(
            "plan_generation",
            "The generation that the nodes of an environment are to run.",
            generations,
        )?;
        let lags = self
            .environments
            .iter()
            .map(|e| ([("environment", e.id.as_str())], e.lag as f64));
        writer.gauge_family(
            "plan_lag",
            "Generations that the node furthest behind has to go.",
            lags,
        )
    }
}

/// Name, description and value of a metric without labels.
type Reading = (&'static str, &'static str, u64);

struct Writer<'e> {
    encoder: DescriptorEncoder<'e>,
}

impl Writer<'_> {
    fn counters<const N: usize>(&mut self, counters: [Reading; N]) -> std::fmt::Result {
        counters.into_iter().try_for_each(|(name, help, value)| {
            let encoder = self
                .encoder
                .encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(encoder)
        })
    }

    fn gauges<const N: usize>(&mut self, gauges: [Reading; N]) -> std::fmt::Result {
        gauges.into_iter().try_for_each(|(name, help, value)| {
            let encoder = self
                .encoder
                .encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(encoder)
        })
    }

    fn gauge_family<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, f64)>,
    ) -> std::fmt::Result {
        let mut encoder = self
            .encoder
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_exposed_by_flow_the_oldest_first_and_no_more_than_the_bound() {
        let waiting = (0..600).map(|n| Waiting {
            flow_id: format!("flw_{n}"),
            messages: n,
            oldest: Duration::from_secs(n),
        });
        let log = Log {
            waiting: Some(waiting.collect()),
            ..Log::default()
        };
        let text = metrics().text(Readings {
            log: Some(log),
            ..Readings::default()
        });
        let depths: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("kanat_queue_depth{"))
            .collect();
        assert_eq!(depths.len(), MAX_BACKLOGS);
        assert_eq!(
            depths.first(),
            Some(&"kanat_queue_depth{flow_id=\"flw_599\",flow=\"\"} 599.0")
        );
        assert!(text.contains("kanat_log_readable 1\n"));
    }

    #[test]
    fn a_log_out_of_reach_is_exposed() {
        let text = metrics().text(Readings {
            log: Some(Log::default()),
            ..Readings::default()
        });
        assert!(text.contains("kanat_log_readable 0\n"), "{text}");
    }
}
