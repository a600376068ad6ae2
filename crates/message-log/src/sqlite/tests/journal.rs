//! Operations that the tables lack when they are acknowledged: each outlives a crash, once, and
//! readers see it.

use std::path::PathBuf;

use futures::future::join_all;
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId, NodeId};
use kanat_model::message::Status;

use super::File;
use crate::contract::{Subject, leased, message, settlement, tenant};
use crate::prelude::*;
use crate::sqlite::{Durability, Options, SqliteLog};
use crate::{
    AppendOutcome, Error, EventQuery, Filter, Lease, LeasedWriteOutcome, NewMessage, Outcome,
    Placement, RenewalOutcome,
};

const JOURNAL: &str = "messages.db-intake";

/// Copies the files as they are now, which is how a process that is killed leaves them.
pub(super) fn crashed(file: &File) -> File {
    let dir = tempfile::tempdir().unwrap();
    for name in ["messages.db", "messages.db-wal", JOURNAL] {
        let from = file.path.with_file_name(name);
        if from.exists() {
            std::fs::copy(&from, dir.path().join(name)).unwrap();
        }
    }
    File {
        options: file.options.clone(),
        ..File::in_folder(dir)
    }
}

pub(super) fn journal(file: &File) -> PathBuf {
    file.path.with_file_name(JOURNAL)
}

/// Returns the number of journals that were set aside.
fn set_aside(file: &File) -> usize {
    let names = std::fs::read_dir(file.path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| {
            name.to_string_lossy()
                .starts_with(&format!("{JOURNAL}.set-aside-"))
        })
        .count()
}

/// Locks the tables as another program, until [`unlock`].
pub(super) async fn locked(file: &File) -> sqlx::SqliteConnection {
    let mut other = file.connect().await;
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut other)
        .await
        .unwrap();
    other
}

pub(super) async fn unlock(mut other: sqlx::SqliteConnection) {
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
}

pub(super) async fn held(subject: &Subject, flow: &FlowId, count: usize) -> Vec<Lease> {
    let place = Placement::Leased(subject.boot.clone());
    let messages = (0..count).map(|_| NewMessage {
        place: place.clone(),
        ..message(flow)
    });
    subject
        .append_all(messages.collect())
        .await
        .into_iter()
        .map(leased)
        .collect()
}

pub(super) async fn count(subject: &Subject, flow: &FlowId, status: Status) -> u64 {
    let filter = Filter {
        statuses: vec![status],
        ..Filter::flow(tenant(), flow.clone())
    };
    let first = crate::Position::Page(kanat_model::page::Page::new(Some(1), None));
    subject.log.list(&filter, first).await.unwrap().total
}

#[tokio::test]
async fn pending_writes_outlive_a_crash() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let early = held(&subject, &flow, 3).await;
    // The tables have these before the other program locks them.
    assert_eq!(count(&subject, &flow, Status::Processing).await, 3);
    let other = locked(&file).await;
    let late = message(&flow);
    let (ended, appended, queued) = tokio::join!(
        subject.settle(&early[0], 1, Outcome::Delivered),
        held(&subject, &flow, 4),
        subject.append(NewMessage {
            place: Placement::Queued,
            ..late.clone()
        }),
    );
    assert_eq!(ended, LeasedWriteOutcome::Done);
    assert_eq!(appended.len(), 4);
    assert_eq!(queued, AppendOutcome::Waiting);

    let copy = crashed(&file);
    unlock(other).await;
    let next = Subject::open_as(&copy, subject.node.clone()).await;
    assert_eq!(count(&next, &flow, Status::Delivered).await, 1);
    assert_eq!(count(&next, &flow, Status::Received).await, 1);
    assert_eq!(count(&next, &flow, Status::Processing).await, 6);
    assert_eq!(next.get(&late.id).await.payload, late.raw_body);
    // The next boot claims the messages of the dead one, without the one that had ended.
    assert_eq!(next.claim(100, &[&flow]).await.len(), 7);
    next.close().await;
    subject.close().await;
}

#[tokio::test]
async fn acknowledged_operations_outlive_a_crash_with_the_journal_and_without_it() {
    for file in [File::new(), File::new().without_journal()] {
        let subject = Subject::open(&file).await;
        let flow = FlowId::generate();
        let leases = held(&subject, &flow, 3).await;
        subject.deliver(&leases[0]).await;

        let copy = crashed(&file);
        assert_eq!(journal(&copy).exists(), !file.options.without_journal);
        let next = Subject::open_as(&copy, subject.node.clone()).await;
        assert_eq!(count(&next, &flow, Status::Delivered).await, 1);
        assert_eq!(next.claim(100, &[&flow]).await.len(), 2);
        next.close().await;
        subject.close().await;
    }
}

/// The journal of a former start is applied also where the next one has none.
#[tokio::test]
async fn a_start_without_a_journal_applies_the_former_one() {
    let file = File::new();
    let (crash, flow, node) = twenty_in_the_journal(&file).await;
    let crash = crash.without_journal();
    for _ in 0..2 {
        let next = Subject::open_as(&crash, node.clone()).await;
        assert_eq!(count(&next, &flow, Status::Processing).await, 20);
        next.close().await;
    }
}

#[tokio::test]
async fn applied_operations_are_not_applied_again() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let other = locked(&file).await;
    held(&subject, &flow, 5).await;
    let copy = crashed(&file);
    let stale = std::fs::read(journal(&copy)).unwrap();
    unlock(other).await;
    subject.close().await;

    for boot in 0..3 {
        let next = Subject::open_as(&copy, NodeId::generate()).await;
        assert_eq!(
            count(&next, &flow, Status::Processing).await,
            5,
            "boot {boot}"
        );
        next.close().await;
        assert!(
            !journal(&copy).exists(),
            "a log that was closed is one file"
        );
        std::fs::write(journal(&copy), &stale).unwrap();
    }
}

#[tokio::test]
async fn a_journal_of_another_time_is_set_aside() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let backup = crashed(&file);
    held(&subject, &flow, 5).await;
    assert_eq!(count(&subject, &flow, Status::Processing).await, 5);
    // After a synced commit the journal restarts with the next record.
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    let other = locked(&file).await;
    held(&subject, &flow, 2).await;
    // The tables of the backup lack the messages between.
    std::fs::copy(journal(&file), journal(&backup)).unwrap();
    let stale = backup.path.with_file_name("stale");
    std::fs::copy(journal(&file), &stale).unwrap();
    unlock(other).await;
    subject.close().await;

    let restored = Subject::open(&backup).await;
    assert_eq!(count(&restored, &flow, Status::Processing).await, 0);
    assert_eq!(set_aside(&backup), 1);
    held(&restored, &flow, 2).await;
    let again = crashed(&backup);
    restored.close().await;
    let again = Subject::open(&again).await;
    assert_eq!(count(&again, &flow, Status::Processing).await, 2);
    again.close().await;
    // A second one is set aside beside the first.
    std::fs::copy(&stale, journal(&backup)).unwrap();
    backup.open_with(Options::default()).await.close().await;
    assert_eq!(set_aside(&backup), 2);
}

/// Returns a crashed log of twenty messages that only the journal has, each in a record of its own.
async fn twenty_in_the_journal(file: &File) -> (File, FlowId, NodeId) {
    let subject = Subject::open(file).await;
    let flow = FlowId::generate();
    let other = locked(file).await;
    for _ in 0..20 {
        held(&subject, &flow, 1).await;
    }
    let copy = crashed(file);
    unlock(other).await;
    subject.close().await;
    (copy, flow, subject.node)
}

/// Returns the offset of each record of a journal, and the end of the last one.
fn offsets(journal: &[u8]) -> Vec<usize> {
    let mut offsets = vec![4_096];
    while let Some(at) = offsets.last().filter(|_| offsets.len() <= 20) {
        let length = u32::from_le_bytes(journal[at + 8..at + 12].try_into().unwrap());
        offsets.push(at + 16 + usize::try_from(length).unwrap());
    }
    offsets
}

#[tokio::test]
async fn a_damaged_journal_is_set_aside_and_what_is_whole_of_it_is_taken_up() {
    let file = File::new();
    let (crash, flow, node) = twenty_in_the_journal(&file).await;
    let whole = std::fs::read(journal(&crash)).unwrap();
    let offsets = offsets(&whole);
    let byte = |at: usize| at..at + 1;
    let damages = [
        ("the first record", byte(offsets[0] + 30), 19),
        ("the length of the third record", byte(offsets[2] + 8), 19),
        ("the last record but one", byte(offsets[18] + 30), 19),
        ("two records", offsets[5]..offsets[7], 18),
        ("the number by which the tables know it", byte(9), 20),
        ("the first byte", byte(0), 20),
    ];
    for (what, damaged, left) in damages {
        let copy = crashed(&crash);
        let mut bytes = whole.clone();
        bytes[damaged].iter_mut().for_each(|byte| *byte ^= 0x10);
        std::fs::write(journal(&copy), &bytes).unwrap();
        let next = Subject::open_as(&copy, node.clone()).await;
        assert_eq!(
            count(&next, &flow, Status::Processing).await,
            left,
            "{what}"
        );
        assert_eq!(set_aside(&copy), 1, "{what}");
        assert_eq!(next.claim(100, &[&flow]).await.len() as u64, left, "{what}");
        let lease = next.lease(message(&flow)).await;
        next.deliver(&lease).await;
        next.close().await;
        let again = Subject::open_as(&copy, node.clone()).await;
        assert_eq!(count(&again, &flow, Status::Delivered).await, 1, "{what}");
        again.close().await;
        assert_eq!(set_aside(&copy), 1, "{what}: once");
    }
}

/// This happens when the lock file was deleted, so that a second process wrote to the same log.
#[tokio::test]
async fn what_another_process_wrote_in_between_keeps_its_places_and_nothing_is_lost() {
    let file = File::new();
    let (crash, flow, node) = twenty_in_the_journal(&file).await;
    let bytes = std::fs::read(journal(&crash)).unwrap();
    let mut tables = crash.connect().await;
    let counters = "SELECT name, value FROM counters WHERE name IN ('journal_salt', 'folded_lots')";
    let before: Vec<(String, i64)> = sqlx::query_as(counters)
        .fetch_all(&mut tables)
        .await
        .unwrap();
    sqlx::Connection::close(tables).await.unwrap();
    std::fs::remove_file(journal(&crash)).unwrap();
    let other = Subject::open(&crash).await;
    let other_flow = FlowId::generate();
    for lease in held(&other, &other_flow, 30).await.iter().skip(10) {
        other.deliver(lease).await;
    }
    other.close().await;
    let mut tables = crash.connect().await;
    for (name, value) in before {
        let set = sqlx::query("UPDATE counters SET value = ? WHERE name = ?")
            .bind(value)
            .bind(name);
        set.execute(&mut tables).await.unwrap();
    }
    sqlx::Connection::close(tables).await.unwrap();
    std::fs::write(journal(&crash), bytes).unwrap();

    let next = Subject::open_as(&crash, node).await;
    assert_eq!(count(&next, &flow, Status::Processing).await, 20);
    assert_eq!(count(&next, &other_flow, Status::Processing).await, 10);
    assert_eq!(count(&next, &other_flow, Status::Delivered).await, 20);
    let claimed = next.claim(100, &[&flow, &other_flow]).await;
    assert_eq!(
        claimed.len(),
        20,
        "the other node's are held by a lease that is good"
    );
    for message in claimed {
        next.deliver(&message.lease).await;
    }
    next.close().await;
}

#[tokio::test]
async fn a_record_that_was_cut_off_by_the_crash_is_no_damage() {
    let file = File::new();
    let (crash, flow, node) = twenty_in_the_journal(&file).await;
    let mut bytes = std::fs::read(journal(&crash)).unwrap();
    let end = offsets(&bytes)[20];
    bytes[end - 3..end].fill(0);
    std::fs::write(journal(&crash), &bytes).unwrap();
    let next = Subject::open_as(&crash, node).await;
    assert_eq!(
        count(&next, &flow, Status::Processing).await,
        19,
        "the last one was never acknowledged"
    );
    assert_eq!(set_aside(&crash), 0);
    next.close().await;
}

#[tokio::test]
async fn a_journal_of_another_build_is_left_to_that_build() {
    let file = File::new();
    let (crash, ..) = twenty_in_the_journal(&file).await;
    let mut bytes = std::fs::read(journal(&crash)).unwrap();
    bytes[7] = b'2';
    std::fs::write(journal(&crash), &bytes).unwrap();
    let opened = SqliteLog::open(&crash.path, Options::default()).await;
    assert!(matches!(opened, Err(Error::UnknownJournal(_))));
    assert_eq!(std::fs::read(journal(&crash)).unwrap(), bytes);
}

#[tokio::test]
async fn readers_see_what_was_answered_before_they_asked() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    for n in 1..=20 {
        let lease = subject.lease(message(&flow)).await;
        assert_eq!(
            subject.get(&lease.message_id).await.status,
            Status::Processing
        );
        subject.deliver(&lease).await;
        assert_eq!(
            subject.get(&lease.message_id).await.status,
            Status::Delivered
        );
        assert_eq!(count(&subject, &flow, Status::Delivered).await, n);
        let queued = message(&flow);
        subject
            .append(NewMessage {
                place: Placement::Queued,
                ..queued.clone()
            })
            .await;
        assert_eq!(subject.claim_one(&flow).await.lease.message_id, queued.id);
    }
    let query = EventQuery {
        tenant: tenant(),
        flow_id: None,
        status: None,
        after: 0,
        limit: 7,
    };
    let events = subject.events(query).await;
    assert_eq!(events.len(), 20 * 4);
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    assert_eq!(subject.log.last_event().await.unwrap(), events[79].seq);
    subject.close().await;
}

#[tokio::test]
async fn an_end_is_fenced_wherever_its_message_is() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let lease = subject.lease(message(&flow)).await;
    let twice =
        [Outcome::Delivered, Outcome::DeadLetter].map(|outcome| settlement(&lease, 1, outcome));
    let both = join_all(
        twice
            .iter()
            .map(|settlement| subject.log.settle(settlement)),
    )
    .await;
    assert!(matches!(
        both.as_slice(),
        [Ok(LeasedWriteOutcome::Done), Ok(LeasedWriteOutcome::Fenced)]
    ));
    assert_eq!(
        subject.settle(&lease, 1, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Fenced
    );
    assert_eq!(
        subject.get(&lease.message_id).await.status,
        Status::Delivered
    );
    assert_eq!(
        subject.settle(&lease, 1, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Fenced
    );

    let lease = subject.lease(message(&flow)).await;
    let forged = Lease {
        owner: kanat_model::id::BootId::generate(),
        ..lease.clone()
    };
    assert_eq!(
        subject.settle(&forged, 1, Outcome::Delivered).await,
        LeasedWriteOutcome::Fenced
    );
    let forged = Lease {
        token: lease.token + 1,
        ..lease.clone()
    };
    assert_eq!(
        subject.settle(&forged, 1, Outcome::Delivered).await,
        LeasedWriteOutcome::Fenced
    );
    subject.deliver(&lease).await;
    subject.close().await;
}

#[tokio::test]
async fn a_second_message_of_an_id_is_refused_wherever_the_first_one_is() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let first = message(&flow);
    let (one, two) = tokio::join!(
        subject.log.append(first.clone()),
        subject.log.append(first.clone())
    );
    assert!(one.is_ok() && two.is_err());
    assert!(subject.log.append(first.clone()).await.is_err());
    assert_eq!(
        subject
            .ids(&Filter::flow(tenant(), flow.clone()))
            .await
            .as_slice(),
        std::slice::from_ref(&first.id)
    );
    assert!(subject.log.append(first).await.is_err());
    subject.append(message(&flow)).await;
    subject.close().await;
}

/// SQLite does not sync a transaction that changed nothing, and the power may fail before its next
/// sync.
#[tokio::test]
async fn a_commit_that_wrote_nothing_lets_the_journal_forget_nothing() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let wal = |file: &File| file.path.with_extension("db-wal");
    let synced = std::fs::metadata(wal(&file)).unwrap().len();
    held(&subject, &flow, 3).await;
    assert_eq!(count(&subject, &flow, Status::Processing).await, 3);
    assert!(
        subject
            .log
            .discard(&tenant(), &MessageId::generate())
            .await
            .is_err()
    );
    let other = locked(&file).await;
    held(&subject, &flow, 2).await;

    let copy = crashed(&file);
    std::fs::OpenOptions::new()
        .write(true)
        .open(wal(&copy))
        .unwrap()
        .set_len(synced)
        .unwrap();
    unlock(other).await;
    let next = Subject::open_as(&copy, subject.node.clone()).await;
    assert_eq!(count(&next, &flow, Status::Processing).await, 5);
    next.close().await;
    subject.close().await;
}

/// A full journal restarts once the tables have all of its records.
#[tokio::test]
async fn more_comes_in_than_the_journal_holds() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let body = bytes::Bytes::from(format!("{:?}", "x".repeat(1_000_000)));
    let mut leases = Vec::new();
    for _ in 0..10 {
        let place = Placement::Leased(subject.boot.clone());
        let message = || NewMessage {
            raw_body: body.clone(),
            place: place.clone(),
            ..message(&flow)
        };
        leases.extend(
            subject
                .append_all((0..7).map(|_| message()).collect())
                .await
                .into_iter()
                .map(leased),
        );
    }
    assert!(std::fs::metadata(journal(&file)).unwrap().len() < 34 * 1024 * 1024);
    let copy = crashed(&file);
    let next = Subject::open_as(&copy, subject.node.clone()).await;
    assert_eq!(count(&next, &flow, Status::Processing).await, 70);
    for lease in &leases {
        subject.deliver(lease).await;
    }
    next.close().await;
    subject.close().await;
}

/// Tables with the salt of the next journal would not know the former one any more.
#[tokio::test]
async fn a_journal_goes_before_the_tables_know_of_the_next_one() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    held(&subject, &flow, 2).await;
    let copy = crashed(&file);
    subject.close().await;
    let refusal = "CREATE TRIGGER refusal BEFORE UPDATE ON counters WHEN new.name = 'journal_salt'
        BEGIN SELECT RAISE(ABORT, 'not now'); END";
    let mut other = copy.connect().await;
    sqlx::raw_sql(refusal).execute(&mut other).await.unwrap();

    let next = Subject::open_as(&copy, NodeId::generate()).await;
    assert!(!journal(&copy).exists());
    assert_eq!(count(&next, &flow, Status::Processing).await, 2);
    next.close().await;
}

#[tokio::test]
async fn a_log_that_need_not_sync_has_no_journal() {
    let file = File::new();
    let options = Options {
        durability: Durability::RelaxedMayLoseAckedMessages,
        ..Options::default()
    };
    let log = file.open_with(options).await;
    log.append(message(&FlowId::generate())).await.unwrap();
    assert!(!journal(&file).exists());
    log.retain(Timestamp::from_millis(0)).await.unwrap();
    log.close().await;
}
