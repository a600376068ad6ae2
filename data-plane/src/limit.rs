//! The rate limiter: decides whether a call is within the limits of its key. A key is a consumer
//! key or a connector instance, and its limits hold over all nodes. Each key has a bucket from its
//! first call until it is idle. The bucket of a key with a limit per day also stays until the day
//! ends. One exchange with the store serves many keys; a call waits only for its own key. On a log
//! that only this process uses, this node alone limits the calls of connectors.

mod entry;
#[cfg(test)]
pub(crate) mod test_store;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use kanat_message_log::QuotaStore;
use kanat_model::id::{BootId, NodeId};
use kanat_model::{Timestamp, saturated};
use kanat_rate_limit::{
    Bucket, ClusterState, ClusterView, Decision, Exchange, ExchangeOutcome, Key, LimitExceeded,
    LimitStatus, Limits, MAX_REQUESTS, Phase, Rate, Reservation, ShareGrant, ShareRequest,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use entry::{Entry, State};

/// Interval at which usage is reported, and shares are renewed and adjusted.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which a store without an answer counts as unreachable.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause before an unreachable store is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

const SHARDS: usize = 64;

/// The limits of all keys, as this node keeps them.
pub(crate) struct Limiter {
    store: Arc<dyn QuotaStore>,
    /// Other processes may use the log.
    is_shared: bool,
    node: NodeId,
    /// Owner of the shares: a boot id of the limiter's own, not that of the node.
    owner: BootId,
    /// Creation of the limiter, and so of the owner.
    created_at: Instant,
    last_exchange_number: AtomicI64,
    hasher: RandomState,
    /// Keys in use.
    shards: Vec<Mutex<HashMap<Key, Arc<Entry>>>>,
    /// Keys whose requests are sent with the next exchanges.
    pending_requests: Mutex<Vec<Arc<Entry>>>,
    wake: Notify,
    cluster: ArcSwap<ClusterState>,
}

/// A request on its way to the store.
struct SentRequest {
    entry: Arc<Entry>,
    reservation: Reservation,
}

impl Limiter {
    /// Returns a limiter. It asks the store only while [`Self::run`] runs.
    pub fn new(store: Arc<dyn QuotaStore>, node: NodeId) -> Self {
        let is_shared = store.is_shared();
        Self {
            store,
            is_shared,
            node,
            owner: BootId::generate(),
            created_at: Instant::now(),
            last_exchange_number: AtomicI64::new(0),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            pending_requests: Mutex::default(),
            wake: Notify::new(),
            cluster: ArcSwap::default(),
        }
    }

    /// Admits a call of a key, and counts it. Waits for no token, but perhaps for the answer of the
    /// store.
    ///
    /// # Errors
    /// The call is beyond a limit; it is not counted.
    pub async fn check(&self, key: &Key, limits: Limits) -> Result<LimitStatus, LimitExceeded> {
        self.decide(key, limits, 0).await
    }

    /// Tries to admit the first call of a connector's queue. `queued_calls` is the number of calls
    /// that wait behind it. Such calls have no limit per day.
    ///
    /// # Errors
    /// The time after which to try again.
    pub async fn check_queued(
        &self,
        key: &Key,
        rate: Rate,
        queued_calls: u32,
    ) -> Result<(), Duration> {
        self.decide(key, Limits { rate, per_day: 0 }, queued_calls)
            .await
            .map(drop)
            .map_err(|exceeded| exceeded.next_attempt_in)
    }

    async fn decide(
        &self,
        key: &Key,
        limits: Limits,
        queued_calls: u32,
    ) -> Result<LimitStatus, LimitExceeded> {
        let answer = loop {
            let entry = self.entry(key, limits);
            let mut state = entry.lock();
            if state.dropped {
                continue;
            }
            // The view is read under the entry's lock. `run` first marks the store as unreachable
            // and then locks each entry to answer its calls. So a call with the older view is in
            // the queue by then.
            let view = self.view_of(key);
            match state.bucket.try_admit(limits, queued_calls, &view) {
                Decision::Admit(status) => {
                    if state.bucket.allowance_runs_low() {
                        self.schedule_request(&entry, &mut state);
                    }
                    return Ok(status);
                }
                Decision::Refuse(exceeded) => return Err(exceeded),
                Decision::AskStore => {}
            }
            let (reply, answer) = oneshot::channel();
            state.awaiting_store.push_back(reply);
            self.schedule_request(&entry, &mut state);
            break answer;
        };
        match answer.await {
            Ok(answer) => answer,
            // The node leaves.
            Err(_) => {
                let view = self.view_of(key);
                Err(self.entry(key, limits).lock().bucket.refusal(&view))
            }
        }
    }

    /// Exchanges with the store until `stop`, then reports and returns everything to it, for at
    /// most [`STORE_TIMEOUT`].
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let deadline = async {
            stop.cancelled().await;
            sleep(STORE_TIMEOUT).await;
        };
        tokio::select! {
            () = self.exchange_until(&stop) => {}
            () = deadline => tracing::warn!("usage of keys could not be written in time"),
        }
        // Later calls are decided by what this node has.
        self.cluster.store(Arc::new(ClusterState {
            unreachable_since: Some(Instant::now()),
            ..**self.cluster.load()
        }));
        let view = self.view();
        for entry in self.entries() {
            entry.answer_waiting(&view);
        }
    }

    async fn exchange_until(&self, stop: &CancellationToken) {
        self.refresh_cluster_state().await;
        let mut ticks = interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.wake.notified() => {}
                _ = ticks.tick() => self.tick(),
                () = stop.cancelled() => break,
            }
            self.exchange_pending_requests(Phase::Running).await;
        }
        for entry in self.entries() {
            self.schedule_request(&entry, &mut entry.lock());
        }
        while self.exchange_pending_requests(Phase::Leaving).await {}
    }

    /// Reads the number of nodes and the store's clock, by an exchange without requests.
    async fn refresh_cluster_state(&self) {
        let exchange = self.new_exchange(0, Vec::new());
        let sent = Instant::now();
        match timeout(STORE_TIMEOUT, self.store.exchange(&exchange)).await {
            Ok(Ok(ExchangeOutcome::Done { now, nodes, .. })) => {
                self.note_reachable(now, nodes, sent)
            }
            Ok(Ok(ExchangeOutcome::Repeated)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the number of nodes that share limits cannot be read")
            }
            Err(_) => {
                tracing::warn!("the number of nodes that share limits cannot be read in time")
            }
        }
    }

    /// Ends a counting interval of each bucket, and drops idle ones.
    fn tick(&self) {
        let view = self.view();
        for shard in &self.shards {
            shard.lock().retain(|_, entry| {
                let mut state = entry.lock();
                let has_report = state.bucket.tick();
                state.dropped = if entry.is_local {
                    state.bucket.is_droppable_local(&self.view_of(&entry.key))
                } else {
                    if has_report {
                        self.schedule_request(entry, &mut state);
                    }
                    !state.is_request_pending
                        && state.awaiting_store.is_empty()
                        && state.bucket.is_droppable(&view)
                };
                !state.dropped
            });
        }
    }

    /// Sends the requests of the keys that were queued first, in one exchange. Returns whether keys
    /// were queued, and wakes [`Self::run`] if more are. The others stay in `pending_requests`,
    /// where [`Self::exchange`] finds their calls and answers them if the store is unreachable.
    async fn exchange_pending_requests(&self, phase: Phase) -> bool {
        let entries = self.take_pending_requests();
        if entries.is_empty() {
            return false;
        }
        self.exchange(entries, phase).await;
        true
    }

    fn take_pending_requests(&self) -> Vec<Arc<Entry>> {
        let mut pending = self.pending_requests.lock();
        let count = pending.len().min(MAX_REQUESTS);
        let entries = pending.drain(..count).collect();
        if !pending.is_empty() {
            self.wake.notify_one();
        }
        entries
    }

    /// Sends an exchange until its outcome is known, also after a stop: it carries usage that no
    /// other exchange reports.
    async fn exchange(&self, entries: Vec<Arc<Entry>>, phase: Phase) {
        let view = self.view();
        let (sent, requests): (Vec<SentRequest>, Vec<_>) = entries
            .into_iter()
            .map(|entry| {
                let mut state = entry.lock();
                state.is_request_pending = false;
                let waiting_calls = saturated(state.awaiting_store.len());
                let key = entry.key.clone();
                let (mut request, reservation) =
                    state.bucket.request(key, waiting_calls, phase, &view);
                drop(state);
                if matches!(entry.key, Key::Connector(_)) {
                    // The store drops connectors that no node asks for.
                    request.last_used_at = Some(view.wall);
                }
                (SentRequest { entry, reservation }, request)
            })
            .unzip();
        let number = self.last_exchange_number.fetch_add(1, Ordering::Relaxed) + 1;
        let exchange = self.new_exchange(number, requests);
        loop {
            let sent_at = Instant::now();
            let error = match timeout(STORE_TIMEOUT, self.store.exchange(&exchange)).await {
                Ok(Ok(ExchangeOutcome::Done { now, nodes, grants })) => {
                    self.note_reachable(now, nodes, sent_at);
                    let view = self.view();
                    for (sent, grant) in sent.iter().zip(&grants) {
                        self.apply(sent, grant, sent_at, &view);
                    }
                    return;
                }
                Ok(Ok(ExchangeOutcome::Repeated)) => {
                    self.refresh_cluster_state().await;
                    for SentRequest { entry, reservation } in &sent {
                        entry.lock().bucket.cancel_reservation(*reservation);
                    }
                    return;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            self.note_unreachable(&error);
            // Calls that wait are answered now. One that read the state just before it changed is
            // answered after the next attempt. If the exchange succeeds later, its grant admits
            // other calls that wait then.
            let view = self.view();
            sent.iter()
                .for_each(|sent| sent.entry.answer_waiting(&view));
            let pending = self.pending_requests.lock().clone();
            pending.iter().for_each(|entry| entry.answer_waiting(&view));
            sleep(RETRY_INTERVAL).await;
        }
    }

    fn new_exchange(&self, number: i64, requests: Vec<ShareRequest>) -> Exchange {
        Exchange {
            node: self.node.clone(),
            owner: self.owner.clone(),
            owner_age: self.created_at.elapsed(),
            number,
            requests,
        }
    }

    /// Applies the grant for a request that was sent at `sent_at`, and answers the calls that
    /// waited for it.
    fn apply(&self, sent: &SentRequest, grant: &ShareGrant, sent_at: Instant, view: &ClusterView) {
        let SentRequest { entry, reservation } = sent;
        let mut state = entry.lock();
        let State {
            bucket,
            awaiting_store,
            ..
        } = &mut *state;
        bucket.apply(grant, *reservation, sent_at, view);
        let mut admitted = grant.admitted;
        for _ in 0..reservation.waiting_calls {
            let Some(reply) = awaiting_store.pop_front() else {
                break;
            };
            if reply.is_closed() {
                continue;
            }
            let answer = if admitted > 0 {
                admitted -= 1;
                Ok(bucket.count_admitted(view))
            } else {
                bucket.decide_without_store(view)
            };
            // A caller that has gone since the check above counts as admitted, if it was.
            let _ = reply.send(answer);
        }
        bucket.cancel_admissions(admitted);
        if bucket.exceeds_target() || !awaiting_store.is_empty() {
            self.schedule_request(entry, &mut state);
        }
    }

    fn note_reachable(&self, now: Timestamp, nodes: u32, sent_at: Instant) {
        if self.cluster.load().unreachable_since.is_some() {
            tracing::info!("limits of keys and connectors are shared among the nodes again");
        }
        self.cluster.store(Arc::new(ClusterState {
            nodes,
            clock: Some((now, sent_at)),
            unreachable_since: None,
        }));
    }

    fn note_unreachable(&self, error: &str) {
        let cluster = **self.cluster.load();
        if cluster.unreachable_since.is_none() {
            tracing::warn!(
                error,
                nodes = cluster.nodes,
                "limits of keys and connectors cannot be shared: this node applies its equal part, \
                 if it knows the number of nodes"
            );
            self.cluster.store(Arc::new(ClusterState {
                unreachable_since: Some(Instant::now()),
                ..cluster
            }));
        }
    }

    fn view(&self) -> ClusterView {
        self.cluster.load().view(Instant::now())
    }

    fn view_of(&self, key: &Key) -> ClusterView {
        if self.is_local(key) {
            ClusterView::local(self.created_at)
        } else {
            self.view()
        }
    }

    fn is_local(&self, key: &Key) -> bool {
        match key {
            Key::Consumer(_) => false,
            Key::Connector(_) => !self.is_shared,
        }
    }

    fn entry(&self, key: &Key, limits: Limits) -> Arc<Entry> {
        let place = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        let mut shard = self.shards[place].lock();
        if let Some(entry) = shard.get(key) {
            return Arc::clone(entry);
        }
        let is_local = self.is_local(key);
        let bucket = if is_local {
            Bucket::new_full(limits, Instant::now())
        } else {
            Bucket::new(limits, Instant::now())
        };
        let state = State {
            bucket,
            awaiting_store: VecDeque::new(),
            is_request_pending: false,
            dropped: false,
        };
        let entry = Arc::new(Entry {
            key: key.clone(),
            is_local,
            state: Mutex::new(state),
        });
        shard.insert(key.clone(), Arc::clone(&entry));
        entry
    }

    /// Keys in use.
    #[cfg(test)]
    pub fn keys(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.shards
            .iter()
            .flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>())
            .collect()
    }

    fn schedule_request(&self, entry: &Arc<Entry>, state: &mut State) {
        if !entry.is_local && !std::mem::replace(&mut state.is_request_pending, true) {
            self.pending_requests.lock().push(Arc::clone(entry));
            self.wake.notify_one();
        }
    }
}
