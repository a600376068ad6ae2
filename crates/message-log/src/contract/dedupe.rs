//! Promises about repeats.

use std::time::Duration;

use kanat_model::id::FlowId;

use super::Harness;
use super::subject::{LONG, Subject, message, tenant};
use crate::{AppendOutcome, DedupeKey, Filter, NewMessage, RepeatPolicy};

fn keyed(flow: &FlowId, keys: &[&str], ttl: Duration) -> NewMessage {
    let dedupe_keys = keys
        .iter()
        .map(|key| DedupeKey {
            key: (*key).to_owned(),
            ttl,
            policy: RepeatPolicy::Refuse,
        })
        .collect();
    NewMessage {
        dedupe_keys,
        ..message(flow)
    }
}

pub async fn answers_a_repeat_with_the_first_id(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let first = keyed(&flow, &["a", "b"], LONG);
    let id = first.id.clone();
    assert_eq!(subject.append(first).await, AppendOutcome::Waiting);
    assert_eq!(
        subject.append(keyed(&flow, &["a"], LONG)).await,
        AppendOutcome::Duplicate(id.clone())
    );
    assert_eq!(
        subject.append(keyed(&flow, &["c", "b"], LONG)).await,
        AppendOutcome::Duplicate(id.clone())
    );
    // A repeat stores nothing, its other keys neither.
    assert_eq!(
        subject.append(keyed(&flow, &["c"], LONG)).await,
        AppendOutcome::Waiting
    );
    subject.close().await;

    let subject = Subject::open(harness).await;
    assert_eq!(
        subject.append(keyed(&flow, &["a"], LONG)).await,
        AppendOutcome::Duplicate(id)
    );
    assert_eq!(subject.ids(&Filter::flow(tenant(), flow)).await.len(), 2);
    subject.close().await;
}

pub async fn knows_a_repeat_within_one_group(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let first = keyed(&flow, &["a"], LONG);
    let id = first.id.clone();
    let mut sent = vec![first];
    sent.extend((0..30).map(|_| keyed(&flow, &["a"], LONG)));
    let appended = subject.append_all(sent).await;
    assert_eq!(appended[0], AppendOutcome::Waiting);
    assert_eq!(appended[1..], vec![AppendOutcome::Duplicate(id); 30]);
    assert_eq!(subject.ids(&Filter::flow(tenant(), flow)).await.len(), 1);
    subject.close().await;
}

pub async fn stores_a_repeat_that_is_meant_and_leaves_the_key_to_its_holder(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let meant = |key: &str| {
        let mut message = keyed(&flow, &[key], LONG);
        let dedupe = std::mem::take(&mut message.dedupe_keys);
        message.dedupe_keys = dedupe
            .into_iter()
            .map(DedupeKey::accepting_repeats)
            .collect();
        message
    };
    let first = keyed(&flow, &["a"], LONG);
    let id = first.id.clone();
    assert_eq!(subject.append(first).await, AppendOutcome::Waiting);
    assert_eq!(subject.append(meant("a")).await, AppendOutcome::Waiting);
    assert_eq!(
        subject.append(keyed(&flow, &["a"], LONG)).await,
        AppendOutcome::Duplicate(id)
    );

    // A key that no message holds is taken, also where several messages come at once.
    let sent = vec![
        meant("b"),
        meant("b"),
        keyed(&flow, &["b"], LONG),
        keyed(&flow, &["c"], LONG),
        meant("c"),
    ];
    let ids: Vec<_> = sent.iter().map(|message| message.id.clone()).collect();
    let appended = subject.append_all(sent).await;
    assert_eq!(appended[0], AppendOutcome::Waiting);
    assert_eq!(appended[1], AppendOutcome::Waiting);
    assert_eq!(appended[2], AppendOutcome::Duplicate(ids[0].clone()));
    assert_eq!(appended[3], AppendOutcome::Waiting);
    assert_eq!(appended[4], AppendOutcome::Waiting);
    for (key, holder) in [("b", &ids[0]), ("c", &ids[3])] {
        assert_eq!(
            subject.append(keyed(&flow, &[key], LONG)).await,
            AppendOutcome::Duplicate(holder.clone()),
            "{key}"
        );
    }
    subject.close().await;
}

pub async fn forgets_a_key_after_its_time(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let day = Duration::from_secs(86_400);
    let first = keyed(&flow, &["a"], day);
    let mut within = keyed(&flow, &["a"], day);
    within.received_at = first.received_at.after(day - Duration::from_millis(1));
    let mut later = keyed(&flow, &["a"], day);
    later.received_at = first.received_at.after(day);
    let mut much_later = keyed(&flow, &["a"], day);
    much_later.received_at = later.received_at.after(day - Duration::from_millis(1));
    let first_id = first.id.clone();
    let later_id = later.id.clone();
    assert_eq!(subject.append(first).await, AppendOutcome::Waiting);
    assert_eq!(
        subject.append(within).await,
        AppendOutcome::Duplicate(first_id)
    );
    assert_eq!(subject.append(later).await, AppendOutcome::Waiting);
    assert_eq!(
        subject.append(much_later).await,
        AppendOutcome::Duplicate(later_id)
    );
    subject.close().await;
}

pub async fn keeps_the_keys_of_flows_apart(harness: &dyn Harness) {
    let one = FlowId::generate();
    let other = FlowId::generate();
    let subject = Subject::open(harness).await;
    assert_eq!(
        subject.append(keyed(&one, &["a"], LONG)).await,
        AppendOutcome::Waiting
    );
    assert_eq!(
        subject.append(keyed(&other, &["a"], LONG)).await,
        AppendOutcome::Waiting
    );
    subject.close().await;
}
