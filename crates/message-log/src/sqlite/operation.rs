//! Work of the writer, and its effects.

use super::transaction::Transaction;
use crate::attempted::AttemptedRow;
use crate::change::Change;
use crate::{AppendOutcome, Lease, NewMessage, StepCheckpoint};

/// Work of one operation, which is a part of a transaction unless its variant says otherwise.
pub(super) enum Work {
    Append(Box<NewMessage>),
    AppendAttempted(Vec<AttemptedRow>),
    StoreStep(Box<StepCheckpoint>),
    Settle(Box<Change>),
    Claim(Vec<Change>),
    Task(Task),
    /// Writes as many bytes as a small message has.
    Probe,
    /// Applies the journal's pending writes to the tables, for a reader.
    Flush,
    /// Returns free pages to the file system, outside a transaction.
    IncrementalVacuum {
        pages: u32,
    },
    /// Checkpoints the write-ahead log and empties its file, outside a transaction.
    TruncateWal,
    /// Ends the writer, outside a transaction.
    Close,
}

pub(super) type Effect = crate::effect::Effect<Lease>;

impl Work {
    /// Returns the approximate number of bytes that the work has in memory.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Append(message) => message.size_bytes(),
            Self::AppendAttempted(rows) => rows.iter().map(AttemptedRow::size_bytes).sum(),
            Self::StoreStep(checkpoint) => checkpoint.output.len(),
            Self::Settle(change) => change.size_bytes(),
            Self::Task(task) => task.bytes,
            Self::Claim(_)
            | Self::Probe
            | Self::Flush
            | Self::IncrementalVacuum { .. }
            | Self::TruncateWal
            | Self::Close => 0,
        }
    }

    /// Returns whether a message can be claimed after this that could not be claimed before.
    pub fn makes_claimable(&self, effect: &Effect) -> bool {
        match self {
            Self::Append(_) => matches!(effect, Effect::Appended(AppendOutcome::Waiting)),
            Self::AppendAttempted(rows) => !rows.iter().all(AttemptedRow::is_final),
            // The next message of the ordering key may be due now.
            Self::Settle(change) => !change.is_final_without_ordering_key(),
            Self::Task(task) => task.makes_claimable(),
            Self::StoreStep(_)
            | Self::Claim(_)
            | Self::Probe
            | Self::Flush
            | Self::IncrementalVacuum { .. }
            | Self::TruncateWal
            | Self::Close => false,
        }
    }
}

/// Statements of one operation, of which the writer knows only the kind. They run again if
/// their transaction fails because of another operation.
pub(super) struct Task {
    run: Box<Run>,
    kind: TaskKind,
    bytes: usize,
}

type Run = dyn Fn(&mut Transaction<'_, '_>) -> rusqlite::Result<Effect> + Send;

/// Kind of a task, by what depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskKind {
    Plain,
    /// A message can be claimed after this that could not be claimed before.
    MakesClaimable,
    /// Deletes rows, and does not depend on pending writes.
    Deletion,
}

impl Task {
    pub fn new(
        run: impl Fn(&mut Transaction<'_, '_>) -> rusqlite::Result<Effect> + Send + 'static,
    ) -> Self {
        Self {
            run: Box::new(run),
            kind: TaskKind::Plain,
            bytes: 0,
        }
    }

    /// Returns a task after which a message can be claimed that could not be claimed before.
    pub fn making_claimable(self) -> Self {
        let kind = TaskKind::MakesClaimable;
        Self { kind, ..self }
    }

    /// Returns a task that deletes rows, and does not depend on pending writes.
    pub fn deleting_rows(self) -> Self {
        let kind = TaskKind::Deletion;
        Self { kind, ..self }
    }

    /// Returns a task that has so many bytes in memory.
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    pub fn makes_claimable(&self) -> bool {
        self.kind == TaskKind::MakesClaimable
    }

    pub fn is_deletion(&self) -> bool {
        self.kind == TaskKind::Deletion
    }

    pub fn run(&self, tx: &mut Transaction<'_, '_>) -> rusqlite::Result<Effect> {
        (self.run)(tx)
    }
}

impl From<Task> for Work {
    fn from(task: Task) -> Self {
        Self::Task(task)
    }
}
