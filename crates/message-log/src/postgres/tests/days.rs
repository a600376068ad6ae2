//! Days: what is old goes with its day, and what must stay stays.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use sqlx::{AssertSqlSafe, PgConnection};

use super::LogHarness;
use crate::contract::{Subject, message, settlement, tenant};
use crate::postgres::day::{self, Day};
use crate::{EventQuery, Filter, LeasedWriteOutcome, NewMessage, Outcome};

const DAY: Duration = Duration::from_secs(86_400);

/// Makes it a day long ago, for messages to come.
async fn go_back(conn: &mut PgConnection, days: i64) -> Day {
    let day = Day::new(day::today(conn).await.unwrap() - days);
    day::make_day(conn, &day).await.unwrap();
    let text = format!("SELECT setval('events', {}, false)", day.first_seq());
    sqlx::raw_sql(AssertSqlSafe(text))
        .execute(conn)
        .await
        .unwrap();
    day
}

async fn partitions(conn: &mut PgConnection, day: &Day) -> i64 {
    let text = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE '%' || $1";
    sqlx::query_scalar(text)
        .bind(&day.suffix)
        .fetch_one(conn)
        .await
        .unwrap()
}

/// Sends a message that arrived so many days ago, and ends it then.
async fn finished(subject: &Subject, flow: &FlowId, days: u32) -> MessageId {
    let received_at = Timestamp::now().before(DAY * days);
    let lease = subject
        .lease(NewMessage {
            received_at,
            ..message(flow)
        })
        .await;
    let mut settlement = settlement(&lease, 1, Outcome::Delivered);
    settlement.at = received_at;
    assert_eq!(
        subject.log.settle(&settlement).await.unwrap(),
        LeasedWriteOutcome::Done
    );
    lease.message_id
}

#[tokio::test]
async fn drops_a_day_as_a_whole() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let mut conn = place.connect().await;
    let flow = FlowId::generate();
    let old = go_back(&mut conn, 10).await;
    for _ in 0..5 {
        finished(&subject, &flow, 10).await;
    }
    day::prepare(&mut conn, place.connecting().space)
        .await
        .unwrap();
    let young = finished(&subject, &flow, 0).await;
    assert_eq!(partitions(&mut conn, &old).await, 4);

    assert_eq!(
        subject
            .log
            .retain(Timestamp::now().before(DAY * 20))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        subject
            .log
            .retain(Timestamp::now().before(DAY * 2))
            .await
            .unwrap(),
        5
    );
    assert_eq!(partitions(&mut conn, &old).await, 0);
    assert_eq!(
        subject.ids(&Filter::flow(tenant(), flow.clone())).await,
        [young]
    );
    assert_eq!(
        subject.events(EventQuery::after(tenant(), 0)).await.len(),
        2
    );
    finished(&subject, &flow, 0).await;
    subject.close().await;
}

#[tokio::test]
async fn keeps_what_is_unfinished_or_ended_late_and_gives_the_room_of_its_day_back() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let mut conn = place.connect().await;
    let flow = FlowId::generate();
    let old = go_back(&mut conn, 10).await;
    for _ in 0..20 {
        finished(&subject, &flow, 10).await;
    }
    let received_at = Timestamp::now().before(DAY * 10);
    let waiting = NewMessage {
        received_at,
        ..message(&flow)
    };
    let mut expected = vec![waiting.id.clone()];
    subject.append(waiting).await;
    let late = subject
        .lease(NewMessage {
            received_at,
            ..message(&flow)
        })
        .await;
    expected.push(late.message_id.clone());
    assert_eq!(
        subject.checkpoint(&late, "contact", "{}").await,
        LeasedWriteOutcome::Done
    );
    day::prepare(&mut conn, place.connecting().space)
        .await
        .unwrap();
    subject.deliver(&late).await;
    let size = format!("SELECT pg_total_relation_size('{}')", old.table("messages"));
    let size = || sqlx::query_scalar::<_, i64>(AssertSqlSafe(size.clone()));
    let full = size().fetch_one(&mut conn).await.unwrap();

    let older_than = Timestamp::now().before(DAY * 2);
    assert_eq!(subject.log.retain(older_than).await.unwrap(), 20);
    assert_eq!(subject.log.retain(older_than).await.unwrap(), 0);
    let mut kept = subject.ids(&Filter::flow(tenant(), flow.clone())).await;
    kept.sort();
    expected.sort();
    assert_eq!(kept, expected);
    assert_eq!(partitions(&mut conn, &old).await, 4);
    assert!(size().fetch_one(&mut conn).await.unwrap() <= full);
    assert_eq!(
        subject.get(&late.message_id).await.output.as_deref(),
        Some(br#"{"attempt":1}"#.as_slice())
    );
    assert_eq!(subject.trace(&late.message_id).await.len(), 2);

    // It goes on, and when nothing is left to keep, its day goes.
    let claimed = subject.claim_one(&flow).await;
    let mut settlement = settlement(&claimed.lease, 1, Outcome::Filtered);
    settlement.at = received_at;
    assert_eq!(
        subject.log.settle(&settlement).await.unwrap(),
        LeasedWriteOutcome::Done
    );
    assert_eq!(subject.log.retain(older_than).await.unwrap(), 1);
    assert_eq!(subject.log.retain(Timestamp::now()).await.unwrap(), 1);
    assert_eq!(partitions(&mut conn, &old).await, 0);
    subject.close().await;
}

#[tokio::test]
async fn leaves_a_day_alone_that_mostly_stays() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let mut conn = place.connect().await;
    let flow = FlowId::generate();
    go_back(&mut conn, 10).await;
    let received_at = Timestamp::now().before(DAY * 10);
    subject
        .append_all(
            (0..10)
                .map(|_| NewMessage {
                    received_at,
                    ..message(&flow)
                })
                .collect(),
        )
        .await;
    finished(&subject, &flow, 10).await;
    day::prepare(&mut conn, place.connecting().space)
        .await
        .unwrap();
    assert_eq!(
        subject
            .log
            .retain(Timestamp::now().before(DAY))
            .await
            .unwrap(),
        0
    );
    assert_eq!(subject.ids(&Filter::flow(tenant(), flow)).await.len(), 11);
    subject.close().await;
}

#[tokio::test]
async fn goes_on_into_a_new_day_without_a_pause() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let mut conn = place.connect().await;
    let flow = FlowId::generate();
    let old = go_back(&mut conn, 3).await;
    subject.append(message(&flow)).await;
    // Two processes see at once that the day is over.
    let mut other = place.connect().await;
    let space = place.connecting().space;
    let prepared = futures::future::join(
        day::prepare(&mut conn, space),
        day::prepare(&mut other, space),
    )
    .await;
    assert_eq!(prepared.0.unwrap(), prepared.1.unwrap());
    subject.append(message(&flow)).await;
    let events = subject.events(EventQuery::after(tenant(), 0)).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].seq, old.first_seq());
    assert!(events[1].seq >= Day::new(old.number + 3).first_seq());
    assert_eq!(subject.claim(10, &[&flow]).await.len(), 2);
    subject.close().await;
}
