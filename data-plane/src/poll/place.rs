//! Places of the cycles that have an answer in memory. A free place goes to the account with the
//! fewest places, and there to the source with the fewest, so that endpoints that hang or never end
//! delay no others. A cycle lends its place to others between two pages and while it waits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use kanat_model::id::{AccountId, EnvironmentId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::plans::CompiledFlow;

/// Number of places of a node.
const MAX_PLACES: usize = 16;

/// Maximum number of places of one account.
const MAX_PER_ACCOUNT: usize = 12;

/// Maximum number of places of one source.
const MAX_PER_SOURCE: usize = 4;

/// Source that a cycle polls: a connector instance, or all requests of an environment without an
/// instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    account: AccountId,
    environment: EnvironmentId,
    instance: String,
}

pub(super) struct Places {
    table: Mutex<Table>,
}

struct Table {
    free: usize,
    /// Queues of the sources that have a place or wait for one.
    lines: BTreeMap<Source, Line>,
    /// Number of cycles that have ever waited.
    came: u64,
}

#[derive(Default)]
struct Line {
    held: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    /// Arrival number, which orders cycles of different sources.
    number: u64,
    permit: oneshot::Sender<Permit>,
}

/// Permit for one place, released on drop.
struct Permit {
    places: Arc<Places>,
    source: Source,
}

/// The place of one cycle.
pub(super) struct Place {
    places: Arc<Places>,
    source: Source,
    /// `None` while the place is lent.
    permit: Option<Permit>,
}

impl Source {
    pub fn of(flow: &CompiledFlow) -> Self {
        Self {
            account: flow.account_id.clone(),
            environment: flow.environment_id.clone(),
            instance: flow.plan().source_instance.clone(),
        }
    }
}

impl Place {
    /// Waits for a place.
    pub async fn take(places: &Arc<Places>, source: Source) -> Self {
        let permit = places.take(&source).await;
        Self {
            places: Arc::clone(places),
            source,
            permit,
        }
    }

    /// Lends the place while `waiting` runs, and waits for a place again.
    pub async fn without<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        self.permit = None;
        let waited = waiting.await;
        self.permit = self.places.take(&self.source).await;
        waited
    }

    /// Lets waiting cycles go first.
    pub async fn pass_on(&mut self) {
        self.without(std::future::ready(())).await;
    }
}

impl Places {
    pub fn new() -> Arc<Self> {
        let table = Table {
            free: MAX_PLACES,
            lines: BTreeMap::new(),
            came: 0,
        };
        Arc::new(Self {
            table: Mutex::new(table),
        })
    }

    async fn take(self: &Arc<Self>, source: &Source) -> Option<Permit> {
        let (permit, given) = oneshot::channel();
        self.table.lock().wait(source, permit);
        self.hand_out();
        // The sender is never dropped without a permit.
        given.await.ok()
    }

    fn hand_out(self: &Arc<Self>) {
        loop {
            let Some((source, waiting)) = self.table.lock().grant() else {
                return;
            };
            let permit = Permit {
                places: Arc::clone(self),
                source,
            };
            // The permit of a cycle that has just gone is dropped, and its place is free again.
            drop(waiting.permit.send(permit));
        }
    }
}

impl Table {
    fn wait(&mut self, source: &Source, permit: oneshot::Sender<Permit>) {
        let waiting = Waiting {
            number: self.came,
            permit,
        };
        self.came += 1;
        let line = self.lines.entry(source.clone()).or_default();
        line.waiting.push_back(waiting);
    }

    /// Takes a place for the next waiting cycle that may have one.
    fn grant(&mut self) -> Option<(Source, Waiting)> {
        if self.free == 0 {
            return None;
        }
        let mut held: HashMap<&AccountId, usize> = HashMap::new();
        for (source, line) in &self.lines {
            *held.entry(&source.account).or_default() += line.held;
        }
        let may = self.lines.iter().filter_map(|(source, line)| {
            let of_account = held.get(&source.account).copied().unwrap_or_default();
            let first = line.waiting.front()?;
            (line.held < MAX_PER_SOURCE && of_account < MAX_PER_ACCOUNT)
                .then_some(((of_account, line.held, first.number), source))
        });
        let (_, source) = may.min_by_key(|(order, _)| *order)?;
        let source = source.clone();
        let line = self.lines.get_mut(&source)?;
        let waiting = line.waiting.pop_front()?;
        line.held += 1;
        self.free -= 1;
        Some((source, waiting))
    }

    fn give_back(&mut self, source: &Source) {
        self.free += 1;
        if let Some(line) = self.lines.get_mut(source) {
            line.held -= 1;
            line.waiting.retain(|waiting| !waiting.permit.is_closed());
            if line.held == 0 && line.waiting.is_empty() {
                self.lines.remove(source);
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.places.table.lock().give_back(&self.source);
        self.places.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn source(account: &str, instance: &str) -> Source {
        Source {
            account: AccountId::from(account),
            environment: EnvironmentId::from("env"),
            instance: instance.to_owned(),
        }
    }

    /// A place, where the source gets one at once.
    fn place(places: &Arc<Places>, account: &str, instance: &str) -> Option<Place> {
        Place::take(places, source(account, instance)).now_or_never()
    }

    #[test]
    fn no_source_and_no_account_takes_all_places() {
        let places = Places::new();
        let mut held = Vec::new();
        for instance in ["a", "b", "c", "d"] {
            let before = held.len();
            held.extend(std::iter::from_fn(|| place(&places, "one", instance)));
            assert_eq!(
                held.len() - before,
                if instance == "d" { 0 } else { MAX_PER_SOURCE }
            );
        }
        let others: Vec<Place> = std::iter::from_fn(|| place(&places, "two", "a")).collect();
        assert_eq!(others.len(), MAX_PER_SOURCE);
        drop((held, others));
        assert!(place(&places, "one", "d").is_some());
        let table = places.table.lock();
        assert_eq!(table.free, MAX_PLACES);
        assert!(table.lines.is_empty());
    }

    #[tokio::test]
    async fn a_free_place_goes_to_who_has_the_fewest_and_a_lent_one_to_who_has_waited() {
        let places = Places::new();
        let mut held: Vec<Place> = ["a", "b", "c"]
            .iter()
            .flat_map(|instance| std::iter::repeat_n(instance, MAX_PER_SOURCE))
            .map(|instance| place(&places, "one", instance).unwrap())
            .collect();
        held.extend((0..3).map(|_| place(&places, "two", "a").unwrap()));
        let mut last = place(&places, "three", "a").unwrap();
        let mut rich = Box::pin(Place::take(&places, source("two", "b")));
        let mut poor = Box::pin(Place::take(&places, source("four", "a")));
        assert!((&mut rich).now_or_never().is_none());
        assert!((&mut poor).now_or_never().is_none());
        // The one that it was lent to has it until its end.
        let mut lent = Box::pin(last.pass_on());
        assert!((&mut lent).now_or_never().is_none());
        assert!((&mut rich).now_or_never().is_none());
        let poor = poor.await;
        drop(poor);
        lent.await;
        held.pop();
        assert!((&mut rich).now_or_never().is_some());
    }

    #[test]
    fn who_goes_away_leaves_its_place_to_the_next() {
        let places = Places::new();
        let mut held: Vec<Place> = std::iter::from_fn(|| place(&places, "one", "a")).collect();
        let mut gone = Box::pin(Place::take(&places, source("one", "a")));
        let mut next = Box::pin(Place::take(&places, source("one", "a")));
        assert!((&mut gone).now_or_never().is_none());
        assert!((&mut next).now_or_never().is_none());
        // It has it, and does not know.
        held.pop();
        drop(gone);
        assert!((&mut next).now_or_never().is_some());
    }
}
