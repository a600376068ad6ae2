//! A full disk, a full queue, and a file that another program holds.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, NodeId};
use kanat_model::message::Status;

use super::File;
use crate::contract::message;
use crate::prelude::*;
use crate::sqlite::{Options, SqliteLog};
use crate::{
    AppendOutcome, Error, Filter, Lease, LeasedWriteOutcome, NewMessage, Outcome, Placement,
    Settlement, Tenant,
};

const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);

async fn filled(log: &Arc<SqliteLog>, flow: &FlowId, boot: &BootId) -> Vec<Lease> {
    let body = Bytes::from(format!("{:?}", "x".repeat(3_000)));
    let mut leases = Vec::new();
    loop {
        let place = Placement::Leased(boot.clone());
        let sent = (0..20).map(|_| NewMessage {
            raw_body: body.clone(),
            place: place.clone(),
            ..message(flow)
        });
        let results = join_all(sent.map(|message| log.append(message))).await;
        for result in &results {
            match result {
                Ok(AppendOutcome::Leased(lease)) => leases.push(lease.clone()),
                Ok(other) => panic!("{other:?}"),
                Err(error) => assert!(matches!(error, Error::Disk(_)), "{error}"),
            }
        }
        if results.iter().any(Result::is_err) {
            return leases;
        }
    }
}

fn delivered(lease: &Lease) -> Settlement {
    Settlement {
        lease: lease.clone(),
        at: Timestamp::now(),
        attempt: 1,
        outcome: Outcome::Delivered,
        output: None,
        failure: None,
        trace: Vec::new(),
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_comes_in_and_loses_nothing() {
    let file = File::new();
    let log = file
        .open_with(Options {
            max_pages: Some(150),
            ..Options::default()
        })
        .await;
    let flow = FlowId::generate();
    let boot = BootId::generate();
    log.open_lease(&boot, &NodeId::generate(), HOUR)
        .await
        .unwrap();
    let leases = filled(&log, &flow, &boot).await;
    assert!(leases.len() > 50, "{} messages went in", leases.len());
    // A message that did not fit in a group does not fit alone either.
    assert!(matches!(
        log.append(sized(&flow, 500_000)).await,
        Err(Error::Disk(_))
    ));

    // Accepted messages are listed, and refused ones are not.
    let sample = message(&flow);
    let tenant = Tenant {
        account_id: sample.account_id,
        environment_id: sample.environment_id,
    };
    let all = Filter::flow(tenant, flow.clone());
    let page = crate::Position::Page(kanat_model::page::Page::new(Some(1), None));
    assert_eq!(
        log.list(&all, page).await.unwrap().total,
        u64::try_from(leases.len()).unwrap()
    );

    // Settlements succeed as far as there is room. The others fail, and can be tried again.
    let mut ended = 0;
    let mut open = Vec::new();
    for lease in &leases {
        match log.settle(&delivered(lease)).await {
            Ok(settled) => {
                assert_eq!(settled, LeasedWriteOutcome::Done);
                ended += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::Unavailable(_)), "{error}");
                open.push(lease);
            }
        }
    }
    assert!(ended > 0, "there is room in the pages for some settlements");
    // Retention makes room, and the log goes on without a restart.
    assert_eq!(
        log.retain(Timestamp::now().after(HOUR)).await.unwrap(),
        ended
    );
    for lease in &open {
        assert_eq!(
            log.settle(&delivered(lease)).await.unwrap(),
            LeasedWriteOutcome::Done
        );
    }
    assert_eq!(
        log.append(sized(&flow, 50_000)).await.unwrap(),
        AppendOutcome::Waiting
    );
    let status = Filter {
        statuses: vec![Status::Delivered],
        ..all.clone()
    };
    let left = u64::try_from(open.len()).unwrap();
    assert_eq!(log.list(&status, page).await.unwrap().total, left);
    assert_eq!(log.list(&all, page).await.unwrap().total, left + 1);
    log.close().await;
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_finishes_what_it_took() {
    let file = File::new();
    let log = file
        .open_with(Options {
            max_queued_operations: 10,
            ..Options::default()
        })
        .await;
    let flow = FlowId::generate();
    let mut other = file.connect().await;
    // The writer waits until the other program unlocks the file.
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut other)
        .await
        .unwrap();
    let mut taken = Vec::new();
    let full = loop {
        let mut append = Box::pin({
            let log = log.clone();
            let message = message(&flow);
            async move { log.append(message).await }
        });
        match futures::poll!(append.as_mut()) {
            std::task::Poll::Pending => taken.push(append),
            std::task::Poll::Ready(result) => break result,
        }
    };
    assert!(matches!(full, Err(Error::Full)));
    assert!(taken.len() >= 10);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    for result in join_all(taken).await {
        assert_eq!(result.unwrap(), AppendOutcome::Waiting);
    }
    assert_eq!(
        log.append(message(&flow)).await.unwrap(),
        AppendOutcome::Waiting
    );
    log.close().await;
}

#[tokio::test]
async fn a_queue_full_of_bytes_refuses_too() {
    let file = File::new();
    let log = file
        .open_with(Options {
            max_queued_bytes: 100_000,
            ..Options::default()
        })
        .await;
    let flow = FlowId::generate();
    // A message larger than the limit, while nothing else waits.
    assert_eq!(
        log.append(sized(&flow, 200_000)).await.unwrap(),
        AppendOutcome::Waiting
    );
    let results = join_all((0..20).map(|_| log.append(sized(&flow, 10_000)))).await;
    assert!(
        results
            .iter()
            .any(|result| matches!(result, Err(Error::Full)))
    );
    assert!(results.iter().filter(|result| result.is_ok()).count() >= 9);
    assert_eq!(
        log.append(sized(&flow, 90_000)).await.unwrap(),
        AppendOutcome::Waiting
    );
    log.close().await;
}

fn sized(flow: &FlowId, bytes: usize) -> NewMessage {
    NewMessage {
        raw_body: Bytes::from(vec![b'x'; bytes]),
        ..message(flow)
    }
}
