//! The one writer of the file. All that is queued when it turns to its queue goes to disk together;
//! while that is written, the next group gathers. Nobody is answered before it is on disk: in the
//! journal, where that will do, or in the tables.

mod room;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::checkpoint::Checkpoints;
use super::failure::Kind;
use super::files::Watch;
use super::inbox::{Inbox, Taken};
use super::intake::{Done, Intake, TakenIn};
use super::maintenance;
use super::operation::{Answer, Effect, Operation, Reply, Work};
use super::options::Durability;
use super::reserve::Reserve;
use super::shared::Shared;
use super::statements::Statements;
use super::transaction::{self, Commit};
use crate::Error;
pub(super) use room::Room;

/// Most operations of one transaction.
const BATCH: usize = 1_024;
/// Most bytes of bodies in one transaction, so that one does not take too long; a single larger one
/// is taken whole.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct Writer {
    checkpoints: Checkpoints,
    inbox: Arc<Inbox>,
    shared: Arc<Shared>,
    intake: Intake,
    watch: Watch,
    reserve: Reserve,
    /// The write-ahead log was emptied for want of room, and nothing was written since.
    is_emptied: bool,
    /// Who reads, and waits for the tables to have what was taken in.
    readers: Vec<Operation>,
    last_seq: i64,
    /// What a commit is worth that somebody waits for.
    answered: Commit,
}

/// Operations of one transaction.
struct Batch {
    operations: Vec<Operation>,
    /// What was taken in goes into the tables first. Without it only such may be done as has
    /// nothing to do with that.
    folds: bool,
}

/// What a transaction did.
struct Written {
    effects: Vec<Effect>,
    last_seq: i64,
    /// It changed something.
    wrote: bool,
}

impl Writer {
    pub fn new(
        checkpoints: Checkpoints,
        inbox: Arc<Inbox>,
        shared: Arc<Shared>,
        intake: Intake,
        Room { watch, reserve }: Room,
        durability: Durability,
    ) -> Self {
        let last_seq = shared.last_event().max(intake.unfolded().last_seq());
        if !intake.unfolded().is_empty() {
            shared.unfolded();
        }
        let answered = match durability {
            Durability::Full => Commit::OnDisk,
            Durability::RelaxedMayLoseAckedMessages => Commit::Soon,
        };
        Self {
            checkpoints,
            inbox,
            shared,
            intake,
            watch,
            reserve,
            is_emptied: false,
            readers: Vec::new(),
            last_seq,
            answered,
        }
    }

    /// Writes until the inbox is closed and empty, on the thread that calls it; then closes the
    /// file. Profiles find the thread by this function's name.
    #[inline(never)]
    pub fn run(mut self, conn: Connection) {
        self.write_all(&Statements::new(&conn));
        maintenance::finish(conn, self.checkpoints.syncs());
        self.intake.close();
    }

    fn write_all(&mut self, statements: &Statements<'_>) {
        let mut queued = Vec::new();
        loop {
            match self.inbox.take(&mut queued, self.patience(Instant::now())) {
                Taken::Operations => {}
                Taken::Nothing => {
                    self.fold(statements, Commit::Soon);
                    continue;
                }
                Taken::Closed => break,
            }
            for batch in batches(&mut queued) {
                self.write(statements, batch);
            }
        }
        self.intake.prepare_to_close();
        self.fold(statements, self.answered);
    }

    /// How long it may rest when nothing comes.
    fn patience(&self, now: Instant) -> Option<Duration> {
        if self.readers.is_empty() {
            self.intake.patience(now)
        } else {
            Some(self.intake.pause_of_one_who_waits(now))
        }
    }

    fn write(&mut self, statements: &Statements<'_>, batch: Vec<Operation>) {
        if let Err(lost) = self.watch.check() {
            return self.refuse_for_good(statements, batch, &lost);
        }
        let (readers, operations): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|operation| matches!(operation.work, Work::Fold));
        self.readers.extend(readers);
        let operations = self.let_in(operations);
        if !operations.is_empty() {
            self.write_down(statements, operations);
        }
        self.answer_readers(statements);
    }

    /// Refuses all but the end, since nobody would find again what is written.
    fn refuse_for_good(
        &mut self,
        statements: &Statements<'_>,
        batch: Vec<Operation>,
        lost: &Error,
    ) {
        let (ends, operations): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|operation| matches!(operation.work, Work::Close));
        self.refuse(operations, lost);
        self.tell_readers(false);
        ends.into_iter()
            .for_each(|end| self.write_alone(statements.conn(), end));
    }

    /// Lets read who waits to, unless the tables are to be tried again only in a moment: then by
    /// that try, whoever makes it.
    fn answer_readers(&mut self, statements: &Statements<'_>) {
        if !self.readers.is_empty() && self.intake.pause_of_one_who_waits(Instant::now()).is_zero()
        {
            self.fold(statements, Commit::Soon);
        }
    }

    fn tell_readers(&mut self, folded: bool) {
        for reader in std::mem::take(&mut self.readers) {
            self.answer(
                reader,
                folded.then_some(Effect::Done).ok_or_else(not_folded),
            );
        }
    }

    fn write_down(&mut self, statements: &Statements<'_>, batch: Vec<Operation>) {
        let Some(operations) = self.take_in(statements, batch) else {
            if self.intake.is_due(Instant::now()) {
                self.fold(statements, Commit::Soon);
            }
            return;
        };
        let mut pending = vec![Batch {
            operations,
            folds: true,
        }];
        while let Some(batch) = pending.pop() {
            if let [operation] = batch.operations.as_slice()
                && operation.work.stands_alone()
            {
                batch
                    .operations
                    .into_iter()
                    .for_each(|operation| self.write_alone(statements.conn(), operation));
                continue;
            }
            self.transact(statements, batch, &mut pending);
        }
    }

    /// Gives back what has to go into the tables; refuses what finds room nowhere.
    fn take_in(
        &mut self,
        statements: &Statements<'_>,
        batch: Vec<Operation>,
    ) -> Option<Vec<Operation>> {
        let taken = match self.intake.take_in(statements, &batch, self.last_seq) {
            Ok(TakenIn::AfterFolding) if self.fold_unless_tried(statements) => {
                self.intake.take_in(statements, &batch, self.last_seq)
            }
            Ok(TakenIn::AfterFolding) => {
                self.refuse(batch, &not_folded());
                return None;
            }
            taken => taken,
        };
        // What cannot be looked up will be told by the transaction.
        let Ok(TakenIn::Done(done, last_seq)) = taken else {
            return Some(batch);
        };
        self.last_seq = last_seq;
        if let Err(lost) = self.watch.check() {
            self.refuse(batch, &lost);
            return None;
        }
        if done.iter().any(|done| done.seq.is_some()) {
            self.shared
                .taken_in(done.iter().map(|Done { effect, .. }| effect));
        }
        for (Operation { work, reply }, done) in batch.into_iter().zip(done) {
            self.inbox.answered(&work);
            self.intake.keep(work, &done);
            answer(&self.inbox, reply, Ok(done.effect));
        }
        None
    }

    /// Puts what was taken in into the tables for who finds no room in the journal. They may not
    /// have taken it a moment ago: that is told at once, for another try would hold up who writes.
    fn fold_unless_tried(&mut self, statements: &Statements<'_>) -> bool {
        self.intake.pause_of_one_who_waits(Instant::now()).is_zero()
            && self.fold(statements, self.answered)
    }

    /// Puts what was taken in into the tables, and tells who reads; `false` when they did not take
    /// it.
    fn fold(&mut self, statements: &Statements<'_>, commit: Commit) -> bool {
        let folded = self.intake.unfolded().is_empty() || self.put_into_tables(statements, commit);
        self.tell_readers(folded);
        folded
    }

    fn put_into_tables(&mut self, statements: &Statements<'_>, commit: Commit) -> bool {
        // What no journal has is on disk when the tables have it.
        let is_in_journal = self.intake.has_journal() && self.watch.check().is_ok();
        let commit = if is_in_journal { commit } else { self.answered };
        let nothing_else = Batch {
            operations: Vec::new(),
            folds: true,
        };
        let mut put = self.transaction(statements, &nothing_else, commit);
        while let Err(error) = &put
            && self.makes_room(statements, error)
        {
            put = self.transaction(statements, &nothing_else, commit);
        }
        match put {
            Ok(Written { wrote, .. }) => {
                self.committed(statements, &[], &[], commit, wrote);
                true
            }
            Err(error) => {
                let is_due = self.intake.put_off(Instant::now());
                // Those that readers ask for in between would say the same over and over.
                if is_due {
                    tracing::error!(
                        %error,
                        "what was acknowledged stays in the journal: the message log's tables do \
                         not take it",
                    );
                }
                false
            }
        }
    }

    fn transact(&mut self, statements: &Statements<'_>, batch: Batch, pending: &mut Vec<Batch>) {
        let Written {
            effects,
            last_seq,
            wrote,
        } = match self.transaction(statements, &batch, self.answered) {
            Ok(written) => written,
            Err(error) => return self.failed(statements, batch, error, pending),
        };
        let Batch { operations, folds } = batch;
        self.last_seq = last_seq;
        if let Err(lost) = self.watch.check() {
            if folds {
                self.intake.folded(self.answered, wrote);
            }
            return self.refuse(operations, &lost);
        }
        if folds {
            self.committed(statements, &operations, &effects, self.answered, wrote);
        } else {
            self.shared.committed_aside(&effects);
            self.moves_on(statements);
        }
        for (operation, effect) in operations.into_iter().zip(effects) {
            self.answer(operation, Ok(effect));
        }
    }

    fn transaction(
        &mut self,
        statements: &Statements<'_>,
        batch: &Batch,
        commit: Commit,
    ) -> rusqlite::Result<Written> {
        statements
            .conn()
            .busy_timeout(self.intake.lock_patience())?;
        self.checkpoints.mend(statements.conn())?;
        let unfolded = batch.folds.then(|| self.intake.unfolded());
        let run = || {
            transaction::run(
                statements,
                unfolded,
                &batch.operations,
                self.last_seq,
                commit,
            )
        };
        let ((result, last_seq), wrote) = self.checkpoints.saw(run);
        let effects = result.inspect_err(|error| self.checkpoints.syncs().note(error))?;
        self.is_emptied = false;
        Ok(Written {
            effects,
            last_seq,
            wrote,
        })
    }

    fn committed(
        &mut self,
        statements: &Statements<'_>,
        operations: &[Operation],
        effects: &[Effect],
        commit: Commit,
        wrote: bool,
    ) {
        let leaves_something = self.intake.unfolded().leaves_something();
        self.intake.folded(commit, wrote);
        self.shared
            .committed(self.last_seq, operations, effects, leaves_something);
        self.moves_on(statements);
    }

    /// After a transaction that has been rolled back: refuses what cannot be done, and puts the
    /// rest in `pending`.
    fn failed(
        &mut self,
        statements: &Statements<'_>,
        batch: Batch,
        error: rusqlite::Error,
        pending: &mut Vec<Batch>,
    ) {
        let Batch { operations, folds } = batch;
        match Kind::of(&error) {
            Kind::NoRoom if self.makes_room(statements, &error) => {
                let operations = self.let_in(operations);
                if !operations.is_empty() {
                    pending.push(Batch { operations, folds });
                }
            }
            Kind::NoRoom => {
                let refusal = self.watch.not_written(&error, operations.len());
                let (appends, rest): (Vec<_>, Vec<_>) = operations
                    .into_iter()
                    .partition(|operation| operation.work.brings_messages());
                let alone = appends.is_empty() && rest.len() == 1;
                self.refuse(appends, &refusal);
                // What is accepted already must get on: this is tried without the appends.
                if !alone {
                    return pending.extend(halves(rest, folds));
                }
                // Retention makes room, which what was taken in may need.
                let (drops, rest): (Vec<_>, Vec<_>) = rest
                    .into_iter()
                    .partition(|operation| folds && operation.work.makes_room());
                self.refuse(rest, &refusal);
                pending.extend(halves(drops, false));
            }
            Kind::Away => {
                let refusal = self.watch.not_written(&error, operations.len());
                self.intake.put_off(Instant::now());
                self.tell_readers(false);
                self.refuse(operations, &refusal);
            }
            Kind::Operation if operations.len() > 1 => pending.extend(halves(operations, folds)),
            // It was not this one, perhaps.
            Kind::Operation
                if !self.intake.unfolded().is_empty() && self.fold(statements, Commit::Soon) =>
            {
                pending.push(Batch { operations, folds });
            }
            Kind::Operation => {
                tracing::error!(%error, "the message log refused an operation");
                self.refuse(operations, &Error::Other(error.to_string()));
            }
        }
    }

    fn write_alone(&self, conn: &Connection, operation: Operation) {
        let result = match operation.work {
            Work::Shrink { pages } => maintenance::shrink(conn, pages),
            Work::Truncate => self.checkpoints.truncate(conn),
            Work::Close => {
                self.inbox.close();
                Ok(Effect::Done)
            }
            _ => Ok(Effect::Done),
        };
        let result = result.inspect_err(|error| self.checkpoints.syncs().note(error));
        self.answer(operation, result.map_err(Error::from));
    }

    fn refuse(&self, batch: Vec<Operation>, error: &Error) {
        for operation in batch {
            self.answer(operation, Err(error.clone()));
        }
    }

    fn answer(&self, operation: Operation, result: Result<Effect, Error>) {
        self.inbox.answered(&operation.work);
        answer(&self.inbox, operation.reply, result);
    }
}

fn not_folded() -> Error {
    Error::Unavailable("its tables do not take what was acknowledged last".to_owned())
}

fn answer(inbox: &Arc<Inbox>, reply: Option<Reply>, result: Result<Effect, Error>) {
    if let Some((reply, _room)) = reply {
        // A caller that has gone drops the answer, which gives back the leases in it.
        let _ = reply.send(Answer::new(result, Arc::clone(inbox)));
    }
}

impl Work {
    fn brings_messages(&self) -> bool {
        matches!(self, Self::Append(_) | Self::AppendCompleted(_))
    }

    /// It drops what is old, and looks at nothing that was just taken in.
    fn makes_room(&self) -> bool {
        matches!(
            self,
            Self::DropMessages { .. }
                | Self::DropKeys { .. }
                | Self::ForgetRecords { .. }
                | Self::ForgetQuotas
                | Self::ForgetPoll(_)
        )
    }

    /// It cannot be part of a transaction.
    fn stands_alone(&self) -> bool {
        matches!(self, Self::Shrink { .. } | Self::Truncate | Self::Close)
    }
}

/// Cuts what was queued into transactions, in order.
fn batches(queued: &mut Vec<Operation>) -> Vec<Vec<Operation>> {
    let mut batches = Vec::new();
    let mut batch: Vec<Operation> = Vec::new();
    let mut bytes = 0;
    for operation in queued.drain(..) {
        let size = operation.work.size_bytes();
        let alone = operation.work.stands_alone();
        if !batch.is_empty() && (alone || batch.len() >= BATCH || bytes + size > BATCH_BYTES) {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += size;
        batch.push(operation);
        if alone {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// The second half first: the last of a stack is the next.
fn halves(mut operations: Vec<Operation>, folds: bool) -> impl Iterator<Item = Batch> {
    let second = operations.split_off(operations.len().div_ceil(2));
    let halves = [second, operations]
        .into_iter()
        .filter(|half| !half.is_empty());
    halves.map(move |operations| Batch { operations, folds })
}
