//! Runs adapters' code, here and now: what a worker does. It bounds memory and the time of loops;
//! what bounds the built-in functions, which do not stop when they are told to, is the end of the
//! worker.
//!
//! Every message sees a world of its own. Making one takes a while, so one is made before it is
//! wanted, and a world is frozen after it was made and serves all messages of a script, whose code
//! is compiled once as a function that makes everything in it anew. Code that such a world refuses,
//! because it changes what is built in, runs in a fresh world each time: only speed tells the two
//! apart.

pub(crate) mod clock;
mod position;
mod statement;
mod world;

use std::time::Duration;

use crate::digits::Digits;
use crate::failure::{Failure, Kind};
use crate::limits::Limits;
use crate::wire::{Log, Outcome};
use world::{Bare, World};

/// Scripts that are kept ready.
const KEPT: usize = 32;
/// A call that took longer may have left a lot in its world.
const LONG: Duration = Duration::from_millis(2);
/// Words of code that could observe a frozen world without failing in it.
const TELLING: [&str; 11] = [
    "globalThis",
    "prototype",
    "__proto__",
    "Reflect",
    "constructor",
    "isFrozen",
    "isSealed",
    "isExtensible",
    "getOwnPropertyDescriptor",
    "arguments",
    "stack",
];

/// The scripts of one worker.
pub(crate) struct Sandbox {
    limits: Limits,
    /// The least recently used first.
    scripts: Vec<Script>,
    /// A world for the next code that needs one.
    spare: Option<Bare>,
}

struct Script {
    hash: [u8; 32],
    code: String,
    /// The fresh world that the code was loaded in; the first message has it.
    first: Option<Box<World>>,
    policy: WorldPolicy,
}

/// In what worlds a script runs.
enum WorldPolicy {
    /// In this one, again and again.
    Frozen(Box<World>),
    /// In a frozen one that has to be made.
    ToBeFrozen,
    /// In a fresh one each time.
    Fresh,
}

/// Result of a call.
pub(crate) struct CallResult {
    pub logs: Vec<Log>,
    pub outcome: Outcome,
}

impl Sandbox {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            scripts: Vec::new(),
            spare: None,
        }
    }

    /// Does work in advance, while no message waits.
    pub fn prepare(&mut self) {
        if self.spare.is_none() {
            // The next call that needs it gets the error.
            self.spare = Bare::new(self.limits).ok();
        }
    }

    /// Makes a script known. Errors when its code does not run, or defines no `transform`.
    pub fn load(&mut self, hash: [u8; 32], code: &str, allowed: Duration) -> Result<(), Failure> {
        self.scripts.retain(|script| script.hash != hash);
        let world = World::fresh(bare(&mut self.spare, self.limits)?, allowed, code)?;
        let first = Some(Box::new(world)).filter(|world| !world.is_large());
        let policy = if TELLING.iter().any(|word| code.contains(word)) {
            WorldPolicy::Fresh
        } else {
            WorldPolicy::ToBeFrozen
        };
        if self.scripts.len() >= KEPT {
            self.scripts.remove(0);
        }
        self.scripts.push(Script {
            hash,
            code: code.to_owned(),
            first,
            policy,
        });
        Ok(())
    }

    /// Runs a script on an input and a context, JSON texts.
    pub fn call(
        &mut self,
        hash: &[u8; 32],
        input: &str,
        context: &str,
        allowed: Duration,
    ) -> CallResult {
        let Some(place) = self.scripts.iter().position(|script| script.hash == *hash) else {
            return CallResult {
                logs: Vec::new(),
                outcome: Outcome::Unknown,
            };
        };
        let script = self.scripts.remove(place);
        self.scripts.push(script);
        let Some(script) = self.scripts.last_mut() else {
            return CallResult {
                logs: Vec::new(),
                outcome: Outcome::Unknown,
            };
        };
        let digits = Digits::of(input);
        let (mut logs, output) = script.run(
            self.limits,
            &mut self.spare,
            [input, context],
            digits.infinite(),
            allowed,
        );
        let output = output.and_then(|output| match output {
            Some(output) => digits
                .restore(output)
                .map(Some)
                .map_err(|message| Failure::new(Kind::Thrown, message)),
            None => Ok(None),
        });
        logs.shrink_to_fit();
        CallResult {
            logs,
            outcome: output.map_or_else(Outcome::Failed, Outcome::Output),
        }
    }
}

fn bare(spare: &mut Option<Bare>, limits: Limits) -> Result<Bare, Failure> {
    spare.take().map_or_else(|| Bare::new(limits), Ok)
}

type Ran = (Vec<Log>, Result<Option<String>, Failure>);

impl Script {
    fn run(
        &mut self,
        limits: Limits,
        spare: &mut Option<Bare>,
        documents: [&str; 2],
        infinite: bool,
        allowed: Duration,
    ) -> Ran {
        let begun = clock::used();
        let left = || allowed.saturating_sub(clock::used().saturating_sub(begun));
        if let Some(mut world) = self.first.take() {
            return world.run(&self.code, documents, infinite, allowed);
        }
        if matches!(self.policy, WorldPolicy::ToBeFrozen) {
            self.policy = match bare(spare, limits)
                .and_then(|bare| World::frozen(bare, allowed, &self.code))
            {
                Ok(world) => WorldPolicy::Frozen(Box::new(world)),
                // Strict code is another language.
                Err(failure) if failure.kind == Kind::Code => WorldPolicy::Fresh,
                Err(_) => WorldPolicy::ToBeFrozen,
            };
        }
        if let WorldPolicy::Frozen(world) = &mut self.policy {
            let ran = world.run(&self.code, documents, infinite, left());
            let failed = ran.1.as_ref().err().map(|failure| failure.kind);
            // What took no time has left nothing worth looking for.
            if failed.is_some_and(|kind| kind != Kind::Thrown)
                || (clock::used() - begun > LONG && world.is_large())
                || !world.is_clean()
            {
                self.policy = WorldPolicy::ToBeFrozen;
            }
            // Memory may be what earlier messages left to be collected, and what is thrown may be
            // the ice.
            if !matches!(failed, Some(Kind::Memory | Kind::Thrown)) {
                return ran;
            }
        }
        let ran = match bare(spare, limits).and_then(|bare| World::fresh(bare, left(), &self.code))
        {
            Ok(mut world) => world.run(&self.code, documents, infinite, left()),
            Err(failure) => (Vec::new(), Err(failure)),
        };
        if ran.1.is_ok() && matches!(self.policy, WorldPolicy::Frozen(_)) {
            self.policy = WorldPolicy::Fresh;
        }
        ran
    }
}

#[cfg(test)]
mod tests;
