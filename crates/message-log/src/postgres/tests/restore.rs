//! A database that goes back to an earlier copy while nodes hold messages of it: its sequences go
//! back as well, so that a later message gets the place, the token and the owner of one that was
//! lost.

use std::sync::Arc;

use bytes::Bytes;
use kanat_model::id::{EpochId, FlowId};
use kanat_model::message::Status;
use sqlx::AssertSqlSafe;

use super::{LogHarness, Options, PostgresLog};
use crate::contract::{Subject, message, tenant};
use crate::prelude::*;
use crate::{EventPage, EventQuery, LeasedWriteOutcome, Outcome, RenewalOutcome, StepCheckpoint};

#[tokio::test]
async fn an_outcome_of_a_lost_message_does_not_end_the_one_that_has_its_place() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let copy = Copy::take(&place).await;
    let lost = subject.lease(message(&flow)).await;
    copy.restore(&place).await;
    let later = subject.lease(message(&flow)).await;
    // Nothing but the id tells them apart.
    assert_eq!(later.seq, lost.seq);
    assert_eq!(later.token, lost.token);
    assert_eq!(&later.owner, &lost.owner);

    assert_eq!(
        subject.settle(&lost, 1, Outcome::Delivered).await,
        LeasedWriteOutcome::Fenced
    );
    let output = Bytes::from_static(b"1");
    let step = StepCheckpoint {
        lease: lost,
        name: "step".to_owned(),
        status: 200,
        output,
    };
    assert_eq!(
        subject.log.checkpoint(step).await.unwrap(),
        LeasedWriteOutcome::Fenced
    );
    assert_eq!(
        subject.get(&later.message_id).await.status,
        Status::Processing
    );
    subject.deliver(&later).await;
    subject.close().await;
}

#[tokio::test]
async fn a_message_that_was_given_back_before_a_restore_gives_back_no_other() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let copy = Copy::take(&place).await;
    let lost = subject.lease(message(&flow)).await;
    copy.restore(&place).await;
    let later = subject.lease(message(&flow)).await;
    let due = kanat_model::Timestamp::now();
    assert_eq!(
        subject.settle(&lost, 0, Outcome::Release { due }).await,
        LeasedWriteOutcome::Fenced
    );
    assert_eq!(
        subject.get(&later.message_id).await.status,
        Status::Processing
    );
    subject.close().await;
}

#[tokio::test]
async fn a_lease_that_was_renewed_after_the_copy_finds_that_the_past_has_changed() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let other = subject.beside().await;
    let copy = Copy::take(&place).await;
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    assert_eq!(other.renew().await, RenewalOutcome::Done);
    copy.restore(&place).await;

    let (former, present) = past(subject.renew().await);
    assert!(present > former);
    assert_eq!(place.epoch().await, present);
    // Other nodes find the epoch that the first one made.
    assert_eq!(past(other.renew().await), (former.clone(), present.clone()));
    // A node that asks once more makes no other.
    assert_eq!(past(subject.renew().await), (former, present.clone()));
    for node in [&subject, &other] {
        node.reopen().await;
        assert_eq!(node.renew().await, RenewalOutcome::Done);
    }
    assert_eq!(place.epoch().await, present);
    subject.close().await;
}

#[tokio::test]
async fn a_copy_of_the_moment_is_another_past_all_the_same() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    // As pg_restore makes it, from a dump of after the last renewal.
    let again =
        "ALTER TABLE leases RENAME TO former; CREATE TABLE leases (LIKE former INCLUDING ALL);
        INSERT INTO leases SELECT * FROM former; DROP TABLE former";
    sqlx::raw_sql(again)
        .execute(&mut place.connect().await)
        .await
        .unwrap();
    let (former, present) = past(subject.renew().await);
    assert!(present > former);
    subject.reopen().await;
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    subject.close().await;
}

#[tokio::test]
async fn a_lease_that_was_opened_after_the_copy_finds_that_the_past_has_changed() {
    let place = LogHarness::new();
    let early = Subject::open(&place).await;
    let copy = Copy::take(&place).await;
    let late = early.beside().await;
    let restarted = Subject::open_as(&place, early.node.clone()).await;
    copy.restore(&place).await;
    let (_, present) = past(late.renew().await);
    assert_eq!(
        past(restarted.renew().await).1,
        present,
        "the lease of its former boot is not its own"
    );
    for subject in [early, restarted] {
        subject.close().await;
    }
}

#[tokio::test]
async fn a_second_restore_of_one_copy_is_another_past_than_the_first() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let copy = Copy::take(&place).await;
    let mut epochs = vec![place.epoch().await];
    for _ in 0..3 {
        assert_eq!(subject.renew().await, RenewalOutcome::Done);
        copy.restore(&place).await;
        let (former, present) = past(subject.renew().await);
        assert_eq!(Some(&former), epochs.last());
        epochs.push(present);
        subject.reopen().await;
    }
    assert!(
        epochs.is_sorted_by(|former, next| former < next),
        "{epochs:?}"
    );
    subject.close().await;
}

#[tokio::test]
async fn an_epoch_that_a_person_made_ends_every_lease_of_before() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let log: Arc<PostgresLog> = place.open_with(Options::default()).await;
    let (former, present) = log.change_past().await.unwrap();
    log.close().await;
    assert_eq!(past(subject.renew().await), (former, present.clone()));
    assert_eq!(place.epoch().await, present);
    subject.reopen().await;
    // As the documentation has it.
    sqlx::query("UPDATE epoch SET epoch = epoch || '0'")
        .execute(&mut place.connect().await)
        .await
        .unwrap();
    let present = place.epoch().await;
    assert_eq!(past(subject.renew().await).1, present);
    assert_eq!(place.epoch().await, present);
    subject.close().await;
}

#[tokio::test]
async fn a_live_stream_goes_on_with_what_comes_after_a_restore() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let copy = Copy::take(&place).await;
    for _ in 0..3 {
        subject.lease(message(&flow)).await;
    }
    let seen = subject.log.last_event().await.unwrap();
    copy.restore(&place).await;
    let after = page_after(&subject, seen).await.next_after;
    let later = subject.lease(message(&flow)).await;
    assert!(later.seq <= seen);
    let found = page_after(&subject, after).await.events;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message.id, later.message_id);
    subject.close().await;
}

async fn page_after(subject: &Subject, after: i64) -> EventPage {
    let query = EventQuery {
        tenant: tenant(),
        flow_id: None,
        status: None,
        after,
        limit: 10,
    };
    subject.log.events(&query).await.unwrap()
}

fn past(renewed: RenewalOutcome) -> (EpochId, EpochId) {
    match renewed {
        RenewalOutcome::PastChanged { former, present } => (former, present),
        other => panic!("{other:?}"),
    }
}

/// A copy of a log without messages.
struct Copy {
    next_event: i64,
    epoch: EpochId,
    leases: Vec<String>,
}

impl Copy {
    async fn take(place: &LogHarness) -> Self {
        let mut conn = place.connect().await;
        let next = sqlx::query_scalar("SELECT nextval('events')");
        let next_event = next.fetch_one(&mut conn).await.unwrap();
        let leases = sqlx::query_scalar("SELECT l::text FROM leases AS l")
            .fetch_all(&mut conn)
            .await
            .unwrap();
        Self {
            next_event,
            epoch: place.epoch().await,
            leases,
        }
    }

    async fn restore(&self, place: &LogHarness) {
        let mut conn = place.connect().await;
        for table in ["transitions", "steps", "bodies", "messages", "leases"] {
            sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}")))
                .execute(&mut conn)
                .await
                .unwrap();
        }
        for lease in &self.leases {
            let insert = sqlx::query("INSERT INTO leases SELECT ($1::text::leases).*");
            insert.bind(lease).execute(&mut conn).await.unwrap();
        }
        sqlx::query("SELECT setval('events', $1)")
            .bind(self.next_event)
            .execute(&mut conn)
            .await
            .unwrap();
        sqlx::query("UPDATE epoch SET epoch = $1")
            .bind(self.epoch.as_str())
            .execute(&mut conn)
            .await
            .unwrap();
    }
}
