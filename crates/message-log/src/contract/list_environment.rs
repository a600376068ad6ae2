//! Promises about lists over all flows of an environment.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::Status;
use kanat_model::page::Page;

use super::Harness;
use super::subject::{Subject, message, tenant};
use crate::{
    EnvironmentFilter, LeasedWriteOutcome, MessagePage, NewMessage, Outcome, Position, Tenant,
};

async fn page(subject: &Subject, filter: &EnvironmentFilter, position: Position) -> MessagePage {
    subject
        .log
        .list_environment(filter, position)
        .await
        .expect("the log reads")
}

fn ids(page: &MessagePage) -> Vec<MessageId> {
    page.messages
        .iter()
        .map(|message| message.id.clone())
        .collect()
}

async fn all(subject: &Subject, filter: &EnvironmentFilter) -> Vec<MessageId> {
    let found = page(
        subject,
        filter,
        Position::Page(Page {
            limit: 500,
            offset: 0,
        }),
    )
    .await;
    assert_eq!(found.next, None);
    assert!(!found.total_is_least);
    assert_eq!(
        found.total,
        u64::try_from(found.messages.len()).expect("few")
    );
    ids(&found)
}

pub async fn lists_an_environment_in_the_order_of_the_log(harness: &dyn Harness) {
    let orders = FlowId::generate();
    let invoices = FlowId::generate();
    let subject = Subject::open(harness).await;
    let now = Timestamp::now();
    let mut sent = Vec::new();
    for number in 0..6 {
        let flow = if number % 2 == 0 { &orders } else { &invoices };
        // Not in the order in which they were received.
        let received_at = now.before(Duration::from_secs(number * 7 % 5));
        let message = NewMessage {
            received_at,
            ..message(flow)
        };
        sent.insert(0, message.id.clone());
        subject.append(message).await;
    }
    let filter = EnvironmentFilter::all(tenant());
    assert_eq!(all(&subject, &filter).await, sent);
    let of_one = EnvironmentFilter {
        flow_id: Some(invoices.clone()),
        ..filter.clone()
    };
    assert_eq!(
        all(&subject, &of_one).await,
        [sent[0].clone(), sent[2].clone(), sent[4].clone()]
    );

    let first = page(
        &subject,
        &filter,
        Position::Page(Page {
            limit: 2,
            offset: 1,
        }),
    )
    .await;
    assert_eq!(ids(&first), sent[1..3].to_vec());
    assert_eq!(first.total, 6);
    let mut found = ids(&first);
    let mut next = first.next;
    while let Some(cursor) = next {
        subject.append(message(&orders)).await;
        let part = page(&subject, &filter, Position::After { cursor, limit: 2 }).await;
        found.extend(ids(&part));
        next = part.next;
    }
    assert_eq!(found, sent[1..]);

    let foreign = Tenant {
        account_id: AccountId::new("acc_2"),
        ..tenant()
    };
    let staging = Tenant {
        environment_id: EnvironmentId::new("env_2"),
        ..tenant()
    };
    for other in [foreign, staging] {
        assert!(
            all(&subject, &EnvironmentFilter::all(other.clone()))
                .await
                .is_empty()
        );
        let failing = EnvironmentFilter {
            statuses: vec![Status::DeadLetter],
            ..EnvironmentFilter::all(other)
        };
        assert!(all(&subject, &failing).await.is_empty());
    }
    subject.close().await;
}

pub async fn filters_the_list_of_an_environment(harness: &dyn Harness) {
    let orders = FlowId::generate();
    let invoices = FlowId::generate();
    let subject = Subject::open(harness).await;
    let long_ago = Timestamp::now().before(Duration::from_secs(86_400));
    let old = subject
        .dead_letter(NewMessage {
            received_at: long_ago,
            ..message(&orders)
        })
        .await
        .message_id;
    let delivered = subject.lease(message(&orders)).await;
    subject.deliver(&delivered).await;
    let dead = subject.dead_letter(message(&invoices)).await.message_id;
    let retrying = subject.lease(message(&orders)).await;
    let later = Outcome::Retry {
        due: Timestamp::now().after(Duration::from_secs(600)),
    };
    assert_eq!(
        subject.settle(&retrying, 1, later).await,
        LeasedWriteOutcome::Done
    );
    let retrying = retrying.message_id;

    let filter = EnvironmentFilter::all(tenant());
    let failing = EnvironmentFilter {
        statuses: vec![Status::DeadLetter, Status::Retrying],
        ..EnvironmentFilter::all(tenant())
    };
    assert_eq!(
        all(&subject, &failing).await,
        [retrying.clone(), dead.clone(), old.clone()]
    );
    let dead_only = EnvironmentFilter {
        statuses: vec![Status::DeadLetter],
        ..filter.clone()
    };
    assert_eq!(all(&subject, &dead_only).await, [dead.clone(), old.clone()]);
    let mixed = EnvironmentFilter {
        statuses: vec![Status::DeadLetter, Status::Delivered],
        ..filter.clone()
    };
    assert_eq!(
        all(&subject, &mixed).await,
        [dead.clone(), delivered.message_id.clone(), old.clone()]
    );

    let hour_ago = Timestamp::now().before(Duration::from_secs(3_600));
    let since = EnvironmentFilter {
        since: Some(hour_ago),
        ..failing.clone()
    };
    assert_eq!(
        all(&subject, &since).await,
        [retrying.clone(), dead.clone()]
    );
    let until = EnvironmentFilter {
        until: Some(hour_ago),
        ..filter.clone()
    };
    assert_eq!(all(&subject, &until).await, std::slice::from_ref(&old));
    let search = EnvironmentFilter {
        search: Some(dead.as_str()[8..].to_owned()),
        ..filter.clone()
    };
    assert_eq!(all(&subject, &search).await, std::slice::from_ref(&dead));

    // What is no failure any more is not listed as one.
    subject
        .log
        .discard(&tenant(), &dead)
        .await
        .expect("it is discarded");
    assert_eq!(all(&subject, &failing).await, [retrying, old]);
    subject.close().await;
}

pub async fn counts_what_waits_of_a_paused_flow_as_held(harness: &dyn Harness) {
    let paused = FlowId::generate();
    let running = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut waiting = Vec::new();
    for flow in [&paused, &running] {
        let message = message(flow);
        waiting.push(message.id.clone());
        subject.append(message).await;
    }
    let dead = subject.dead_letter(message(&paused)).await.message_id;
    let of = |status| EnvironmentFilter {
        statuses: vec![status],
        paused: vec![paused.clone()],
        ..EnvironmentFilter::all(tenant())
    };
    assert_eq!(all(&subject, &of(Status::Held)).await, waiting[..1]);
    assert_eq!(all(&subject, &of(Status::Received)).await, waiting[1..]);
    assert_eq!(all(&subject, &of(Status::DeadLetter)).await, [dead]);
    subject.close().await;
}
