//! Whether a consumer's call is within the limits of its key, over all nodes. What a node decides by itself is in
//! [`bucket`]; here the buckets are kept, and the store is asked for many keys at once. A call waits only for a key that
//! has nothing here; none waits for another key's. A key has a bucket from its first call until it is idle.

mod bucket;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use kanat_message_log::quota::MOST_ASKS;
use kanat_message_log::{Ask, Exchange, Exchanged, Gain, MessageLog};
use kanat_model::Timestamp;
use kanat_model::id::{BootId, ConsumerKeyId, NodeId};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use bucket::{Asked, Bucket, Decision};

pub(crate) use bucket::Limits;
pub(crate) use standing::{Limited, Standing};

/// How often what was used is told, and shares are renewed and fitted to what is called.
const BEAT: Duration = Duration::from_secs(1);

/// A store that takes longer is away.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait before a store that is away is asked again.
const AGAIN: Duration = Duration::from_millis(250);

const SHARDS: usize = 64;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The limits of all keys, as this node keeps them.
pub(crate) struct Limiter {
    log: Arc<dyn MessageLog>,
    node: NodeId,
    owner: BootId,
    begun: Instant,
    turn: AtomicI64,
    hasher: RandomState,
    /// Keys in use.
    shards: Vec<Mutex<HashMap<ConsumerKeyId, Arc<Entry>>>>,
    /// Keys that the store is to be asked for.
    asking: Mutex<Vec<Arc<Entry>>>,
    wake: Notify,
    world: ArcSwap<World>,
}

/// What is known beyond this node.
#[derive(Debug, Clone, Copy)]
struct World {
    nodes: u32,
    /// The store's clock, not before which it was at an instant of ours.
    clock: Option<(Timestamp, Instant)>,
    away: Option<Instant>,
}

/// What the node knows of the world at an instant.
#[derive(Debug, Clone, Copy)]
struct View {
    now: Instant,
    /// The wall clock, for the record alone.
    wall: Timestamp,
    /// The day by the store's clock, counted from 1970, and how long it lasts.
    today: i64,
    to_midnight: Duration,
    /// Nodes that share what there is.
    nodes: u32,
    /// Since when the store cannot be reached.
    away: Option<Instant>,
}

/// A key in use.
struct Entry {
    key: ConsumerKeyId,
    state: Mutex<State>,
}

struct State {
    bucket: Bucket,
    waiting: VecDeque<oneshot::Sender<Result<Standing, Limited>>>,
    /// It stands in `asking`.
    queued: bool,
    /// It is not among the keys in use any more.
    dropped: bool,
}

/// An ask under way.
struct Sent {
    entry: Arc<Entry>,
    asked: Asked,
}

impl Limiter {
    /// Nothing is used before [`Self::run`] runs.
    pub fn new(log: Arc<dyn MessageLog>, node: NodeId) -> Self {
        Self {
            log,
            node,
            owner: BootId::generate(),
            begun: Instant::now(),
            turn: AtomicI64::new(0),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            asking: Mutex::default(),
            wake: Notify::new(),
            world: ArcSwap::from_pointee(World { nodes: 1, clock: None, away: None }),
        }
    }

    /// Whether a call with this key may go on; it counts when it may.
    ///
    /// # Errors
    /// It is beyond a limit, and counts for none.
    pub async fn admit(&self, key: &ConsumerKeyId, limits: Limits) -> Result<Standing, Limited> {
        let answer = loop {
            let view = self.view();
            let entry = self.entry(key, limits, view.now);
            let mut state = entry.lock();
            if state.dropped {
                continue;
            }
            match state.bucket.call(limits, &view) {
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
            Err(_) => Err(self.entry(key, limits, Instant::now()).lock().bucket.refused(&self.view())),
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
        entries.iter().for_each(|entry| self.queue(entry, &mut entry.lock()));
        if timeout(PATIENCE, self.ask(true, &CancellationToken::new())).await.is_err() {
            tracing::warn!("how often keys were used could not be written down in time");
        }
        // Whoever still calls goes by what is here.
        self.world.store(Arc::new(World { away: Some(Instant::now()), ..**self.world.load() }));
        entries.iter().for_each(|entry| decide_all(entry, &self.view()));
    }

    /// Looks how many nodes there are, and what time it is.
    async fn look(&self) {
        let exchange = self.turn(0, Vec::new());
        let sent = Instant::now();
        match timeout(PATIENCE, self.log.exchange(&exchange)).await {
            Ok(Ok(Exchanged::Done { now, nodes, .. })) => self.is_there(now, nodes, sent),
            Ok(Ok(Exchanged::Repeated)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "how many nodes share the limits of keys cannot be read"),
            Err(_) => tracing::warn!("how many nodes share the limits of keys cannot be read in time"),
        }
    }

    /// Counts what is called, and drops what is idle.
    fn beat(&self) {
        for shard in &self.shards {
            lock(shard).retain(|_, entry| {
                let mut state = entry.lock();
                if state.bucket.beat() {
                    self.queue(entry, &mut state);
                }
                state.dropped = !state.queued && state.waiting.is_empty() && state.bucket.is_idle();
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
                let (ask, asked) = state.bucket.ask(entry.key.clone(), calls, leaving, &view);
                drop(state);
                (Sent { entry, asked }, ask)
            })
            .unzip();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
        let exchange = self.turn(turn, asks);
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
            sent.iter().for_each(|sent| decide_all(&sent.entry, &view));
            let in_line = lock(&self.asking).clone();
            in_line.iter().for_each(|entry| decide_all(entry, &view));
            tokio::select! {
                () = sleep(AGAIN) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn turn(&self, turn: i64, asks: Vec<Ask>) -> Exchange {
        Exchange { node: self.node.clone(), owner: self.owner.clone(), boot_age: self.begun.elapsed(), turn, asks }
    }

    /// Gives out what the store gave.
    fn gained(&self, sent: &Sent, gain: &Gain, begun: Instant, view: &View) {
        let Sent { entry, asked } = sent;
        let mut state = entry.lock();
        let State { bucket, waiting, .. } = &mut *state;
        bucket.gain(gain, *asked, begun, view);
        let mut admitted = gain.admitted;
        for _ in 0..asked.calls {
            let Some(reply) = waiting.pop_front() else { break };
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
            tracing::info!("the limits of keys are shared among the nodes again");
        }
        self.world.store(Arc::new(World { nodes, clock: Some((now, sent)), away: None }));
    }

    fn is_away(&self, error: &str) {
        let world = **self.world.load();
        if world.away.is_none() {
            tracing::warn!(
                error,
                nodes = world.nodes,
                "the limits of keys cannot be shared: each node goes by its part"
            );
            self.world.store(Arc::new(World { away: Some(Instant::now()), ..world }));
        }
    }

    fn view(&self) -> View {
        let world = self.world.load();
        let (now, wall) = (Instant::now(), Timestamp::now());
        let store = world.clock.map_or(wall, |(store, at)| store.after(now.saturating_duration_since(at)));
        let (today, into) = (store.as_millis().div_euclid(DAY_MS), store.as_millis().rem_euclid(DAY_MS));
        let to_midnight = Duration::from_millis(u64::try_from(DAY_MS - into).unwrap_or(0));
        View { now, wall, today, to_midnight, nodes: world.nodes, away: world.away }
    }

    fn entry(&self, key: &ConsumerKeyId, limits: Limits, now: Instant) -> Arc<Entry> {
        let place = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        let mut shard = lock(&self.shards[place]);
        if let Some(entry) = shard.get(key) {
            return Arc::clone(entry);
        }
        let bucket = Bucket::new(limits, now);
        let state = State { bucket, waiting: VecDeque::new(), queued: false, dropped: false };
        let entry = Arc::new(Entry { key: key.clone(), state: Mutex::new(state) });
        shard.insert(key.clone(), Arc::clone(&entry));
        entry
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.shards.iter().flat_map(|shard| lock(shard).values().cloned().collect::<Vec<_>>()).collect()
    }

    fn queue(&self, entry: &Arc<Entry>, state: &mut State) {
        if !std::mem::replace(&mut state.queued, true) {
            lock(&self.asking).push(Arc::clone(entry));
            self.wake.notify_one();
        }
    }
}

impl Entry {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Answers all that wait for a key by what is here.
fn decide_all(entry: &Entry, view: &View) {
    let mut state = entry.lock();
    let State { bucket, waiting, .. } = &mut *state;
    for reply in waiting.drain(..) {
        let answer = match bucket.decide(view) {
            Decision::Admit(standing) => Ok(standing),
            Decision::Refuse(limited) => Err(limited),
            Decision::Ask => Err(bucket.refused(view)),
        };
        let _ = reply.send(answer);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
