//! What was answered while the tables take nothing, because another program holds the file.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kanat_model::id::FlowId;

use super::File;
use super::intake::{held, locked, unlock};
use crate::contract::{Subject, message, ordered, tenant};
use crate::{Error, Filter, MessageLog, NewMessage, Place};

/// How long the writer waits for another program, once.
const PATIENCE: Duration = Duration::from_secs(5);

async fn total(log: &dyn MessageLog, flow: &FlowId) -> Result<u64, Error> {
    let first = crate::Position::Page(kanat_model::page::Page::new(Some(1), None));
    log.list(&Filter::flow(tenant(), flow.clone()), first).await.map(|page| page.total)
}

fn large(flow: &FlowId, bytes: usize) -> NewMessage {
    NewMessage { raw_body: Bytes::from(vec![b'x'; bytes]), ..message(flow) }
}

#[tokio::test]
async fn another_program_that_keeps_the_file_is_waited_for_once() {
    let file = File::new();
    let (subject, flow) = (Subject::open(&file).await, FlowId::generate());
    let other = locked(&file).await;
    held(&subject, &flow, 2).await;
    assert!(matches!(total(&*subject.log, &flow).await, Err(Error::Unavailable(_))));

    let mut waited = Duration::ZERO;
    for _ in 0..3 {
        let begun = Instant::now();
        assert!(matches!(subject.log.append(ordered(&flow, "key")).await, Err(Error::Unavailable(_))));
        assert!(matches!(total(&*subject.log, &flow).await, Err(Error::Unavailable(_))));
        waited += begun.elapsed();
    }
    // The journal takes what it has room for, and then nothing more comes in.
    let mut taken = 2;
    let place = Place::Leased(subject.boot.clone());
    let refused = loop {
        let begun = Instant::now();
        match subject.log.append(NewMessage { place: place.clone(), ..large(&flow, 1_000_000) }).await {
            Ok(_) => taken += 1,
            Err(error) => {
                waited += begun.elapsed();
                break error;
            }
        }
    };
    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    assert!(taken > 30);
    assert!(waited < PATIENCE, "{waited:?}");

    unlock(other).await;
    subject.append(ordered(&flow, "key")).await;
    assert_eq!(total(&*subject.log, &flow).await.unwrap(), taken + 1);
    subject.close().await;
}
