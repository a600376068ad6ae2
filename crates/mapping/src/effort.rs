//! The bound on the work of evaluations: one counter that all of it is charged to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{EvaluationError, json};

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
/// (`docs/FLOWS.md` has the prices). The evaluation that exceeds it ends with an error, and so does
/// every one after it.
#[derive(Debug)]
pub struct Effort {
    /// Steps that are left; 0 once an evaluation asked for more than there were.
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

    /// Charges steps, and returns whether more are left. Evaluations that share the budget run one
    /// after another.
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
            Err(Self::error())
        } else {
            Ok(())
        }
    }

    /// Creates the error of an evaluation that takes too much work.
    pub(crate) fn error() -> EvaluationError {
        EvaluationError::mapping(format!(
            "the attempt takes more work than it may: {} million steps",
            Self::MAX / 1_000_000
        ))
    }

    /// Charges bytes that are skipped or copied.
    pub(crate) fn pass(&self, bytes: usize) -> bool {
        self.spend(bytes as u64)
    }

    /// Charges a value that is parsed.
    pub(crate) fn read(&self, bytes: usize) -> bool {
        self.spend(reading(bytes))
    }

    /// Iterates over the items of a list and charges them. Ends early when no steps are left.
    pub(crate) fn items<'j>(&self, list: &'j str) -> impl Iterator<Item = &'j str> {
        self.pass(list.len());
        json::items(list).take_while(|_| self.spend(WALKED))
    }

    /// Iterates over the members of an object as they stand and charges them. Ends early when no
    /// steps are left.
    pub(crate) fn occurrences<'j>(
        &self,
        object: &'j str,
    ) -> impl Iterator<Item = (&'j str, &'j str)> {
        self.pass(object.len());
        json::occurrences(object).take_while(|_| self.spend(WALKED))
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
