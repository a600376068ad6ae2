//! Promises about the limits of keys.

use std::time::Duration;

use futures::future::join_all;
use kanat_model::Timestamp;
use kanat_model::id::{ConsumerKeyId, InstanceId};
use kanat_rate_limit::{
    Exchange, ExchangeOutcome, Key, MICROTOKENS_PER_TOKEN, Rate, ShareGrant, ShareRequest,
};

use super::Harness;
use super::subject::Subject;

fn exchange(subject: &Subject, number: i64, requests: Vec<ShareRequest>) -> Exchange {
    let node = subject.node.clone();
    let owner = subject.boot.clone();
    Exchange {
        node,
        owner,
        owner_age: Duration::ZERO,
        number,
        requests,
    }
}

async fn grants(subject: &Subject, number: i64, requests: Vec<ShareRequest>) -> Vec<ShareGrant> {
    let asked = exchange(subject, number, requests);
    match subject.log.exchange(&asked).await.expect("the log answers") {
        ExchangeOutcome::Done { grants, .. } => grants,
        ExchangeOutcome::Repeated => panic!("number {number} was not taken before"),
    }
}

async fn grant(subject: &Subject, number: i64, request: ShareRequest) -> ShareGrant {
    grants(subject, number, vec![request]).await.remove(0)
}

/// Calls of a key, of which so many a day are let in.
fn calls(key: &ConsumerKeyId, per_day: u64, calls: u32) -> ShareRequest {
    ShareRequest {
        waiting_calls: calls,
        wanted: Some(0),
        ..ShareRequest::new(key.clone(), Rate::NONE, per_day)
    }
}

pub async fn never_lets_in_more_than_a_key_allows(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let mut nodes = vec![subject.beside().await, subject.beside().await];
    nodes.push(subject);
    let key = ConsumerKeyId::generate();
    let requests = nodes.iter().map(async |node| {
        let mut admitted = 0;
        for number in 1..=20 {
            admitted += grant(node, number, calls(&key, 100, 3)).await.admitted;
        }
        admitted
    });
    assert_eq!(join_all(requests).await.iter().sum::<u32>(), 100);
    nodes[0].close().await;
}

pub async fn gives_the_bucket_of_a_key_to_one_that_is_alone_and_shares_it_among_many(
    harness: &dyn Harness,
) {
    let subject = Subject::open(harness).await;
    let key = ConsumerKeyId::generate();
    let request = |held, wanted| ShareRequest {
        held,
        wanted,
        ..ShareRequest::new(key.clone(), Rate::per_second(10), 0)
    };
    let alone = grant(
        &subject,
        1,
        ShareRequest {
            waiting_calls: 1,
            ..request(0, Some(1))
        },
    )
    .await;
    assert_eq!(alone.admitted, 1);
    assert_eq!(alone.share, 10);
    assert_eq!(alone.microtokens, 9 * MICROTOKENS_PER_TOKEN);
    let other = subject.beside().await;
    assert_eq!(
        grant(
            &other,
            1,
            ShareRequest {
                waiting_calls: 1,
                ..request(0, Some(5))
            }
        )
        .await
        .admitted,
        0
    );
    assert_eq!(grant(&subject, 2, request(10, Some(5))).await.target, 5);
    let back = ShareRequest {
        returned_microtokens: 4 * MICROTOKENS_PER_TOKEN,
        ..request(5, Some(5))
    };
    assert_eq!(grant(&subject, 3, back).await.share, 5);
    assert_eq!(
        grant(
            &other,
            2,
            ShareRequest {
                waiting_calls: 1,
                ..request(0, Some(5))
            }
        )
        .await
        .admitted,
        1
    );
    subject.close().await;
}

pub async fn takes_an_exchange_that_is_sent_again_once(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let key = ConsumerKeyId::generate();
    let used_at = Timestamp::from_millis(1_769_860_800_000);
    let request = ShareRequest {
        used: 3,
        last_used_at: Some(used_at),
        ..calls(&key, 10, 4)
    };
    assert_eq!(grant(&subject, 7, request.clone()).await.day_left, 6);
    for number in [7, 6] {
        let again = subject
            .log
            .exchange(&exchange(&subject, number, vec![request.clone()]))
            .await;
        assert_eq!(again.expect("the log answers"), ExchangeOutcome::Repeated);
    }
    let usage = subject
        .log
        .key_usage(std::slice::from_ref(&key))
        .await
        .expect("the log answers");
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].request_count, 3);
    assert_eq!(usage[0].last_used_at, used_at);
    assert_eq!(grant(&subject, 8, calls(&key, 10, 0)).await.day_left, 6);
    subject.close().await;
}

pub async fn adds_up_how_often_keys_were_used(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let key = ConsumerKeyId::generate();
    let unlimited = ConsumerKeyId::generate();
    let unused = ConsumerKeyId::generate();
    let used = |key: &ConsumerKeyId, used, at| ShareRequest {
        used,
        last_used_at: Some(Timestamp::from_millis(at)),
        ..ShareRequest::new(key.clone(), Rate::NONE, 0)
    };
    grants(
        &subject,
        1,
        vec![used(&key, 5, 2_000), used(&unlimited, 1, 1_000)],
    )
    .await;
    grants(&other, 1, vec![used(&key, 7, 1_500)]).await;
    grants(&other, 2, vec![calls(&unused, 10, 0)]).await;
    let keys = [
        unused,
        key.clone(),
        unlimited.clone(),
        ConsumerKeyId::new("it's \"nobody's\""),
    ];
    let mut usage = subject.log.key_usage(&keys).await.expect("the log answers");
    usage.sort_by_key(|of| std::cmp::Reverse(of.request_count));
    let found: Vec<_> = usage
        .iter()
        .map(|of| (&of.key, of.request_count, of.last_used_at.as_millis()))
        .collect();
    assert_eq!(found, [(&key, 12, 2_000), (&unlimited, 1, 1_000)]);
    subject.close().await;
}

pub async fn counts_on_after_a_reopening(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let key = ConsumerKeyId::generate();
    assert_eq!(grant(&subject, 1, calls(&key, 10, 4)).await.admitted, 4);
    // It dies without a word.
    subject.close().await;
    let subject = Subject::open_as(harness, subject.node.clone()).await;
    assert_eq!(grant(&subject, 1, calls(&key, 10, 9)).await.admitted, 6);
    subject.close().await;
}

pub async fn knows_how_many_nodes_there_are(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let nodes = async || match subject
        .log
        .exchange(&exchange(&subject, 0, Vec::new()))
        .await
    {
        Ok(ExchangeOutcome::Done { nodes, now, .. }) => {
            assert!(now.as_millis() > 1_700_000_000_000, "{now}");
            nodes
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(nodes().await, 1);
    let other = subject.beside().await;
    assert_eq!(nodes().await, 2);
    subject
        .log
        .hand_back(&other.boot)
        .await
        .expect("it is taken");
    assert_eq!(nodes().await, 1);
    subject.close().await;
}

pub async fn forgets_connectors_that_nobody_calls(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let idle = InstanceId::generate();
    let busy = InstanceId::generate();
    let key = ConsumerKeyId::generate();
    let long_ago = Some(Timestamp::now().before(Duration::from_secs(3 * 24 * 60 * 60)));
    let call = |key: Key, last_used_at| ShareRequest {
        waiting_calls: 1,
        wanted: None,
        last_used_at,
        ..ShareRequest::new(key, Rate::from_calls_per_second(0.01), 0)
    };
    let calls = || {
        [
            (idle.clone().into(), long_ago),
            (busy.clone().into(), Some(Timestamp::now())),
            (key.clone().into(), long_ago),
        ]
        .map(|(key, at)| call(key, at))
        .to_vec()
    };
    let admitted = |grants: Vec<ShareGrant>| {
        grants
            .iter()
            .map(|grant| grant.admitted)
            .collect::<Vec<_>>()
    };
    assert_eq!(admitted(grants(&subject, 1, calls()).await), [1, 1, 1]);
    assert_eq!(admitted(grants(&subject, 2, calls()).await), [0, 0, 0]);
    subject
        .log
        .retain(Timestamp::from_millis(0))
        .await
        .expect("it is taken");
    assert_eq!(
        admitted(grants(&subject, 3, calls()).await),
        [1, 0, 0],
        "a bucket that is not known is full"
    );
    subject.close().await;
}
