//! What connectors were seen to do: how many calls failed by the other side's fault, and what
//! answers look like. It is gathered in bounded memory and told to the control plane now and then;
//! no value of an answer is kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kanat_catalog::shape::Shape;
use kanat_model::Mask;
use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1 as wire;
use tokio::sync::Notify;

/// Endpoints that are looked at between two reports.
const MAX_ENDPOINTS: usize = 500;
/// Answers of one endpoint that are looked at between two reports.
const MAX_SAMPLES: u64 = 20;
/// Longer answers are not looked at.
const MAX_BYTES: usize = 1 << 20;
/// The longest shape that is told, in bytes of JSON.
const MAX_SHAPE: usize = 64 << 10;
/// The longest name of an endpoint.
const MAX_NAME: usize = 500;
/// Flows whose polls are told of between two reports, of one instance.
const MAX_POLLS: usize = 50;
/// Fewer calls of which one failed tell nothing, and wait for others.
const FEWEST_CALLS: u64 = 5;

/// What was seen since the last report; shared by all who call.
#[derive(Debug, Default)]
pub struct Observed {
    connectors: Mutex<HashMap<Connector, Seen>>,
    /// Woken when something does not wait for its time.
    urgent: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Connector {
    environment_id: String,
    instance_id: String,
}

#[derive(Debug, Default)]
struct Seen {
    calls: u64,
    failures: u64,
    /// The last of the failures, in words without secrets.
    failure: String,
    endpoints: HashMap<String, Shape>,
    /// SHA-256 of an access token that was refused.
    refused_token: Vec<u8>,
    /// The last poll of each flow: its failure, or nothing.
    polls: HashMap<String, Option<String>>,
}

/// The connectors of one environment, for who calls them.
#[derive(Debug, Clone, Copy)]
pub struct Observer<'o> {
    pub observed: &'o Observed,
    pub environment: &'o EnvironmentId,
}

/// How a call ended, as far as it is the other side's doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Well,
    Failed,
}

impl Observer<'_> {
    /// A call of an instance has ended.
    pub fn called(&self, instance: &str, ended: Ended) {
        self.observed.with(self.environment, instance, |seen, _| {
            seen.calls += 1;
            seen.failures += u64::from(ended == Ended::Failed);
        });
    }

    /// Keeps why a call that was told as failed did so, in words without secrets.
    pub fn failed(&self, instance: &str, failure: &str) {
        self.observed.with(self.environment, instance, |seen, _| {
            failure.clone_into(&mut seen.failure)
        });
    }

    /// A poll of the flow of this name has ended; `failure` is what the other side did wrong, in
    /// words without secrets. A failure is told at once.
    pub fn polled(&self, instance: &str, flow_name: &str, failure: Option<&str>) {
        self.observed.with(self.environment, instance, |seen, _| {
            seen.failure = failure.map_or_else(|| std::mem::take(&mut seen.failure), str::to_owned);
            if seen.polls.len() < MAX_POLLS || seen.polls.contains_key(flow_name) {
                seen.polls
                    .insert(flow_name.to_owned(), failure.map(str::to_owned));
            }
        });
        if failure.is_some() {
            self.observed.urgent.notify_one();
        }
    }

    /// An access token of an instance was refused before its end; `hash` is its SHA-256. It is told
    /// at once.
    pub fn token_refused(&self, instance: &str, hash: Vec<u8>) {
        self.observed.with(self.environment, instance, |seen, _| {
            seen.refused_token = hash
        });
        self.observed.urgent.notify_one();
    }

    /// An endpoint of an instance has answered well. Whether the body is JSON is looked at here.
    /// Names of members are kept, but for the secrets in them.
    pub fn answered(&self, instance: &str, endpoint: &str, body: &[u8], mask: &Mask) {
        if body.is_empty() || body.len() > MAX_BYTES || endpoint.len() > MAX_NAME {
            return;
        }
        let wanted = self
            .observed
            .with(self.environment, instance, |seen, room| {
                match seen.endpoints.get(endpoint) {
                    Some(shape) => shape.seen() < MAX_SAMPLES,
                    None => room,
                }
            });
        let Some(text) = wanted.unwrap_or_default().then(|| json(body)).flatten() else {
            return;
        };
        let shape = Shape::of(text).masked(mask);
        self.observed
            .with(self.environment, instance, |seen, room| {
                if room || seen.endpoints.contains_key(endpoint) {
                    seen.endpoints
                        .entry(endpoint.to_owned())
                        .or_default()
                        .merge(shape);
                }
            });
    }
}

impl Observed {
    /// What is to be told; none when there is nothing. What is given is forgotten.
    pub fn take(&self) -> Option<wire::Observed> {
        let mut connectors = self
            .connectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let told: Vec<_> = connectors
            .iter_mut()
            .filter_map(|(connector, seen)| seen.take(connector))
            .collect();
        connectors.retain(|_, seen| seen.calls > 0);
        drop(connectors);
        (!told.is_empty()).then_some(wire::Observed {
            connectors: told,
            nonce: 0,
        })
    }

    /// Waits until there is something that is to be told at once.
    pub async fn urgent(&self) {
        self.urgent.notified().await;
    }

    /// What `of` makes of what was seen of an instance, and of whether there is room for another
    /// endpoint. None when there is no room for another instance.
    fn with<T>(
        &self,
        environment: &EnvironmentId,
        instance: &str,
        of: impl FnOnce(&mut Seen, bool) -> T,
    ) -> Option<T> {
        let mut connectors = self
            .connectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let room = connectors
            .values()
            .map(|seen| seen.endpoints.len())
            .sum::<usize>()
            < MAX_ENDPOINTS;
        let connector = Connector {
            environment_id: environment.as_str().to_owned(),
            instance_id: instance.to_owned(),
        };
        if !connectors.contains_key(&connector) && connectors.len() >= MAX_ENDPOINTS {
            return None;
        }
        Some(of(connectors.entry(connector).or_default(), room))
    }
}

impl Seen {
    fn take(&mut self, connector: &Connector) -> Option<wire::ObservedConnector> {
        let endpoints: Vec<_> = self.endpoints.drain().filter_map(told).collect();
        let (calls, failures, failure) =
            if self.calls >= FEWEST_CALLS || self.calls > 0 && self.failures == 0 {
                let failure = std::mem::take(&mut self.failure);
                (
                    std::mem::take(&mut self.calls),
                    std::mem::take(&mut self.failures),
                    failure,
                )
            } else {
                (0, 0, String::new())
            };
        let refused_token = std::mem::take(&mut self.refused_token);
        let polls: Vec<_> = self.polls.drain().map(polled).collect();
        let tells =
            calls > 0 || !endpoints.is_empty() || !refused_token.is_empty() || !polls.is_empty();
        tells.then(|| wire::ObservedConnector {
            environment_id: connector.environment_id.clone(),
            instance_id: connector.instance_id.clone(),
            calls,
            failures,
            endpoints,
            refused_token,
            polls,
            failure,
        })
    }
}

fn polled((flow_name, failure): (String, Option<String>)) -> wire::ObservedPoll {
    wire::ObservedPoll {
        flow_name,
        failure: failure.unwrap_or_default(),
    }
}

fn told((endpoint, shape): (String, Shape)) -> Option<wire::ObservedEndpoint> {
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
    fn calls_are_told_once_there_are_enough_of_them() {
        let observed = Observed::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        for ended in [Ended::Well, Ended::Failed, Ended::Well, Ended::Well] {
            observer.called("ci_1", ended);
        }
        assert_eq!(observed.take(), None);
        observer.called("ci_1", Ended::Failed);
        observer.failed("ci_1", "POST http://erp/orders answered 503");
        let told = observed.take().unwrap().connectors.remove(0);
        assert_eq!(told.instance_id.as_str(), "ci_1");
        assert_eq!(told.calls, 5);
        assert_eq!(told.failures, 2);
        assert_eq!(told.failure, "POST http://erp/orders answered 503");
        assert_eq!(observed.take(), None);
        assert!(observed.connectors.lock().unwrap().is_empty());
    }

    #[test]
    fn polls_are_told_whatever_their_number_and_the_last_one_of_a_flow_counts() {
        let observed = Observed::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        observer.polled("ci_1", "books", None);
        observer.polled("ci_1", "books", Some("GET http://shop/books answered 500"));
        let told = observed.take().unwrap().connectors.remove(0);
        let failure = "GET http://shop/books answered 500".to_owned();
        assert_eq!(
            told.polls,
            [wire::ObservedPoll {
                flow_name: "books".to_owned(),
                failure
            }]
        );
        assert_eq!(observed.take(), None);
    }

    #[test]
    fn answers_are_told_as_shapes_of_a_bounded_number_of_samples() {
        let observed = Observed::default();
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
        let told = observed.take().unwrap().connectors.remove(0);
        assert_eq!(told.endpoints.len(), 1);
        let text = &told.endpoints[0].shape;
        assert!(!text.contains("hush") && !text.contains("4711"), "{text}");
        assert_eq!(
            serde_json::from_str::<Shape>(text).unwrap().seen(),
            MAX_SAMPLES
        );
        assert_eq!(observed.take(), None);
    }

    #[test]
    fn a_secret_that_is_echoed_as_a_name_is_not_told() {
        let observed = Observed::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        let body = br#"{"x s3cr\u0065t": [{"s3cret": 1, "id": 2}], "s3cret": {}}"#;
        let mask = Mask::new(&["s3cret".to_owned()]);
        observer.answered("ci_1", "GET /orders", body, &mask);
        let told = observed.take().unwrap().connectors.remove(0);
        let text = &told.endpoints[0].shape;
        assert!(
            !text.contains("s3cret") && text.contains("x ********") && text.contains("id"),
            "{text}"
        );
    }

    #[test]
    fn what_is_seen_takes_bounded_memory() {
        let observed = Observed::default();
        let environment = EnvironmentId::from("env_1");
        let observer = Observer {
            observed: &observed,
            environment: &environment,
        };
        for number in 0..2 * MAX_ENDPOINTS {
            observer.answered("ci_1", &format!("GET /{number}"), b"{}", Mask::none());
            observer.called(&format!("ci_{number}"), Ended::Well);
        }
        let connectors = observed.connectors.lock().unwrap();
        assert_eq!(connectors.len(), MAX_ENDPOINTS);
        assert_eq!(
            connectors
                .values()
                .map(|seen| seen.endpoints.len())
                .sum::<usize>(),
            MAX_ENDPOINTS
        );
    }
}
