//! A store that went back to a backup while its generations are known already.

use std::sync::Arc;

use super::Control;
use crate::push::set::PlanSet;

/// Contents of a set, by id.
fn contents(set: &PlanSet) -> Vec<(&str, &str)> {
    let mut all: Vec<_> = set
        .iter()
        .map(|(id, entry)| (id, std::str::from_utf8(&entry.body).unwrap()))
        .collect();
    all.sort_unstable();
    all
}

/// A set of generation 3, and a control plane on a backup that was made at generation 1.
async fn lagging() -> (Arc<PlanSet>, Control) {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    let (running, restored) = control.forked().await;
    running.put("flow/1", "b").await;
    running.put("flow/2", "x").await;
    (running.read_since(None).await.unwrap(), restored)
}

#[tokio::test]
async fn an_older_store_is_read_anew_under_another_epoch() {
    let (held, restored) = lagging().await;
    let read = restored.read_since(Some(&held)).await.unwrap();
    assert_eq!(read.generation, 1);
    assert_eq!(contents(&read), vec![("flow/1", "a")]);
    assert_ne!(read.epoch, held.epoch);
    assert!(
        restored.read_since(Some(&read)).await.is_none(),
        "and once only"
    );
}

#[tokio::test]
async fn the_same_generation_with_other_contents_is_noticed() {
    let (held, restored) = lagging().await;
    restored.put("flow/1", "c").await;
    restored.put("flow/3", "y").await;
    let read = restored.read_since(Some(&held)).await.unwrap();
    assert_eq!(read.generation, held.generation);
    assert_eq!(contents(&read), vec![("flow/1", "c"), ("flow/3", "y")]);
    assert_ne!(read.epoch, held.epoch);
}

#[tokio::test]
async fn a_later_generation_of_another_past_is_noticed() {
    let (held, restored) = lagging().await;
    for n in 0..4 {
        restored.put("flow/3", &format!("y{n}")).await;
    }
    let read = restored.read_since(Some(&held)).await.unwrap();
    assert_eq!(read.generation, 5);
    assert_eq!(contents(&read), vec![("flow/1", "a"), ("flow/3", "y3")]);
    assert_ne!(read.epoch, held.epoch);
}

#[tokio::test]
async fn the_same_past_goes_on_under_its_epoch() {
    let (held, restored) = lagging().await;
    restored.put("flow/1", "b").await;
    restored.put("flow/2", "x").await;
    assert!(
        restored.read_since(Some(&held)).await.is_none(),
        "the same contents came to the same generation"
    );
    restored.put("flow/2", "x2").await;
    let read = restored.read_since(Some(&held)).await.unwrap();
    assert_eq!(read.epoch.clone(), held.epoch.clone());
    assert_eq!(contents(&read), vec![("flow/1", "b"), ("flow/2", "x2")]);
}

#[tokio::test]
async fn what_ran_before_is_not_taken_for_a_change_of_a_restored_store() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    let (running, restored) = control.forked().await;
    let _node = running.up_to_date().await;
    running.put("flow/1", "b").await;
    running.read(2).await;
    assert!(
        running
            .hub
            .is_ahead_of(&running.environment, &running.version(2).await)
    );
    assert!(
        !running
            .hub
            .is_ahead_of(&running.environment, &running.version(3).await)
    );
    assert!(
        !restored
            .hub
            .is_ahead_of(&restored.environment, &restored.version(2).await)
    );
}
