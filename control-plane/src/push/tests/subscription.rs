//! Subscriptions of nodes to the feeds of environments.

use std::pin::pin;
use std::sync::Arc;

use kanat_proto::node::v1::EnvironmentState;
use tokio::sync::watch;

use super::Control;
use crate::push::feed::Feed;
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
        assert_eq!(subscription.begin(), created);
    }
}
