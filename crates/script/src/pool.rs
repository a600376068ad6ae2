//! The workers of a process: started when they are needed, handed out in turn, replaced when they
//! break.
//!
//! Account and environment that ask for a worker.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::limits::Limits;
use crate::process::Process;
use crate::script::Script;
use crate::session::Session;

/// Program, limits and size of a pool.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that is a worker under [`crate::worker::COMMAND`].
    pub program: PathBuf,
    pub limits: Limits,
    /// Workers at most.
    pub processes: usize,
}

impl Options {
    /// The running program, and twice as many workers as there are cores, but four at least: one
    /// that is stuck is no reason for a core to idle.
    pub fn new(limits: Limits) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        // The program may have been replaced on disk meanwhile; this names the one that runs.
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() {
            own
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        Self {
            program,
            limits,
            processes: (2 * cores).clamp(4, 32),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// Account and environment that ask for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker<'a> {
    /// Whose code the worker runs from its first call to its end.
    pub environment: &'a str,
    /// Among whom workers are shared out: a flow, or an environment's tests.
    pub key: &'a str,
}

/// A handle to the workers; its clones share them.
#[derive(Clone)]
pub struct Pool(Arc<PoolCore>);

pub(crate) struct PoolCore {
    pub options: Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Used last, last.
    idle: Vec<Process>,
    busy: usize,
    keys: HashMap<String, Key>,
    /// The keys that wait, in the order of their turns.
    turns: VecDeque<String>,
}

#[derive(Default)]
struct Key {
    busy: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    environment: String,
    turn: oneshot::Sender<Permit>,
}

/// The right to one worker.
pub(crate) struct Permit {
    shared: Arc<PoolCore>,
    environment: String,
    key: String,
}

impl Pool {
    /// No worker runs before the first is needed.
    pub fn new(options: Options) -> Self {
        Self(Arc::new(PoolCore {
            options,
            state: Mutex::default(),
        }))
    }

    /// A worker for a while; waits in turn with the others.
    pub async fn lease(&self, asker: Asker<'_>) -> Session {
        let environment = asker.environment.to_owned();
        let key = asker.key.to_owned();
        loop {
            let turn = {
                let mut state = self.0.state.lock();
                if state.turns.is_empty() && state.may_begin(&key, &self.0.options) {
                    state.begin(&key);
                    return Session::new(Permit {
                        shared: Arc::clone(&self.0),
                        environment,
                        key,
                    });
                }
                let (sender, turn) = oneshot::channel();
                state.wait(
                    &key,
                    Waiting {
                        environment: environment.clone(),
                        turn: sender,
                    },
                );
                turn
            };
            // The waiting calls may all be of keys that have their share already.
            self.0.hand_out();
            if let Ok(permit) = turn.await {
                return Session::new(permit);
            }
        }
    }

    /// Checks that the code runs and defines `transform`.
    pub async fn check(&self, asker: Asker<'_>, script: &Script) -> Result<(), Failure> {
        let mut session = self.lease(asker).await;
        blocking(|| session.load(script))
    }
}

/// Runs what waits for a worker's pipe without keeping a core of the runtime.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}

impl PoolCore {
    /// Gives turns to waiting calls, as long as there are workers for them.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let next = self.state.lock().next(&self.options);
            let Some((key, Waiting { environment, turn })) = next else {
                return;
            };
            // A permit whose receiver is gone is dropped here, and handed out again.
            let _ = turn.send(Permit {
                shared: Arc::clone(self),
                environment,
                key,
            });
        }
    }
}

impl State {
    fn may_begin(&self, key: &str, options: &Options) -> bool {
        let share = (options.processes / 2).max(1);
        self.busy < options.processes.max(1)
            && self.keys.get(key).is_none_or(|key| key.busy < share)
    }

    fn begin(&mut self, key: &str) {
        self.busy += 1;
        self.keys.entry(key.to_owned()).or_default().busy += 1;
    }

    fn wait(&mut self, key: &str, waiting: Waiting) {
        let queue = &mut self.keys.entry(key.to_owned()).or_default().waiting;
        queue.push_back(waiting);
        if queue.len() == 1 {
            self.turns.push_back(key.to_owned());
        }
    }

    /// Whose turn it is, if there is a worker for it; that key has begun.
    fn next(&mut self, options: &Options) -> Option<(String, Waiting)> {
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            if !self.may_begin(&name, options) {
                self.turns.push_back(name);
                continue;
            }
            let key = self.keys.get_mut(&name)?;
            let next = std::iter::from_fn(|| key.waiting.pop_front())
                .find(|waiting| !waiting.turn.is_closed());
            if !key.waiting.is_empty() {
                self.turns.push_back(name.clone());
            }
            match next {
                Some(waiting) => {
                    self.begin(&name);
                    return Some((name, waiting));
                }
                None => self.forget(&name),
            }
        }
        None
    }

    fn end(&mut self, key: &str) {
        self.busy = self.busy.saturating_sub(1);
        if let Some(key) = self.keys.get_mut(key) {
            key.busy = key.busy.saturating_sub(1);
        }
        self.forget(key);
    }

    /// Takes the worker of an environment that was used last.
    fn take_idle(&mut self, environment: &str) -> Option<Process> {
        let place = self
            .idle
            .iter()
            .rposition(|process| process.environment() == environment)?;
        Some(self.idle.remove(place))
    }

    /// Takes the worker that was idle longest, if there is no room for one more beside it.
    fn take_surplus(&mut self, options: &Options) -> Option<Process> {
        let is_full = self.idle.len() + self.busy > options.processes.max(1);
        (is_full && !self.idle.is_empty()).then(|| self.idle.remove(0))
    }

    /// Keys that neither work nor wait take up nothing.
    fn forget(&mut self, key: &str) {
        if self
            .keys
            .get(key)
            .is_some_and(|key| key.busy == 0 && key.waiting.is_empty())
        {
            self.keys.remove(key);
        }
    }
}

impl Permit {
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Takes the worker of the asker's environment that was used last, or starts one.
    pub fn process(&self) -> std::io::Result<Process> {
        let options = &self.shared.options;
        let mut state = self.shared.state.lock();
        if let Some(process) = state.take_idle(&self.environment) {
            return Ok(process);
        }
        let surplus = state.take_surplus(options);
        drop(state);
        // To end it takes a while.
        drop(surplus);
        Process::start(&options.program, options.limits, &self.environment)
    }

    /// A worker that is of use to the next.
    pub fn give_back(&self, process: Process) {
        self.shared.state.lock().idle.push(process);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.state.lock().end(&self.key);
        self.shared.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn pool(processes: usize) -> Pool {
        Pool::new(Options {
            program: PathBuf::from("/nowhere"),
            limits: Limits::default(),
            processes,
        })
    }

    fn asker(key: &str) -> Asker<'_> {
        Asker {
            environment: "env",
            key,
        }
    }

    /// Returns whether a lease is given at once.
    macro_rules! ready {
        ($lease:expr) => {
            match $lease
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(session) => Some(session),
                Poll::Pending => None,
            }
        };
    }

    #[test]
    fn one_key_has_half_of_the_workers_at_most() {
        let pool = pool(4);
        let mut greedy: Vec<_> = (0..10)
            .map(|_| Box::pin(pool.lease(asker("greedy"))))
            .collect();
        let mut held: Vec<_> = greedy
            .iter_mut()
            .filter_map(|lease| ready!(lease))
            .collect();
        assert_eq!(held.len(), 2);
        let mut other = pin!(pool.lease(asker("other")));
        let other = ready!(other).expect("the others do not wait");
        drop(other);
        held.pop();
        let next: Vec<_> = greedy
            .iter_mut()
            .skip(2)
            .filter_map(|lease| ready!(lease))
            .collect();
        assert_eq!(next.len(), 1);
    }

    #[test]
    fn keys_take_turns() {
        let pool = pool(1);
        let mut first = pin!(pool.lease(asker("a")));
        let first = ready!(first).unwrap();
        let mut many: Vec<_> = (0..3).map(|_| Box::pin(pool.lease(asker("a")))).collect();
        assert!(many.iter_mut().all(|lease| ready!(lease).is_none()));
        let mut other = Box::pin(pool.lease(asker("b")));
        assert!(ready!(other).is_none());
        drop(first);
        let second = ready!(many[0]).expect("the first in the queue");
        assert!(ready!(other).is_none());
        drop(second);
        assert!(
            ready!(other).is_some(),
            "the other key, before the rest of the first one"
        );
    }

    #[test]
    fn who_gives_up_waiting_holds_up_nobody() {
        let pool = pool(1);
        let mut first = pin!(pool.lease(asker("a")));
        let first = ready!(first).unwrap();
        let mut impatient: Vec<_> = (0..100).map(|_| Box::pin(pool.lease(asker("a")))).collect();
        assert!(impatient.iter_mut().all(|lease| ready!(lease).is_none()));
        let mut patient = Box::pin(pool.lease(asker("b")));
        assert!(ready!(patient).is_none());
        drop(impatient);
        drop(first);
        drop(ready!(patient).expect("its turn has come"));
        assert!(pool.0.state.lock().keys.is_empty() && pool.0.state.lock().turns.is_empty());
    }

    #[test]
    fn a_program_that_cannot_be_started_is_nobodys_code() {
        let pool = pool(1);
        let mut lease = pin!(pool.lease(asker("a")));
        let failed = ready!(lease)
            .unwrap()
            .call(&Script::new("const transform = () => 1"), "1", "{}")
            .output;
        assert_eq!(failed.unwrap_err().kind, crate::failure::Kind::Unavailable);
    }
}
