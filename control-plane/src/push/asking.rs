//! Asking nodes what they have seen of connectors, so that whoever needs it does not wait for their
//! next word.

use std::collections::BTreeMap;
use std::time::Duration;

use kanat_model::id::{EnvironmentId, NodeId};
use kanat_proto::node::v1::ObservedConnector;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::hub::Hub;
use super::nodes::{Node, Status};

/// A node that has not answered by then is not waited for: it may be of a build that does not know
/// the question.
const PATIENCE: Duration = Duration::from_secs(2);

/// Nodes of other control planes are not asked from here: they have told within this time.
const UNASKED: Duration = Duration::from_millis(2_500);

/// What a node said of connectors.
#[derive(Debug)]
pub enum Observation {
    Connector(ObservedConnector),
    /// That it has told all that it had seen when it was asked.
    Answered {
        node: NodeId,
        nonce: u64,
    },
}

/// Questions and answers, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// The last question.
    asked: watch::Sender<u64>,
    /// The last one that each node has answered, and whose answer was taken up.
    answered: watch::Sender<BTreeMap<NodeId, u64>>,
}

impl Asking {
    /// Woken at each question.
    pub fn questions(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }
}

impl Hub {
    /// What a node said when it was asked has been taken up.
    pub fn taken_up(&self, node: NodeId, nonce: u64) {
        self.asking.answered.send_modify(|answered| {
            answered.insert(node, nonce);
        });
    }

    /// Returns once what the nodes of an environment have seen of connectors until now has been
    /// taken up.
    pub async fn observed_until_now(&self, environment: &EnvironmentId) {
        let serves = |node: &Node| {
            node.status != Status::Disconnected && node.environments.contains_key(environment)
        };
        let own: Vec<NodeId> = self
            .nodes
            .list()
            .into_iter()
            .filter(serves)
            .map(|node| node.id)
            .collect();
        let elsewhere = self
            .others
            .connected()
            .iter()
            .any(|node| serves(node) && !own.contains(&node.id));
        let mut nonce = 0;
        self.asking.asked.send_modify(|asked| {
            *asked += 1;
            nonce = *asked;
        });
        let mut answered = self.asking.answered.subscribe();
        let all = answered.wait_for(|answered| {
            own.iter()
                .all(|id| answered.get(id).is_some_and(|to| *to >= nonce))
        });
        let asked = async { timeout(PATIENCE, all).await.is_ok() };
        let unasked = async {
            if elsewhere {
                sleep(UNASKED).await;
            }
        };
        let (told, ()) = tokio::join!(asked, unasked);
        if !told {
            tracing::warn!("some nodes have not told in time what they have seen of connectors");
        }
    }
}
