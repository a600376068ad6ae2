//! Subscriptions of nodes to the feeds of environments.

use std::pin::pin;
use std::sync::Arc;

use kanat_model::Timestamp;
use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1::EnvironmentState;
use kanat_store::environment::{self, Environment};
use tokio::sync::watch;
use tokio::task::yield_now;
use tonic::Code;

use super::Control;
use crate::push::feed::Feed;
use crate::push::follow;
use crate::push::session::subscription::Subscription;

#[tokio::test]
async fn a_node_that_is_ahead_waits_for_a_read_that_begins_after_its_subscription() {
    let control = Control::start().await;
    let generation = control.put("flow/1", "a").await;
    let any_feed_read = watch::Sender::default();
    let mut reads = any_feed_read.subscribe();
    let feed = Arc::new(Feed::new(
        control.environment.clone(),
        control.hub.context.source.clone(),
        Arc::default(),
        any_feed_read,
    ));
    let mut run = pin!(feed.run());
    assert!(futures::poll!(run.as_mut()).is_pending());
    let claimed = EnvironmentState {
        generation: generation + 1,
        ..EnvironmentState::default()
    };
    let mut subscription = Subscription::open(Arc::clone(&feed), Some(claimed));
    assert!(feed.state().set.is_none(), "the first read has not ended");
    for created in [false, true] {
        tokio::select! {
            biased;
            () = &mut run => panic!("a feed has no end"),
            read = reads.changed() => read.unwrap(),
        }
        assert!(feed.state().set.is_some());
        assert_eq!(subscription.init_sync(), created);
    }
}

#[tokio::test]
async fn the_feed_of_a_deleted_environment_ends_once_no_stream_follows_it() {
    let control = Control::start().await;
    let context = &control.hub.context;
    let account = control.account().await;
    let canary = Environment::new(account, "canary".to_owned(), Timestamp::now());
    let mut tx = control.store.begin().await.unwrap();
    environment::insert(&mut tx, &canary).await.unwrap();
    tx.commit().await.unwrap();
    let feed = context.feed(&canary.id);
    let ended = Arc::downgrade(&feed);
    follow::read(context).await.unwrap();
    assert!(context.started_feed(&canary.id).is_some());

    let mut tx = control.store.begin().await.unwrap();
    environment::delete(&mut tx, &canary.id, Timestamp::now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    follow::read(context).await.unwrap();
    assert!(context.started_feed(&canary.id).is_some());
    drop(feed);
    follow::read(context).await.unwrap();
    assert!(context.started_feed(&canary.id).is_none());
    while ended.strong_count() > 0 {
        yield_now().await;
    }
}

#[tokio::test]
async fn a_stream_ends_when_new_environments_cannot_be_read_so_that_the_node_asks_again() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    control.store.close().await;
    control.hub.context.environments.send_modify(|known| {
        known.insert(EnvironmentId::generate(), "canary".to_owned());
    });
    let ended = node.pushed().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
}
