//! A database that goes back to an earlier copy while nodes hold messages of it: its sequences go back as well, so that a
//! later message gets the place, the token and the owner of one that was lost.

use bytes::Bytes;
use kanat_model::id::FlowId;
use kanat_model::message::Status;
use sqlx::AssertSqlSafe;

use super::Place;
use crate::contract::{Subject, message};
use crate::{Outcome, Settled, StepCheckpoint};

#[tokio::test]
async fn an_outcome_of_a_lost_message_does_not_end_the_one_that_has_its_place() {
    let place = Place::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let copy = Copy::take(&place).await;
    let lost = subject.lease(message(&flow)).await;
    copy.restore(&place).await;
    let later = subject.lease(message(&flow)).await;
    // Nothing but the id tells them apart.
    assert_eq!((later.seq, later.token, &later.owner), (lost.seq, lost.token, &lost.owner));

    assert_eq!(subject.settle(&lost, 1, Outcome::Delivered).await, Settled::Fenced);
    let output = Bytes::from_static(b"1");
    let step = StepCheckpoint { lease: lost, name: "step".to_owned(), status: 200, output };
    assert_eq!(subject.log.checkpoint(step).await.unwrap(), Settled::Fenced);
    assert_eq!(subject.get(&later.message_id).await.status, Status::Processing);
    subject.deliver(&later).await;
    subject.close().await;
}

#[tokio::test]
async fn a_message_that_was_given_back_before_a_restore_gives_back_no_other() {
    let place = Place::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let copy = Copy::take(&place).await;
    let lost = subject.lease(message(&flow)).await;
    copy.restore(&place).await;
    let later = subject.lease(message(&flow)).await;
    let due = kanat_model::Timestamp::now();
    assert_eq!(subject.settle(&lost, 0, Outcome::Release { due }).await, Settled::Fenced);
    assert_eq!(subject.get(&later.message_id).await.status, Status::Processing);
    subject.close().await;
}

/// A copy of a log without messages.
struct Copy {
    next_event: i64,
}

impl Copy {
    async fn take(place: &Place) -> Self {
        let mut conn = place.connect().await;
        let next = sqlx::query_scalar("SELECT nextval('events')");
        Self { next_event: next.fetch_one(&mut conn).await.unwrap() }
    }

    async fn restore(&self, place: &Place) {
        let mut conn = place.connect().await;
        for table in ["transitions", "steps", "bodies", "messages"] {
            sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut conn).await.unwrap();
        }
        sqlx::query("SELECT setval('events', $1)").bind(self.next_event).execute(&mut conn).await.unwrap();
    }
}
