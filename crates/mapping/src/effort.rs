//! The bound on what evaluations do: one counter that all of their work is charged to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{EvaluationError, json};

/// Steps that an expression, a part of a template and a field of a mapping are charged.
pub(crate) const NODE: u64 = 20;

/// Steps that each item of a list and each member of an object is charged where it is walked past.
pub(crate) const WALKED: u64 = 20;

/// Steps that a transform is charged, and whatever reads a value into what it computes with.
pub(crate) const CALL: u64 = 150;

/// Steps a byte of text that is taken apart; of one that is only walked past or copied it is one.
const TEXT: u64 = 6;

/// Steps a byte of an object whose members are told apart by their names.
const NAMES: u64 = 20;

/// What the evaluations for one attempt of a message may still do together, in steps of about a
/// nanosecond (`docs/FLOWS.md` has the prices). What goes beyond ends as an error, and so does all
/// that comes after.
#[derive(Debug)]
pub struct Effort {
    /// None are left once more was asked for than there was.
    left: AtomicU64,
}

impl Effort {
    /// The steps of one attempt.
    pub const MAX: u64 = 1_000_000_000;

    pub const fn new(steps: u64) -> Self {
        Self {
            left: AtomicU64::new(steps),
        }
    }

    /// Charges steps, and tells whether more are left. Evaluations that share it come one after
    /// another.
    pub fn spend(&self, steps: u64) -> bool {
        let left = self.left.load(Ordering::Relaxed).saturating_sub(steps);
        self.left.store(left, Ordering::Relaxed);
        left > 0
    }

    /// Whether evaluations were ended by it.
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Errors when it is spent. What was read since the last check is of no use then.
    pub(crate) fn check(&self) -> Result<(), EvaluationError> {
        if self.is_spent() {
            Err(Self::error())
        } else {
            Ok(())
        }
    }

    /// The end of what takes too much.
    pub(crate) fn error() -> EvaluationError {
        EvaluationError::mapping(format!(
            "the attempt takes more work than it may: {} million steps",
            Self::MAX / 1_000_000
        ))
    }

    /// Charges bytes that are walked past or copied.
    pub(crate) fn pass(&self, bytes: usize) -> bool {
        self.spend(bytes as u64)
    }

    /// Charges a value that is read: text taken apart, a number parsed.
    pub(crate) fn read(&self, bytes: usize) -> bool {
        self.spend(reading(bytes))
    }

    /// The items of a list, charged as they are walked; they end early when it is spent.
    pub(crate) fn items<'j>(&self, list: &'j str) -> impl Iterator<Item = &'j str> {
        self.pass(list.len());
        json::items(list).take_while(|_| self.spend(WALKED))
    }

    /// The members of an object as they stand, charged as they are walked; they end early when it
    /// is spent.
    pub(crate) fn occurrences<'j>(
        &self,
        object: &'j str,
    ) -> impl Iterator<Item = (&'j str, &'j str)> {
        self.pass(object.len());
        json::occurrences(object).take_while(|_| self.spend(WALKED))
    }

    /// The members of an object, each key once; none when it is spent.
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

/// Steps of a value that is read.
pub(crate) fn reading(bytes: usize) -> u64 {
    CALL + TEXT * bytes as u64
}
