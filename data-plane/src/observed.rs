//! Observations of connectors: numbers of calls and of failures on the other side, and the shapes
//! of answers. They are gathered in bounded memory and reported to the control plane at intervals.
//! No value of an answer is kept.

use std::collections::HashMap;
use std::time::Duration;

use kanat_catalog::shape::Shape;
use kanat_model::id::EnvironmentId;
use kanat_model::{Mask, Timestamp};
use kanat_proto::node::v1 as wire;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Endpoints in one report.
const MAX_ENDPOINTS: usize = 500;
/// Answers of one endpoint that are sampled for one report.
const MAX_SAMPLES: u64 = 20;
/// Size of the longest answer that is sampled, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Size of the longest shape in a report, in bytes of JSON.
const MAX_SHAPE: usize = 64 << 10;
/// Length of the longest name of an endpoint, in bytes.
const MAX_NAME: usize = 500;
/// Flows of one instance whose polls are in one report.
const MAX_POLLS: usize = 50;
/// Calls of which one failed before they are reported: fewer say little about the connector.
const MIN_CALLS: u64 = 5;

/// Observations since the last report.
#[derive(Debug, Default)]
pub struct Observations {
    connectors: Mutex<HashMap<Connector, Statistics>>,
    /// Woken when a report must not wait for its time.
    urgent: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Connector {
    environment_id: String,
    instance_id: String,
}

/// Calls of an instance under one config.
#[derive(Debug, Default)]
struct Calls {
    total: u64,
    failures: u64,
    /// End of the first of them.
    first_at: Option<Timestamp>,
    /// End of the last one that failed.
    last_failure_at: Option<Timestamp>,
    /// Message of the last failure, without secrets.
    failure: String,
}

#[derive(Debug, Default)]
struct Statistics {
    calls: Calls,
    endpoints: HashMap<String, Shape>,
    /// SHA-256 of an access token that was refused.
    refused_token: Vec<u8>,
    /// End of the pause of calls that began last, if one began.
    paused_until: Option<Timestamp>,
    /// Failure of the last poll of each flow, if it failed.
    polls: HashMap<String, Option<String>>,
}

/// Records observations of the connectors of one environment.
#[derive(Debug, Clone, Copy)]
pub struct Observer<'o> {
    pub observed: &'o Observations,
    pub environment: &'o EnvironmentId,
}

/// Result of a call as far as the other side is responsible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    Success,
    Failure,
}

impl Observer<'_> {
    /// Counts a call of an instance.
    pub fn called(&self, instance: &str, result: CallResult) {
        let now = Timestamp::now();
        self.with(instance, |statistics, _| {
            let calls = &mut statistics.calls;
            calls.total += 1;
            calls.first_at.get_or_insert(now);
            if result == CallResult::Failure {
                calls.failures += 1;
                calls.last_failure_at = Some(now);
            }
        });
    }

    /// Keeps the message of a failed call, without secrets.
    pub fn failed(&self, instance: &str, failure: &str) {
        self.with(instance, |statistics, _| {
            failure.clone_into(&mut statistics.calls.failure)
        });
    }

    /// Records that calls of an instance pause from now on. It is reported at once, however few the
    /// calls were.
    pub fn paused(&self, instance: &str, pause: Duration) {
        let until = Timestamp::now().after(pause);
        self.with(instance, |statistics, _| {
            statistics.paused_until = Some(until);
        });
        self.observed.urgent.notify_one();
    }

    /// Records the result of a poll; `failure` is an error of the other side, without secrets. A
    /// failure is reported at once.
    pub fn polled(&self, instance: &str, flow_name: &str, failure: Option<&str>) {
        self.with(instance, |statistics, _| {
            if let Some(failure) = failure {
                failure.clone_into(&mut statistics.calls.failure);
            }
            if statistics.polls.len() < MAX_POLLS || statistics.polls.contains_key(flow_name) {
                statistics
                    .polls
                    .insert(flow_name.to_owned(), failure.map(str::to_owned));
            }
        });
        if failure.is_some() {
            self.observed.urgent.notify_one();
        }
    }

    /// Records that an access token was refused before its expiry; `hash` is its SHA-256. It is
    /// reported at once.
    pub fn token_refused(&self, instance: &str, hash: Vec<u8>) {
        self.with(instance, |statistics, _| statistics.refused_token = hash);
        self.observed.urgent.notify_one();
    }

    /// Samples a successful answer of an endpoint, if its body is JSON. Names of members are kept,
    /// except for the secrets in them.
    pub fn answered(&self, instance: &str, endpoint: &str, body: &[u8], mask: &Mask) {
        if body.is_empty() || body.len() > MAX_BYTES || endpoint.len() > MAX_NAME {
            return;
        }
        let wanted = self.with(instance, |statistics, room| {
            match statistics.endpoints.get(endpoint) {
                Some(shape) => shape.seen() < MAX_SAMPLES,
                None => room,
            }
        });
        let Some(text) = wanted.unwrap_or_default().then(|| json(body)).flatten() else {
            return;
        };
        let shape = Shape::of(text).masked(mask);
        self.with(instance, |statistics, room| {
            if room || statistics.endpoints.contains_key(endpoint) {
                statistics
                    .endpoints
                    .entry(endpoint.to_owned())
                    .or_default()
                    .merge(shape);
            }
        });
    }

    /// Applies `update` to the statistics of an instance; its second argument says whether there is
    /// room for another endpoint. Returns `None` when there is no room for another instance.
    fn with<T>(
        &self,
        instance: &str,
        update: impl FnOnce(&mut Statistics, bool) -> T,
    ) -> Option<T> {
        let mut connectors = self.observed.connectors.lock();
        let room = connectors
            .values()
            .map(|statistics| statistics.endpoints.len())
            .sum::<usize>()
            < MAX_ENDPOINTS;
        let connector = Connector {
            environment_id: self.environment.to_string(),
            instance_id: instance.to_owned(),
        };
        if !connectors.contains_key(&connector) && connectors.len() >= MAX_ENDPOINTS {
            return None;
        }
        Some(update(connectors.entry(connector).or_default(), room))
    }
}

impl Observations {
    /// Takes the observations that are due for a report, if any.
    pub fn take(&self) -> Option<wire::Observed> {
        let mut connectors = self.connectors.lock();
        let report: Vec<_> = connectors
            .iter_mut()
            .filter_map(|(connector, statistics)| statistics.take(connector))
            .collect();
        connectors.retain(|_, statistics| statistics.calls.total > 0);
        drop(connectors);
        (!report.is_empty()).then_some(wire::Observed {
            connectors: report,
            nonce: 0,
        })
    }

    /// Drops the calls of an instance that are not reported yet: they were made with a former
    /// config.
    pub fn forget_calls(&self, environment: &EnvironmentId, instance: &str) {
        let connector = Connector {
            environment_id: environment.to_string(),
            instance_id: instance.to_owned(),
        };
        if let Some(statistics) = self.connectors.lock().get_mut(&connector) {
            statistics.calls = Calls::default();
        }
    }

    /// Waits until a report must not wait for its time.
    pub async fn urgent(&self) {
        self.urgent.notified().await;
    }
}

impl Statistics {
    fn take(&mut self, connector: &Connector) -> Option<wire::ObservedConnector> {
        let paused_until = self.paused_until.take();
        let calls = &self.calls;
        let is_conclusive =
            calls.total >= MIN_CALLS || calls.failures == 0 || paused_until.is_some();
        let mut report = wire::ObservedConnector {
            environment_id: connector.environment_id.clone(),
            instance_id: connector.instance_id.clone(),
            endpoints: self.endpoints.drain().filter_map(endpoint).collect(),
            refused_token: std::mem::take(&mut self.refused_token),
            polls: self.polls.drain().map(polled).collect(),
            paused_until: millis(paused_until),
            ..wire::ObservedConnector::default()
        };
        if calls.total > 0 && is_conclusive {
            let calls = std::mem::take(&mut self.calls);
            report.calls = calls.total;
            report.failures = calls.failures;
            report.first_call_at = millis(calls.first_at);
            report.last_failure_at = millis(calls.last_failure_at);
            report.failure = calls.failure;
        }
        let has_content = report.calls > 0
            || !report.endpoints.is_empty()
            || !report.refused_token.is_empty()
            || !report.polls.is_empty();
        has_content.then_some(report)
    }
}

/// Returns milliseconds since 1970; 0 for `None`.
fn millis(at: Option<Timestamp>) -> u64 {
    at.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or_default())
}

fn polled((flow_name, failure): (String, Option<String>)) -> wire::ObservedPoll {
    wire::ObservedPoll {
        flow_name,
        failure: failure.unwrap_or_default(),
    }
}

fn endpoint((endpoint, shape): (String, Shape)) -> Option<wire::ObservedEndpoint> {
    let shape = serde_json::to_string(&shape)
        .ok()
        .filter(|text| text.len() <= MAX_SHAPE)?;
    Some(wire::ObservedEndpoint { endpoint, shape })
}

fn json(body: &[u8]) -> Option<&str> {
    kanat_mapping::json::check(body, kanat_mapping::json::MAX_DEPTH).ok()?;
    std::str::from_utf8(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_with_a_failure_are_reported_from_a_minimum_number_on() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        let began = millis(Some(Timestamp::now()));
        for result in [
            CallResult::Success,
            CallResult::Failure,
            CallResult::Success,
            CallResult::Success,
        ] {
            observer.called("ci_1", result);
        }
        assert_eq!(observed.take(), None);
        observer.called("ci_1", CallResult::Failure);
        observer.failed("ci_1", "POST http://erp/orders answered 503");
        let report = observed.take().unwrap().connectors.remove(0);
        assert_eq!(report.instance_id.as_str(), "ci_1");
        assert_eq!(report.calls, 5);
        assert_eq!(report.failures, 2);
        assert!(report.first_call_at >= began);
        assert!(report.last_failure_at >= report.first_call_at);
        assert_eq!(report.failure, "POST http://erp/orders answered 503");
        assert_eq!(observed.take(), None);
        assert!(observed.connectors.lock().is_empty());
    }

    #[test]
    fn calls_with_a_former_config_are_not_reported() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        observer.called("ci_1", CallResult::Failure);
        observed.forget_calls(&environment, "ci_1");
        observer.called("ci_1", CallResult::Success);
        let report = observed.take().unwrap().connectors.remove(0);
        assert_eq!(report.calls, 1);
        assert_eq!(report.failures, 0);
    }

    #[test]
    fn a_pause_is_reported_at_once_with_the_few_calls_that_led_to_it() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        observer.called("ci_1", CallResult::Failure);
        observer.failed("ci_1", "POST http://erp/orders: connection refused");
        let earliest = Timestamp::now().after(Duration::from_secs(40));
        observer.paused("ci_1", Duration::from_secs(40));
        let report = observed.take().unwrap().connectors.remove(0);
        assert_eq!(report.calls, 1);
        assert_eq!(report.failures, 1);
        assert!(report.paused_until >= u64::try_from(earliest.as_millis()).unwrap());
        assert_eq!(observed.take(), None);
    }

    #[test]
    fn any_number_of_polls_is_reported_and_the_last_one_of_a_flow_counts() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        observer.polled("ci_1", "books", None);
        observer.polled("ci_1", "books", Some("GET http://shop/books answered 500"));
        let report = observed.take().unwrap().connectors.remove(0);
        let failure = "GET http://shop/books answered 500".to_owned();
        assert_eq!(
            report.polls,
            [wire::ObservedPoll {
                flow_name: "books".to_owned(),
                failure
            }]
        );
        assert_eq!(observed.take(), None);
    }

    #[test]
    fn answers_are_reported_as_shapes_of_a_bounded_number_of_samples() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        for _ in 0..50 {
            observer.answered(
                "ci_1",
                "GET /orders",
                br#"{"token": "hush", "id": 4711}"#,
                Mask::none(),
            );
        }
        for body in ["", "<html>", "{\"a\":"] {
            observer.answered("ci_1", "GET /page", body.as_bytes(), Mask::none());
        }
        let report = observed.take().unwrap().connectors.remove(0);
        assert_eq!(report.endpoints.len(), 1);
        let text = &report.endpoints[0].shape;
        assert!(!text.contains("hush") && !text.contains("4711"), "{text}");
        assert_eq!(
            serde_json::from_str::<Shape>(text).unwrap().seen(),
            MAX_SAMPLES
        );
        assert_eq!(observed.take(), None);
    }

    #[test]
    fn a_secret_that_is_echoed_as_a_name_is_not_reported() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        let body = br#"{"x s3cr\u0065t": [{"s3cret": 1, "id": 2}], "s3cret": {}}"#;
        let mask = Mask::new(&["s3cret".to_owned()]);
        observer.answered("ci_1", "GET /orders", body, &mask);
        let report = observed.take().unwrap().connectors.remove(0);
        let text = &report.endpoints[0].shape;
        assert!(
            !text.contains("s3cret") && text.contains("x ********") && text.contains("id"),
            "{text}"
        );
    }

    #[test]
    fn what_is_seen_takes_bounded_memory() {
        let observed = Observations::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        for number in 0..2 * MAX_ENDPOINTS {
            observer.answered("ci_1", &format!("GET /{number}"), b"{}", Mask::none());
            observer.called(&format!("ci_{number}"), CallResult::Success);
        }
        let connectors = observed.connectors.lock();
        assert_eq!(connectors.len(), MAX_ENDPOINTS);
        assert_eq!(
            connectors
                .values()
                .map(|statistics| statistics.endpoints.len())
                .sum::<usize>(),
            MAX_ENDPOINTS
        );
    }
}
