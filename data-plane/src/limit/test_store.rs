//! A quota store in memory for tests. A test sets its outages and the duration of its exchanges.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use kanat_message_log::{Error, KeyUsage, QuotaStore};
use kanat_model::Timestamp;
use kanat_model::id::{BootId, ConsumerKeyId};
use kanat_rate_limit::{Exchange, ExchangeOutcome, Ledger, Requester, ShareRequest};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// Ledgers as a log keeps them.
pub(crate) struct Store {
    is_shared: bool,
    pub nodes: u32,
    created_at: Instant,
    /// While true, each exchange fails and has no effect.
    pub away: AtomicBool,
    /// Time until an exchange takes effect.
    pub delay: Mutex<Duration>,
    /// Number of exchanges with requests.
    pub exchanges: AtomicU32,
    /// Admitted calls of all keys that nodes have reported.
    pub used: AtomicU64,
    ledgers: Mutex<HashMap<String, Ledger>>,
    /// The last number of each owner.
    numbers: Mutex<HashMap<BootId, i64>>,
}

impl Store {
    pub fn new(is_shared: bool, nodes: u32) -> Arc<Self> {
        Arc::new(Self {
            is_shared,
            nodes,
            created_at: Instant::now(),
            away: AtomicBool::new(false),
            delay: Mutex::new(Duration::from_millis(1)),
            exchanges: AtomicU32::new(0),
            used: AtomicU64::new(0),
            ledgers: Mutex::default(),
            numbers: Mutex::default(),
        })
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_769_860_800_000).after(self.created_at.elapsed())
    }
}

#[async_trait::async_trait]
impl QuotaStore for Store {
    fn is_shared(&self) -> bool {
        self.is_shared
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<ExchangeOutcome, Error> {
        let delay = *self.delay.lock();
        sleep(delay).await;
        if self.away.load(Ordering::SeqCst) {
            return Err(Error::Unavailable("it is away".to_owned()));
        }
        let Exchange {
            node,
            owner,
            owner_age,
            number,
            requests,
        } = exchange;
        let now = self.now();
        let nodes = self.nodes;
        if !requests.is_empty() {
            self.exchanges.fetch_add(1, Ordering::SeqCst);
            if self.numbers.lock().insert(owner.clone(), *number) >= Some(*number) {
                return Ok(ExchangeOutcome::Repeated);
            }
        }
        let requester = Requester {
            node,
            owner,
            now,
            owner_created_at: now.before(*owner_age),
            nodes,
        };
        let exchange_key = |request: &ShareRequest| {
            self.used.fetch_add(request.used, Ordering::SeqCst);
            let mut ledgers = self.ledgers.lock();
            ledgers
                .entry(request.key.to_string())
                .or_insert_with(|| Ledger::new(request.rate, now))
                .exchange(request, requester)
        };
        let grants = requests.iter().map(exchange_key).collect();
        sleep(Duration::from_millis(1)).await;
        Ok(ExchangeOutcome::Done { now, nodes, grants })
    }

    async fn key_usage(&self, _: &[ConsumerKeyId]) -> Result<Vec<KeyUsage>, Error> {
        Ok(Vec::new())
    }
}
