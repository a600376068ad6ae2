//! Whether a call is within the limits of its key, over all nodes: a consumer's call by the limits
//! of its consumer key, a call to a connector by those of its instance. What a node decides by
//! itself is in [`bucket`]; here the buckets are kept, and the store is asked for many keys at
//! once. A call waits only for a key that has nothing here; none waits for another key's. A key has
//! a bucket from its first call until it is idle. Connectors of a log that only this process has
//! are decided here alone: nothing is written for them.

mod bucket;
mod entry;
mod standing;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use kanat_message_log::quota::{Key, MOST_ASKS, Rate};
use kanat_message_log::{Ask, Exchange, Exchanged, Gain, Quotas};
use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use bucket::{Asked, Bucket, Decision};
use entry::{Entry, State};
use view::{View, World};

pub(crate) use bucket::Limits;
pub(crate) use standing::{Limited, Standing, Window};

/// How often what was used is told, and shares are renewed and fitted to what is called.
const BEAT: Duration = Duration::from_secs(1);

/// A store that takes longer is away.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait before a store that is away is asked again.
const AGAIN: Duration = Duration::from_millis(250);

const SHARDS: usize = 64;

/// The limits of all keys, as this node keeps them.
pub(crate) struct Limiter {
    log: Arc<dyn Quotas>,
    /// Other processes may use the log.
    is_shared: bool,
    node: NodeId,
    owner: BootId,
    begun: Instant,
    turn: AtomicI64,
    hasher: RandomState,
    /// Keys in use.
    shards: Vec<Mutex<HashMap<Key, Arc<Entry>>>>,
    /// Keys that the store is to be asked for.
    asking: Mutex<Vec<Arc<Entry>>>,
    wake: Notify,
    world: ArcSwap<World>,
}

/// An ask under way.
struct Sent {
    entry: Arc<Entry>,
    asked: Asked,
}

impl Limiter {
    /// Nothing is used before [`Self::run`] runs.
    pub fn new(log: Arc<dyn Quotas>, node: NodeId) -> Self {
        let is_shared = log.is_shared();
        Self {
            log,
            is_shared,
            node,
            owner: BootId::generate(),
            begun: Instant::now(),
            turn: AtomicI64::new(0),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            asking: Mutex::default(),
            wake: Notify::new(),
            world: ArcSwap::default(),
        }
    }

    /// Whether a call with this key may go on; it counts when it may.
    ///
    /// # Errors
    /// It is beyond a limit, and counts for none.
    pub async fn admit(&self, key: &Key, limits: Limits) -> Result<Standing, Limited> {
        self.call(key, limits, 0).await
    }

    /// One try for a call that waits for its turn, with so many behind it.
    ///
    /// # Errors
    /// When to try again.
    pub async fn turn(&self, key: &Key, rate: Rate, behind: u32) -> Result<(), Duration> {
        self.call(key, Limits { rate, per_day: 0 }, behind)
            .await
            .map(drop)
            .map_err(|limited| limited.again)
    }

    async fn call(&self, key: &Key, limits: Limits, behind: u32) -> Result<Standing, Limited> {
        let answer = loop {
            let view = self.view_of(key);
            let entry = self.entry(key, limits, &view);
            let mut state = entry.lock();
            if state.dropped {
                continue;
            }
            match state.bucket.call(limits, behind, &view) {
                Decision::Admit(standing) => {
                    if state.bucket.runs_low() {
                        self.queue(&entry, &mut state);
                    }
                    return Ok(standing);
                }
                Decision::Refuse(limited) => return Err(limited),
                Decision::Ask => {}
            }
            let (reply, answer) = oneshot::channel();
            state.waiting.push_back(reply);
            self.queue(&entry, &mut state);
            break answer;
        };
        match answer.await {
            Ok(answer) => answer,
            // The node goes.
            Err(_) => {
                let view = self.view_of(key);
                Err(self.entry(key, limits, &view).lock().bucket.refused(&view))
            }
        }
    }

    /// Asks the store until `stop`, then gives everything back.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        self.look().await;
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.wake.notified() => {}
                _ = beat.tick() => self.beat(),
                () = stop.cancelled() => break,
            }
            self.ask(false, &stop).await;
        }
        let entries = self.entries();
        entries
            .iter()
            .for_each(|entry| self.queue(entry, &mut entry.lock()));
        if timeout(PATIENCE, self.ask(true, &CancellationToken::new()))
            .await
            .is_err()
        {
            tracing::warn!("how often keys were used could not be written down in time");
        }
        // Whoever still calls goes by what is here.
        self.world.store(Arc::new(World {
            away: Some(Instant::now()),
            ..**self.world.load()
        }));
        entries
            .iter()
            .for_each(|entry| entry.decide_all(&self.view()));
    }

    /// Looks how many nodes there are, and what time it is.
    async fn look(&self) {
        let exchange = self.numbered(0, Vec::new());
        let sent = Instant::now();
        match timeout(PATIENCE, self.log.exchange(&exchange)).await {
            Ok(Ok(Exchanged::Done { now, nodes, .. })) => self.is_there(now, nodes, sent),
            Ok(Ok(Exchanged::Repeated)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "how many nodes share limits cannot be read"),
            Err(_) => tracing::warn!("how many nodes share limits cannot be read in time"),
        }
    }

    /// Counts what is called, and drops what is idle.
    fn beat(&self) {
        for shard in &self.shards {
            lock(shard).retain(|_, entry| {
                let mut state = entry.lock();
                let has_news = state.bucket.beat();
                state.dropped = if entry.is_ours {
                    state.bucket.is_full(&self.view_of(&entry.key))
                } else {
                    if has_news {
                        self.queue(entry, &mut state);
                    }
                    !state.queued && state.waiting.is_empty() && state.bucket.is_idle()
                };
                !state.dropped
            });
        }
    }

    /// Asks for all keys that stand in line.
    async fn ask(&self, leaving: bool, stop: &CancellationToken) {
        loop {
            let mut entries = std::mem::take(&mut *lock(&self.asking));
            if entries.is_empty() {
                return;
            }
            while !entries.is_empty() {
                let rest = entries.split_off(entries.len().min(MOST_ASKS));
                self.exchange(entries, leaving, stop).await;
                entries = rest;
            }
        }
    }

    /// One exchange, sent until its outcome is known; after `stop`, once.
    async fn exchange(&self, entries: Vec<Arc<Entry>>, leaving: bool, stop: &CancellationToken) {
        let view = self.view();
        let (sent, asks): (Vec<Sent>, Vec<_>) = entries
            .into_iter()
            .map(|entry| {
                let mut state = entry.lock();
                state.queued = false;
                let calls = u32::try_from(state.waiting.len()).unwrap_or(u32::MAX);
                let (mut ask, asked) = state.bucket.ask(entry.key.clone(), calls, leaving, &view);
                drop(state);
                if matches!(entry.key, Key::Connector(_)) {
                    // The store forgets those that nobody asks for any more.
                    ask.last_used_at = Some(view.wall);
                }
                (Sent { entry, asked }, ask)
            })
            .unzip();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
        let exchange = self.numbered(turn, asks);
        loop {
            let begun = Instant::now();
            let error = match timeout(PATIENCE, self.log.exchange(&exchange)).await {
                Ok(Ok(Exchanged::Done { now, nodes, gains })) => {
                    self.is_there(now, nodes, begun);
                    let view = self.view();
                    for (sent, gain) in sent.iter().zip(&gains) {
                        self.gained(sent, gain, begun, &view);
                    }
                    return;
                }
                Ok(Ok(Exchanged::Repeated)) => {
                    self.look().await;
                    for Sent { entry, asked } in &sent {
                        entry.lock().bucket.lost(*asked);
                    }
                    return;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            self.is_away(&error);
            // Nobody waits for a store that is away.
            let view = self.view();
            sent.iter().for_each(|sent| sent.entry.decide_all(&view));
            let in_line = lock(&self.asking).clone();
            in_line.iter().for_each(|entry| entry.decide_all(&view));
            tokio::select! {
                () = sleep(AGAIN) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn numbered(&self, turn: i64, asks: Vec<Ask>) -> Exchange {
        Exchange {
            node: self.node.clone(),
            owner: self.owner.clone(),
            boot_age: self.begun.elapsed(),
            turn,
            asks,
        }
    }

    /// Gives out what the store gave.
    fn gained(&self, sent: &Sent, gain: &Gain, begun: Instant, view: &View) {
        let Sent { entry, asked } = sent;
        let mut state = entry.lock();
        let State {
            bucket, waiting, ..
        } = &mut *state;
        bucket.gain(gain, *asked, begun, view);
        let mut admitted = gain.admitted;
        for _ in 0..asked.calls {
            let Some(reply) = waiting.pop_front() else {
                break;
            };
            if reply.is_closed() {
                continue;
            }
            let answer = if admitted > 0 {
                admitted -= 1;
                Ok(bucket.admitted(view))
            } else {
                match bucket.decide(view) {
                    Decision::Admit(standing) => Ok(standing),
                    Decision::Refuse(limited) => Err(limited),
                    Decision::Ask => Err(bucket.refused(view)),
                }
            };
            // One who went away meanwhile has been let in.
            let _ = reply.send(answer);
        }
        bucket.returned(admitted);
        if bucket.is_to_give_back() || !waiting.is_empty() {
            self.queue(entry, &mut state);
        }
    }

    fn is_there(&self, now: Timestamp, nodes: u32, sent: Instant) {
        if self.world.load().away.is_some() {
            tracing::info!("limits of keys and connectors are shared among the nodes again");
        }
        self.world.store(Arc::new(World {
            nodes,
            clock: Some((now, sent)),
            away: None,
        }));
    }

    fn is_away(&self, error: &str) {
        let world = **self.world.load();
        if world.away.is_none() {
            tracing::warn!(
                error,
                nodes = world.nodes,
                "limits of keys and connectors cannot be shared: each node goes by its part"
            );
            self.world.store(Arc::new(World {
                away: Some(Instant::now()),
                ..world
            }));
        }
    }

    fn view(&self) -> View {
        self.world.load().view(Instant::now())
    }

    fn view_of(&self, key: &Key) -> View {
        if self.is_ours(key) {
            View::alone(self.begun)
        } else {
            self.view()
        }
    }

    fn is_ours(&self, key: &Key) -> bool {
        match key {
            Key::Consumer(_) => false,
            Key::Connector(_) => !self.is_shared,
        }
    }

    fn entry(&self, key: &Key, limits: Limits, view: &View) -> Arc<Entry> {
        let place = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        let mut shard = lock(&self.shards[place]);
        if let Some(entry) = shard.get(key) {
            return Arc::clone(entry);
        }
        let is_ours = self.is_ours(key);
        let bucket = if is_ours {
            Bucket::full(limits, view.now)
        } else {
            Bucket::new(limits, view.now)
        };
        let state = State {
            bucket,
            waiting: VecDeque::new(),
            queued: false,
            dropped: false,
        };
        let entry = Arc::new(Entry {
            key: key.clone(),
            is_ours,
            state: Mutex::new(state),
        });
        shard.insert(key.clone(), Arc::clone(&entry));
        entry
    }

    /// Keys in use.
    #[cfg(test)]
    pub fn keys(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.shards
            .iter()
            .flat_map(|shard| lock(shard).values().cloned().collect::<Vec<_>>())
            .collect()
    }

    fn queue(&self, entry: &Arc<Entry>, state: &mut State) {
        if !entry.is_ours && !std::mem::replace(&mut state.queued, true) {
            lock(&self.asking).push(Arc::clone(entry));
            self.wake.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
