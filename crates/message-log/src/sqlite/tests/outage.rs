//! Acknowledged operations while the tables cannot be written, because the disk is full or another
//! program has locked the file, and after the disk failed to sync.

use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::poll;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::message::Status;
use kanat_model::page::Page;
use rusqlite::ffi;

use super::File;
use super::journal::{count, crashed, held, journal, locked, unlock};
use crate::contract::{Subject, message, ordered, settlement, tenant};
use crate::prelude::*;
use crate::sqlite::sync_failures::SyncFailures;
use crate::sqlite::{Options, SqliteLog};
use crate::{AppendOutcome, Error, Filter, NewMessage, Outcome, Placement, Position};

const HOUR: Duration = Duration::from_secs(3_600);
/// Time for which the writer waits for another program, once.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

async fn total(log: &dyn MessageLog, flow: &FlowId) -> Result<u64, Error> {
    log.list(&Filter::flow(tenant(), flow.clone()), first())
        .await
        .map(|page| page.total)
}

fn first() -> Position {
    Position::Page(Page::new(Some(1), None))
}

fn large(flow: &FlowId, bytes: usize) -> NewMessage {
    NewMessage {
        raw_body: Bytes::from(vec![b'x'; bytes]),
        ..message(flow)
    }
}

#[tokio::test]
async fn starts_on_a_full_disk_with_what_the_tables_do_not_take_yet() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let old = FlowId::generate();
    let flow = FlowId::generate();
    let lease = subject.lease(large(&old, 500_000)).await;
    subject.deliver(&lease).await;
    assert_eq!(count(&subject, &old, Status::Delivered).await, 1);
    let other = locked(&file).await;
    for _ in 0..3 {
        subject.append(large(&flow, 100_000)).await;
    }
    let copy = crashed(&file);
    unlock(other).await;
    subject.close().await;

    // The file cannot grow.
    let full = Options {
        max_pages: Some(1),
        ..Options::default()
    };
    for boot in 0..2 {
        let log = copy.open_with(full.clone()).await;
        assert!(
            matches!(total(&*log, &flow).await, Err(Error::Unavailable(_))),
            "boot {boot}"
        );
        assert!(
            matches!(log.append(large(&flow, 100_000)).await, Err(Error::Disk(_))),
            "boot {boot}"
        );
        log.close().await;
        assert!(journal(&copy).exists(), "boot {boot}");
    }
    let log = copy.open_with(full).await;
    assert_eq!(log.retain(Timestamp::now().after(HOUR)).await.unwrap(), 1);
    assert_eq!(total(&*log, &flow).await.unwrap(), 3);
    assert_eq!(
        log.append(message(&flow)).await.unwrap(),
        AppendOutcome::Waiting
    );
    assert_eq!(total(&*log, &flow).await.unwrap(), 4);
    log.close().await;
    let log = copy.open_with(Options::default()).await;
    assert_eq!(total(&*log, &flow).await.unwrap(), 4);
    log.close().await;
}

#[tokio::test]
async fn another_program_that_keeps_the_file_is_waited_for_once() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let other = locked(&file).await;
    held(&subject, &flow, 2).await;
    assert!(matches!(
        total(&*subject.log, &flow).await,
        Err(Error::Unavailable(_))
    ));

    let mut waited = Duration::ZERO;
    for _ in 0..3 {
        let begun = Instant::now();
        assert!(matches!(
            subject.log.append(ordered(&flow, "key")).await,
            Err(Error::Unavailable(_))
        ));
        assert!(matches!(
            total(&*subject.log, &flow).await,
            Err(Error::Unavailable(_))
        ));
        waited += begun.elapsed();
    }
    // The journal takes messages until it is full, and then all are refused.
    let mut taken = 2;
    let place = Placement::Leased(subject.boot.clone());
    let refused = loop {
        let begun = Instant::now();
        match subject
            .log
            .append(NewMessage {
                place: place.clone(),
                ..large(&flow, 1_000_000)
            })
            .await
        {
            Ok(_) => taken += 1,
            Err(error) => {
                waited += begun.elapsed();
                break error;
            }
        }
    };
    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    assert!(taken > 30);
    assert!(waited < LOCK_TIMEOUT, "{waited:?}");

    // A reader need not wait until the end of the backoff.
    unlock(other).await;
    assert_eq!(total(&*subject.log, &flow).await.unwrap(), taken);
    subject.append(ordered(&flow, "key")).await;
    assert_eq!(total(&*subject.log, &flow).await.unwrap(), taken + 1);
    subject.close().await;
}

#[tokio::test]
async fn a_waiting_reader_gets_the_result_of_the_next_attempt() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let other = locked(&file).await;
    held(&subject, &flow, 2).await;
    assert!(matches!(
        total(&*subject.log, &flow).await,
        Err(Error::Unavailable(_))
    ));

    let mut read = Box::pin(total(&*subject.log, &flow));
    assert!(poll!(read.as_mut()).is_pending());
    assert!(matches!(
        subject.log.append(ordered(&flow, "key")).await,
        Err(Error::Unavailable(_))
    ));
    let Poll::Ready(read) = poll!(read.as_mut()) else {
        panic!("readers are put off by others' tries")
    };
    assert!(matches!(read, Err(Error::Unavailable(_))));
    // The log closes while a reader waits.
    let (read, ()) = tokio::join!(total(&*subject.log, &flow), subject.log.close());
    assert!(matches!(read, Err(Error::Unavailable(_))));
    unlock(other).await;
}

#[tokio::test]
async fn nothing_is_acknowledged_into_a_log_after_the_part_that_a_failed_sync_lost() {
    let file = File::new();
    let failures = SyncFailures::default();
    let flow = FlowId::generate();
    let log = SqliteLog::start(&file.path, Options::default(), failures.clone())
        .await
        .unwrap();
    let wal = |file: &File| file.path.with_extension("db-wal");
    log.append(ordered(&flow, "before")).await.unwrap();
    let synced = std::fs::read(wal(&file)).unwrap().len();
    for _ in 0..3 {
        log.append(message(&flow)).await.unwrap();
    }
    assert_eq!(total(&log, &flow).await.unwrap(), 4);
    let lost = std::fs::read(wal(&file)).unwrap().split_off(synced);
    assert!(!lost.is_empty());
    let kept = std::fs::read(journal(&file)).unwrap();
    failures.record_if_fsync_error(&rusqlite::Error::SqliteFailure(
        ffi::Error::new(ffi::SQLITE_IOERR_FSYNC),
        None,
    ));
    log.append(ordered(&flow, "after")).await.unwrap();
    log.append(message(&flow)).await.unwrap();
    assert_eq!(
        std::fs::read(journal(&file)).unwrap(),
        kept,
        "it neither takes more nor begins again"
    );

    // The power fails. The bytes of the failed sync are lost, unless they were written again.
    let copy = crashed(&file);
    let mut there = std::fs::read(wal(&copy)).unwrap();
    if let Some(same) = there
        .get_mut(synced..synced + lost.len())
        .filter(|there| **there == *lost)
    {
        same.fill(0);
        std::fs::write(wal(&copy), there).unwrap();
    }
    log.close().await;
    assert!(journal(&file).exists());
    for file in [file, copy] {
        let next = file.open_with(Options::default()).await;
        assert_eq!(total(&*next, &flow).await.unwrap(), 6);
        next.close().await;
        assert!(!journal(&file).exists());
    }
}

#[tokio::test]
async fn nothing_is_acknowledged_into_a_file_that_nobody_will_find() {
    for lost in ["messages.db", "messages.db-wal", "messages.db-intake"] {
        let file = File::new();
        let subject = Subject::open(&file).await;
        let flow = FlowId::generate();
        let early = subject.lease(message(&flow)).await;
        std::fs::remove_file(file.path.with_file_name(lost)).unwrap();
        for _ in 0..3 {
            let refused = subject.log.append(message(&flow)).await;
            assert!(
                matches!(&refused, Err(Error::Disk(reason)) if reason.contains(lost)),
                "{refused:?}"
            );
        }
        let keyed = NewMessage {
            ordering_key: Some("one".to_owned()),
            ..message(&flow)
        };
        assert!(
            subject.log.append(keyed).await.is_err(),
            "neither is what goes into the tables at once"
        );
        assert!(
            subject
                .log
                .settle(&settlement(&early, 1, Outcome::Delivered))
                .await
                .is_err()
        );
        assert!(subject.log.ping().await.is_err());
        subject.close().await;
    }
}

#[tokio::test]
async fn a_folder_that_was_moved_away_is_noticed_without_a_message() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    subject.log.ping().await.unwrap();
    std::fs::rename(&file.path, file.path.with_extension("away")).unwrap();
    assert!(matches!(subject.log.ping().await, Err(Error::Disk(_))));
    assert!(
        subject
            .log
            .append(message(&FlowId::generate()))
            .await
            .is_err()
    );
    subject.close().await;
}
