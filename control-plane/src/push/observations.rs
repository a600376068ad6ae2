//! Observations of connectors that nodes report, and requests for what they have not reported yet.

use std::collections::BTreeMap;
use std::time::Duration;

use kanat_model::id::NodeId;
use kanat_proto::node::v1::ObservedConnector;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Observations that wait to be processed; what exceeds them is dropped.
const QUEUE: usize = 1000;

/// How long a node may take to answer. Its build may not know the request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Report of a node.
#[derive(Debug)]
pub enum Observation {
    /// Calls of a connector.
    Connector(ObservedConnector),
    /// The node has reported all that it had observed when it was asked.
    Answered {
        /// The node.
        node: NodeId,
        /// Nonce of the request.
        nonce: u64,
    },
}

/// Queue of observations, and the requests that were sent to nodes.
#[derive(Debug)]
pub struct Observations {
    queue: mpsc::Sender<Observation>,
    receiver: Mutex<Option<mpsc::Receiver<Observation>>>,
    /// Nonce of the last request.
    last_requested: watch::Sender<u64>,
    /// Nonce of the last request that each node has answered, once the answer was processed.
    /// Empty while nobody waits for answers.
    answered: watch::Sender<BTreeMap<NodeId, u64>>,
}

impl Default for Observations {
    fn default() -> Self {
        let (queue, receiver) = mpsc::channel(QUEUE);
        Self {
            queue,
            receiver: Mutex::new(Some(receiver)),
            last_requested: watch::Sender::default(),
            answered: watch::Sender::default(),
        }
    }
}

impl Observations {
    /// Queues an observation. One that finds no room is dropped: nodes will make it again.
    pub fn report(&self, observation: Observation) {
        let _ = self.queue.try_send(observation);
    }

    /// Returns the other end of the queue; `None` from the second call on.
    pub fn take_receiver(&self) -> Option<mpsc::Receiver<Observation>> {
        self.receiver.lock().take()
    }

    /// Returns a receiver of the nonces of requests.
    pub fn request_nonces(&self) -> watch::Receiver<u64> {
        self.last_requested.subscribe()
    }

    /// Notes that the answer of a node to a request has been processed.
    pub fn processed(&self, node: NodeId, nonce: u64) {
        let is_awaited = self.answered.receiver_count() > 0;
        self.answered.send_modify(|answered| {
            if is_awaited {
                answered.insert(node, nonce);
            } else {
                answered.clear();
            }
        });
    }

    /// Asks all connected nodes, and waits until the answers of `nodes` have been processed, 2 s at
    /// most.
    pub async fn ask(&self, nodes: &[NodeId]) {
        let mut answered = self.answered.subscribe();
        let mut nonce = 0;
        self.last_requested.send_modify(|last| {
            *last += 1;
            nonce = *last;
        });
        let all = answered.wait_for(|answered| {
            nodes
                .iter()
                .all(|id| answered.get(id).is_some_and(|to| *to >= nonce))
        });
        if timeout(ANSWER_TIMEOUT, all).await.is_err() {
            tracing::warn!("some nodes have not reported their observations of connectors in time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_forgotten_when_nobody_waits_for_it() {
        let observations = Observations::default();
        let nodes = ["node_1", "node_2"].map(NodeId::from);
        let process = async {
            for node in &nodes {
                observations.processed(node.clone(), 1);
            }
        };
        tokio::join!(observations.ask(&nodes), process);
        observations.processed(NodeId::from("node_3"), 1);
        assert!(observations.answered.borrow().is_empty());
    }
}
