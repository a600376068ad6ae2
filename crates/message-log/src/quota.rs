//! Quotas of consumer keys and connectors that all nodes share: how much of a key's token bucket
//! each node holds, how much of a day's limit is granted, and how often the key was used. The
//! ledger of a key is in [`kanat_rate_limit`].

pub(crate) mod read;

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::ConsumerKeyId;
use kanat_rate_limit::{Exchange, ExchangeOutcome};

use crate::Result;

/// Time after which the ledger of an idle connector is dropped. Its bucket is full by then,
/// whatever its rate.
pub(crate) const CONNECTOR_RETENTION: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The ledgers of rate limits, and the usage of consumer keys.
#[async_trait::async_trait]
pub trait QuotaStore: Send + Sync {
    /// Returns whether other processes may use the same log. A process that is alone need not
    /// exchange anything for connectors. The ledgers of consumer keys are exchanged in any case,
    /// because they also count usage.
    fn is_shared(&self) -> bool;

    /// Applies an exchange to the ledgers of its keys, all of it or nothing. An exchange without
    /// requests only returns the number of nodes.
    async fn exchange(&self, exchange: &Exchange) -> Result<ExchangeOutcome>;

    /// Returns the usage of these consumer keys, without keys that were never used.
    async fn key_usage(&self, keys: &[ConsumerKeyId]) -> Result<Vec<KeyUsage>>;
}

/// Usage of a consumer key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUsage {
    pub key: ConsumerKeyId,
    pub request_count: u64,
    pub last_used_at: Timestamp,
}
