//! Operations of retention, with a stub in place of the writer.

use std::sync::Arc;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use super::File;
use crate::prelude::*;
use crate::sqlite::inbox::{Inbox, ReplyGuard, Wakeup};
use crate::sqlite::operation::{Effect, Work};
use crate::sqlite::writer_handle::WriterHandle;
use crate::sqlite::{Options, retain};
use crate::{Error, Result, SavedPlan};

/// Returns the operations that concern plans, in order.
async fn operations(flush: Result<()>) -> Vec<&'static str> {
    let file = File::new();
    let flow_id = FlowId::generate();
    let log = file.open_with(Options::default()).await;
    let plan = |version| SavedPlan {
        flow_id: flow_id.clone(),
        version,
        body: Bytes::from_static(b"plan"),
    };
    log.save_plans(vec![plan(1), plan(2)]).await.unwrap();
    log.close().await;
    let inbox = Arc::new(Inbox::default());
    let handle = WriterHandle::new(Arc::clone(&inbox), 10, 1_000);
    let writer = tokio::task::spawn_blocking(move || write(&inbox, &flush));
    let reader = Options::default()
        .open_read_pool(&file.path, 1)
        .await
        .unwrap();
    retain::retain(&reader, &handle, Timestamp::now())
        .await
        .unwrap();
    reader.close().await;
    drop(handle);
    writer.await.unwrap()
}

fn write(inbox: &Arc<Inbox>, flush: &Result<()>) -> Vec<&'static str> {
    let mut asked = Vec::new();
    let mut taken = Vec::new();
    while inbox.take(&mut taken, None) == Wakeup::Operations {
        for operation in taken.drain(..) {
            let result = match operation.work {
                Work::Flush => {
                    asked.push("flush");
                    flush.clone().map(|()| Effect::Done)
                }
                Work::Task(task) if task.is_deletion() => Ok(Effect::Affected(0)),
                Work::Task(_) => {
                    asked.push("drop");
                    Ok(Effect::Done)
                }
                _ => Ok(Effect::Done),
            };
            let reply = operation.reply.unwrap();
            reply.send(ReplyGuard::new(result, Arc::clone(inbox)));
        }
    }
    asked
}

#[tokio::test]
async fn plans_are_dropped_only_once_the_tables_have_every_message() {
    assert_eq!(operations(Ok(())).await, ["flush", "drop"]);
    assert_eq!(
        operations(Err(Error::Unavailable("no room".to_owned()))).await,
        ["flush"]
    );
}
