//! Promises about lists.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status};
use kanat_model::page::Page;

use super::Harness;
use super::subject::{Subject, message, settlement, tenant};
use crate::{
    Cursor, Filter, LeasedWriteOutcome, MessagePage, NewMessage, Outcome, Placement, Position,
    Tenant,
};

/// Puts messages in, one second apart; gives their ids, newest first.
async fn send(subject: &Subject, flow: &FlowId, count: usize) -> Vec<MessageId> {
    let begin = Timestamp::now().before(Duration::from_secs(1_000));
    let at =
        |number: usize| begin.after(Duration::from_secs(u64::try_from(number).expect("small")));
    let sent: Vec<_> = (0..count)
        .map(|n| NewMessage {
            received_at: at(n),
            ..message(flow)
        })
        .collect();
    let ids = sent
        .iter()
        .rev()
        .map(|message| message.id.clone())
        .collect();
    subject.append_all(sent).await;
    ids
}

async fn page(subject: &Subject, filter: &Filter, limit: u32, offset: u32) -> MessagePage {
    subject
        .log
        .list(filter, Position::Page(Page { limit, offset }))
        .await
        .expect("the log reads")
}

fn ids(page: &MessagePage) -> Vec<MessageId> {
    page.messages
        .iter()
        .map(|message| message.id.clone())
        .collect()
}

pub async fn lists_newest_first_with_a_total(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = send(&subject, &flow, 7).await;
    send(&subject, &FlowId::generate(), 3).await;
    let filter = Filter::flow(tenant(), flow.clone());
    let first = page(&subject, &filter, 3, 0).await;
    assert_eq!(ids(&first), sent[..3].to_vec());
    assert_eq!(first.total, 7);
    assert!(first.next.is_some());
    let last = page(&subject, &filter, 3, 6).await;
    assert_eq!(ids(&last), sent[6..].to_vec());
    assert_eq!(last.total, 7);
    assert_eq!(last.next, None);
    let exact = page(&subject, &filter, 7, 0).await;
    assert_eq!(exact.messages.len(), 7);
    assert_eq!(exact.next, None);
    let beyond = page(&subject, &filter, 3, 100).await;
    assert_eq!(ids(&beyond), Vec::new());
    assert_eq!(beyond.total, 7);
    let foreign = Tenant {
        account_id: AccountId::new("acc_2"),
        ..tenant()
    };
    let staging = Tenant {
        environment_id: EnvironmentId::new("env_2"),
        ..tenant()
    };
    for other in [foreign, staging] {
        let none = page(&subject, &Filter::flow(other, flow.clone()), 3, 0).await;
        assert_eq!(ids(&none), Vec::new());
        assert_eq!(none.total, 0);
    }
    subject.close().await;
}

pub async fn filters_a_list(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = send(&subject, &flow, 5).await;
    let all = Filter::flow(tenant(), flow.clone());
    let dead = subject.dead_letter(message(&flow)).await.message_id;

    let status = Filter {
        statuses: vec![Status::DeadLetter],
        ..all.clone()
    };
    assert_eq!(subject.ids(&status).await, std::slice::from_ref(&dead));
    let status = Filter {
        statuses: vec![Status::Received],
        ..all.clone()
    };
    assert_eq!(subject.ids(&status).await, sent);
    let status = Filter {
        statuses: vec![Status::Delivered],
        ..all.clone()
    };
    assert!(subject.ids(&status).await.is_empty());

    let third = subject.get(&sent[2]).await.received_at;
    let since = Filter {
        since: Some(third),
        ..all.clone()
    };
    assert_eq!(
        subject.ids(&since).await,
        [vec![dead], sent[..3].to_vec()].concat()
    );
    let until = Filter {
        until: Some(third),
        ..all.clone()
    };
    assert_eq!(subject.ids(&until).await, sent[3..]);
    let between = Filter {
        since: Some(third),
        until: Some(Timestamp::from_millis(third.as_millis() + 1)),
        ..all.clone()
    };
    assert_eq!(subject.ids(&between).await, sent[2..3]);

    let some = Filter {
        ids: vec![sent[4].clone(), sent[0].clone(), MessageId::generate()],
        ..all.clone()
    };
    assert_eq!(subject.ids(&some).await, [sent[0].clone(), sent[4].clone()]);
    let both = Filter {
        ids: vec![sent[0].clone()],
        statuses: vec![Status::DeadLetter],
        ..all
    };
    assert!(subject.ids(&both).await.is_empty());
    subject.close().await;
}

pub async fn lists_several_statuses_in_one_order(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = send(&subject, &flow, 3).await;
    let held = NewMessage {
        place: Placement::Held,
        received_at: Timestamp::now(),
        ..message(&flow)
    };
    let held_id = held.id.clone();
    subject.append(held).await;
    let dead = subject.dead_letter(message(&flow)).await.message_id;
    let all = Filter::flow(tenant(), flow.clone());
    let waiting = Filter {
        statuses: Status::WAITING.to_vec(),
        ..all.clone()
    };
    let expected = [vec![held_id.clone()], sent.clone()].concat();
    assert_eq!(subject.ids(&waiting).await, expected);
    let first = page(&subject, &waiting, 2, 1).await;
    assert_eq!(ids(&first), expected[1..3]);
    assert_eq!(first.total, 4);
    let position = Position::After {
        cursor: first.next.expect("there is more"),
        limit: 2,
    };
    let rest = subject
        .log
        .list(&waiting, position)
        .await
        .expect("the log reads");
    assert_eq!(ids(&rest), expected[3..]);
    assert_eq!(rest.next, None);
    let some = Filter {
        statuses: vec![Status::DeadLetter, Status::Held],
        ids: vec![dead.clone(), sent[0].clone()],
        ..all
    };
    assert_eq!(subject.ids(&some).await, [dead]);
    let found = Filter {
        search: Some(held_id.as_str().to_owned()),
        ..waiting
    };
    assert_eq!(subject.ids(&found).await, [held_id]);
    subject.close().await;
}

pub async fn searches_payload_id_and_error_as_plain_text(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let body = |text: &'static str| NewMessage {
        raw_body: Bytes::from_static(text.as_bytes()),
        ..message(&flow)
    };
    let percent = subject.lease(body(r#"{"discount":"50%_off"}"#)).await;
    let plain = subject
        .lease(body(
            r#"{"discount":"50 euros off","buyer":"Zoe M\\u00fcller"}"#,
        ))
        .await;
    let mut parsed = body("a=1");
    parsed.payload = Some(Bytes::from_static(br#"{"city":"Ankara"}"#));
    let parsed = subject.lease(parsed).await;
    let quoted = subject
        .lease(body(
            r#"{"text":"say \"q\" now, ÄPFEL","buyer":"J. M\u00fcller","path":"a\\b"}"#,
        ))
        .await;
    let mut failed = settlement(&plain, 1, Outcome::DeadLetter);
    failed.failure = Some(Failure {
        kind: ErrorKind::Mapping,
        message: "cannot make a number of \"abc\"".to_owned(),
        field: Some("lines[0].qty".to_owned()),
        expression: None,
    });
    assert_eq!(
        subject.log.settle(&failed).await.expect("it is taken"),
        LeasedWriteOutcome::Done
    );

    let search = |text: &str| Filter {
        search: Some(text.to_owned()),
        ..Filter::flow(tenant(), flow.clone())
    };
    let cases = [
        ("50%_", vec![&percent]),
        ("5_", vec![]),
        ("%", vec![&percent]),
        ("OFF", vec![&plain, &percent]),
        ("ankara", vec![&parsed]),
        ("a=1", vec![]),
        ("number of \"abc\"", vec![&plain]),
        ("lines[0].qty", vec![&plain]),
        ("\\u00fc", vec![&plain, &quoted]),
        ("j. müller", vec![&quoted]),
        ("J. MÜLLER", vec![&quoted]),
        ("say \"q\" now", vec![&quoted]),
        ("äpfel", vec![&quoted]),
        ("a\\b", vec![&quoted]),
        ("[a-z]*", vec![]),
        ("' OR 1=1 --", vec![]),
        (&parsed.message_id.as_str()[8..], vec![&parsed]),
    ];
    for (text, expected) in cases {
        let mut found = subject.ids(&search(text)).await;
        let mut expected: Vec<_> = expected
            .into_iter()
            .map(|lease| lease.message_id.clone())
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{text:?}");
    }
    let long = subject
        .log
        .list(
            &search(&"a".repeat(2_000)),
            Position::Page(Page::new(None, None)),
        )
        .await;
    assert!(matches!(long, Err(crate::Error::State(_))));
    subject.close().await;
}

pub async fn keeps_a_cursor_while_messages_arrive(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = send(&subject, &flow, 9).await;
    let filter = Filter::flow(tenant(), flow.clone());
    let mut found = Vec::new();
    let mut part = page(&subject, &filter, 4, 0).await;
    loop {
        found.extend(ids(&part));
        let Some(cursor) = part.next else { break };
        subject.append(message(&flow)).await;
        let cursor = Cursor::parse(&cursor.to_text()).expect("it reads back");
        let position = Position::After { cursor, limit: 4 };
        part = subject
            .log
            .list(&filter, position)
            .await
            .expect("the log reads");
    }
    assert_eq!(found, sent);
    assert_eq!(part.total, 11);

    // Messages of one instant have their order too.
    let flow = FlowId::generate();
    let at = Timestamp::now();
    subject
        .append_all(
            (0..6)
                .map(|_| NewMessage {
                    received_at: at,
                    ..message(&flow)
                })
                .collect(),
        )
        .await;
    let filter = Filter::flow(tenant(), flow);
    let mut seen = Vec::new();
    let mut part = page(&subject, &filter, 1, 0).await;
    while let Some(cursor) = part.next {
        seen.extend(ids(&part));
        part = subject
            .log
            .list(&filter, Position::After { cursor, limit: 1 })
            .await
            .expect("the log reads");
    }
    seen.extend(ids(&part));
    assert_eq!(seen, subject.ids(&filter).await);
    subject.close().await;
}

pub async fn ends_a_page_that_would_grow_too_large(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let half = usize::try_from(MessagePage::BYTES / 2).expect("it is addressed");
    for bytes in [half + 1, half, 3 * half, 2, 2] {
        let raw_body = Bytes::from(format!("\"{}\"", "x".repeat(bytes - 2)));
        subject
            .append(NewMessage {
                raw_body,
                ..message(&flow)
            })
            .await;
    }
    let filter = Filter::flow(tenant(), flow);
    let mut pages = Vec::new();
    let mut part = page(&subject, &filter, 50, 0).await;
    loop {
        assert_eq!(part.total, 5);
        pages.push(
            part.messages
                .iter()
                .map(|message| message.payload.len())
                .collect::<Vec<_>>(),
        );
        let Some(cursor) = part.next else { break };
        part = subject
            .log
            .list(&filter, Position::After { cursor, limit: 50 })
            .await
            .expect("the log reads");
    }
    assert_eq!(
        pages,
        [vec![2, 2], vec![3 * half], vec![half], vec![half + 1]]
    );
    subject.close().await;
}

pub async fn shows_nothing_to_another_tenant(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let id = subject.dead_letter(message(&flow)).await.message_id;
    let others = [
        Tenant {
            account_id: AccountId::new("acc_2"),
            ..tenant()
        },
        Tenant {
            environment_id: EnvironmentId::new("env_2"),
            ..tenant()
        },
    ];
    for other in others {
        assert!(
            subject
                .ids(&Filter::flow(other.clone(), flow.clone()))
                .await
                .is_empty()
        );
        let some = Filter {
            ids: vec![id.clone()],
            ..Filter::flow(other.clone(), flow.clone())
        };
        assert!(subject.ids(&some).await.is_empty());
        assert!(
            subject
                .log
                .get(&other, &id)
                .await
                .expect("the log reads")
                .is_none()
        );
        assert!(
            subject
                .log
                .content(&other, &id)
                .await
                .expect("the log reads")
                .is_none()
        );
        assert!(
            subject
                .log
                .trace(&other, &id)
                .await
                .expect("the log reads")
                .is_empty()
        );
        assert!(matches!(
            subject.log.retry(&other, &id, None).await,
            Err(crate::Error::NotFound(_))
        ));
        assert!(matches!(
            subject.log.discard(&other, &id).await,
            Err(crate::Error::NotFound(_))
        ));
    }
    assert_eq!(subject.get(&id).await.status, Status::DeadLetter);
    subject.close().await;
}
