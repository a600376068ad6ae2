//! The bounds on evaluations: one counter that all work for a message is charged to, and those of
//! each evaluation.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::{EvaluationError, Value, json};

/// Greatest number of nodes and elements that one evaluation meets.
const MAX_NODES: u64 = 10_000_000;

/// Greatest number of bytes that one evaluation reads.
const MAX_READ: u64 = 512 * 1024 * 1024;

/// Greatest number of bytes that one evaluation holds besides its documents.
const MAX_HELD: u64 = 64 * 1024 * 1024;

/// Greatest number of elements of a list.
pub(crate) const MAX_ELEMENTS: usize = 1_000_000;

/// Steps charged for an expression, a part of a template, and a field of a mapping.
pub(crate) const NODE: u64 = 20;

/// Steps charged for each item of a list and each member of an object that is walked past.
pub(crate) const WALKED: u64 = 20;

/// Steps charged for a transform, and for reading a value to calculate with it.
pub(crate) const CALL: u64 = 150;

/// Steps charged for a byte of text that is parsed. A byte that is only skipped or copied costs
/// one.
const TEXT: u64 = 6;

/// Steps charged for a byte of an object whose members are distinguished by their names.
const NAMES: u64 = 20;

/// Budget that the evaluations for one attempt of a message share, in steps of about a nanosecond
/// (`docs/flow-reference.md` has the prices). The evaluation that exceeds it ends with an error,
/// and so does every one after it.
///
/// Each evaluation (an expression, a template or a mapping) has bounds of its own besides, which
/// begin anew with it: nodes and elements, bytes read, and memory held. One that exceeds a bound
/// has no steps left until it ends. Evaluations that share a budget run one after another.
#[derive(Debug)]
pub struct Effort {
    /// Steps that are left; 0 once an evaluation asked for more than there were.
    left: AtomicU64,
    /// Nodes and elements that the evaluation may still meet.
    nodes: AtomicU64,
    /// Bytes that it may still read.
    bytes: AtomicU64,
    /// Bytes that it may still hold in memory.
    memory: AtomicU64,
    exceeded: AtomicU8,
    /// Steps that were left when a bound of the evaluation was exceeded.
    rest: AtomicU64,
}

/// Bound of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Nodes,
    Bytes,
    Memory,
    Elements,
}

impl Bound {
    const ALL: [Self; 4] = [Self::Nodes, Self::Bytes, Self::Memory, Self::Elements];

    fn message(self) -> &'static str {
        match self {
            Self::Nodes => "the evaluation takes more than 10,000,000 steps",
            Self::Bytes => "the evaluation reads more than 512 MiB",
            Self::Memory => "the evaluation holds more than 64 MiB in memory",
            Self::Elements => "a list has more than 1,000,000 elements",
        }
    }
}

/// Bytes that an evaluation holds in memory until this is dropped.
pub(crate) struct Held<'e> {
    effort: &'e Effort,
    bytes: u64,
}

impl Held<'_> {
    /// Holds more.
    pub fn add(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        let bytes = bytes as u64;
        let left = self.effort.memory.load(Ordering::Relaxed);
        let Some(left) = left.checked_sub(bytes) else {
            self.effort.exceed(Bound::Memory);
            return Err(self.effort.error());
        };
        self.effort.memory.store(left, Ordering::Relaxed);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let left = self.effort.memory.load(Ordering::Relaxed);
        self.effort
            .memory
            .store(left + self.bytes, Ordering::Relaxed);
    }
}

impl Effort {
    /// The steps of one attempt.
    pub const MAX: u64 = 1_000_000_000;

    pub const fn new(steps: u64) -> Self {
        Self {
            left: AtomicU64::new(steps),
            nodes: AtomicU64::new(MAX_NODES),
            bytes: AtomicU64::new(MAX_READ),
            memory: AtomicU64::new(MAX_HELD),
            exceeded: AtomicU8::new(0),
            rest: AtomicU64::new(0),
        }
    }

    /// Begins an evaluation.
    pub(crate) fn begin(&self) {
        self.nodes.store(MAX_NODES, Ordering::Relaxed);
        self.bytes.store(MAX_READ, Ordering::Relaxed);
        if self.exceeded.load(Ordering::Relaxed) > 0 {
            self.exceeded.store(0, Ordering::Relaxed);
            self.left
                .store(self.rest.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Charges steps, and returns whether more are left.
    pub fn spend(&self, steps: u64) -> bool {
        let left = self.left.load(Ordering::Relaxed).saturating_sub(steps);
        self.left.store(left, Ordering::Relaxed);
        left > 0
    }

    /// Returns whether no steps are left.
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Fails when no steps are left. Values that were read since the last check mean nothing then.
    pub(crate) fn check(&self) -> Result<(), EvaluationError> {
        if self.is_spent() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// Creates the error of an evaluation that takes too much work.
    pub(crate) fn error(&self) -> EvaluationError {
        let number = usize::from(self.exceeded.load(Ordering::Relaxed));
        match number
            .checked_sub(1)
            .and_then(|index| Bound::ALL.get(index))
        {
            Some(bound) => EvaluationError::mapping(bound.message()),
            None => EvaluationError::mapping(format!(
                "the attempt takes more work than it may: {} million steps",
                Self::MAX / 1_000_000
            )),
        }
    }

    fn exceed(&self, bound: Bound) {
        if self.exceeded.load(Ordering::Relaxed) > 0 {
            return;
        }
        let number = Bound::ALL.iter().position(|known| *known == bound);
        let number = number.and_then(|index| u8::try_from(index + 1).ok());
        self.exceeded.store(number.unwrap_or(1), Ordering::Relaxed);
        self.rest.store(self.left(), Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }

    /// Takes some of what the evaluation may still do of a kind.
    fn take(&self, counter: &AtomicU64, count: u64, bound: Bound) {
        match counter.load(Ordering::Relaxed).checked_sub(count) {
            Some(left) => counter.store(left, Ordering::Relaxed),
            None => self.exceed(bound),
        }
    }

    /// Charges a node that is evaluated. Fails when no steps are left.
    pub(crate) fn node(&self) -> Result<(), EvaluationError> {
        self.take(&self.nodes, 1, Bound::Nodes);
        if self.spend(NODE) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    /// Charges an element of a list or a member of an object.
    pub(crate) fn walk(&self) -> bool {
        self.take(&self.nodes, 1, Bound::Nodes);
        self.spend(WALKED)
    }

    /// Holds what a value owns until the result is dropped.
    pub(crate) fn hold(&self, value: &Value) -> Result<Held<'_>, EvaluationError> {
        let mut held = self.hold_nothing();
        held.add(value.owned_size())?;
        Ok(held)
    }

    pub(crate) fn hold_nothing(&self) -> Held<'_> {
        Held {
            effort: self,
            bytes: 0,
        }
    }

    /// Fails for a list with more elements than lists may have.
    pub(crate) fn check_count(&self, elements: usize) -> Result<(), EvaluationError> {
        if elements > MAX_ELEMENTS {
            self.exceed(Bound::Elements);
        }
        self.check()
    }

    /// Charges bytes that are skipped or copied.
    pub(crate) fn pass(&self, bytes: usize) -> bool {
        self.take(&self.bytes, bytes as u64, Bound::Bytes);
        self.spend(bytes as u64)
    }

    /// Charges a value that is parsed.
    pub(crate) fn read(&self, bytes: usize) -> bool {
        self.spend(reading(bytes))
    }

    /// Iterates over the items of a list and charges them. Ends early when no steps are left.
    pub(crate) fn items<'j>(&self, list: &'j str) -> impl Iterator<Item = &'j str> {
        self.pass(list.len());
        let mut count = 0;
        json::items(list).take_while(move |_| {
            count += 1;
            if count > MAX_ELEMENTS {
                self.exceed(Bound::Elements);
            }
            self.walk()
        })
    }

    /// Returns the value of the last member of that name, and charges all members, at once because
    /// most objects are small.
    pub(crate) fn member<'j>(&self, object: &'j str, name: &str) -> Option<&'j str> {
        if !self.pass(object.len()) {
            return None;
        }
        let mut count = 0;
        let found = json::occurrences(object)
            .inspect(|_| count += 1)
            .filter(|(key, _)| json::key_is(key, name))
            .last();
        self.take(&self.nodes, count, Bound::Nodes);
        self.spend(WALKED * count);
        found.map(|(_, value)| value)
    }

    /// Returns the members of an object, each key once; none when no steps are left.
    pub(crate) fn members<'j>(&self, object: &'j str) -> Vec<(&'j str, &'j str)> {
        if self.spend(NAMES * object.len() as u64) {
            json::members(object)
        } else {
            Vec::new()
        }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self::new(Self::MAX)
    }
}

/// Returns the steps of a value that is parsed.
pub(crate) fn reading(bytes: usize) -> u64 {
    CALL + TEXT * bytes as u64
}
