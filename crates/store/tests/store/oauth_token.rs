//! Tokens of OAuth2 clients, and the authorizations that they were begun for.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, InstanceId};
use kanat_store::connector_instance::{self, ConnectorInstance};
use kanat_store::oauth_start::{self, OauthStart};
use kanat_store::oauth_token::{self, Lease, LeftAlone, OauthToken};

use crate::{NOW, TestStore};

on_both_databases! {
    tokens_that_are_due_are_claimed_by_one_and_settled_under_its_lease
    those_of_environments_that_are_left_alone_are_passed_over
    of_many_processes_one_gets_the_lease
    a_refused_token_is_due_at_once_while_it_is_the_one_that_is_held
    a_start_is_taken_once
}

async fn instance(test: &TestStore) -> InstanceId {
    let row = ConnectorInstance {
        id: InstanceId::generate(),
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        catalog_id: "oauth2".to_owned(),
        name: "crm".to_owned(),
        display_name: "CRM".to_owned(),
        config: vec![1],
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    };
    let mut tx = test.store.begin().await.unwrap();
    connector_instance::insert(&mut tx, &row).await.unwrap();
    tx.commit().await.unwrap();
    row.id
}

fn token(test: &TestStore, instance: &InstanceId) -> OauthToken {
    OauthToken {
        instance_id: instance.clone(),
        environment_id: test.environment.clone(),
        tokens: Some(vec![1, 2]),
        expires_at: Some(NOW.after(Duration::from_secs(60))),
        refresh_at: Some(NOW),
        failures: 0,
        refused: String::new(),
    }
}

fn lease(holder: &str, until: Timestamp) -> Lease<'_> {
    Lease { holder, until }
}

async fn tokens_that_are_due_are_claimed_by_one_and_settled_under_its_lease(test: TestStore) {
    let id = instance(&test).await;
    let row = token(&test, &id);
    let early = NOW.before(Duration::from_secs(1));
    let later = NOW.after(Duration::from_secs(10));
    let mut tx = test.store.begin().await.unwrap();
    assert_eq!(
        oauth_token::first(&mut tx, NOW, &LeftAlone::default())
            .await
            .unwrap(),
        None
    );
    oauth_token::put(&mut tx, &row, NOW).await.unwrap();
    assert_eq!(
        oauth_token::first(&mut tx, early, &LeftAlone::default())
            .await
            .unwrap(),
        Some(NOW)
    );
    assert_eq!(
        oauth_token::claim(&mut tx, lease("a", later), early, &LeftAlone::default())
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        oauth_token::claim(&mut tx, lease("a", later), NOW, &LeftAlone::default())
            .await
            .unwrap(),
        Some(row.clone())
    );
    assert_eq!(
        oauth_token::claim(&mut tx, lease("b", later), NOW, &LeftAlone::default())
            .await
            .unwrap(),
        None,
        "it is held"
    );
    assert_eq!(
        oauth_token::first(&mut tx, NOW, &LeftAlone::default())
            .await
            .unwrap(),
        Some(later),
        "the lease may end with nothing done"
    );
    let renewed = OauthToken {
        tokens: Some(vec![3]),
        refresh_at: None,
        refused: "revoked".to_owned(),
        ..row.clone()
    };
    assert!(
        !oauth_token::settle(&mut tx, &renewed, NOW, "b")
            .await
            .unwrap()
    );
    assert_eq!(
        oauth_token::get(&mut tx, &id).await.unwrap(),
        Some(row.clone())
    );
    // The lease ends: another gets it, and the first writes nothing any more.
    let until = later.after(Duration::from_secs(10));
    assert_eq!(
        oauth_token::claim(&mut tx, lease("b", until), later, &LeftAlone::default())
            .await
            .unwrap(),
        Some(row.clone())
    );
    assert!(
        !oauth_token::settle(&mut tx, &renewed, later, "a")
            .await
            .unwrap()
    );
    assert!(
        oauth_token::settle(&mut tx, &renewed, later, "b")
            .await
            .unwrap()
    );
    assert_eq!(oauth_token::get(&mut tx, &id).await.unwrap(), Some(renewed));
    assert_eq!(
        oauth_token::claim(&mut tx, lease("c", until), until, &LeftAlone::default())
            .await
            .unwrap(),
        None,
        "nothing is due"
    );
    assert_eq!(
        oauth_token::first(&mut tx, until, &LeftAlone::default())
            .await
            .unwrap(),
        None
    );
    // A person who connects it anew takes it from whoever holds it.
    oauth_token::put(&mut tx, &row, later).await.unwrap();
    oauth_token::claim(&mut tx, lease("d", until), later, &LeftAlone::default())
        .await
        .unwrap()
        .unwrap();
    oauth_token::put(&mut tx, &row, later).await.unwrap();
    assert!(
        !oauth_token::settle(&mut tx, &row, later, "d")
            .await
            .unwrap()
    );
    oauth_token::delete(&mut tx, &id).await.unwrap();
    assert_eq!(oauth_token::get(&mut tx, &id).await.unwrap(), None);
}

async fn those_of_environments_that_are_left_alone_are_passed_over(test: TestStore) {
    let id = instance(&test).await;
    let until = NOW.after(Duration::from_secs(10));
    let theirs = vec![EnvironmentId::generate(), test.environment.clone()];
    let others = vec![EnvironmentId::generate()];
    let all = LeftAlone {
        all: theirs.clone(),
        failing: others.clone(),
    };
    let failing = LeftAlone {
        all: others,
        failing: theirs,
    };
    // Whether one is seen and taken that failed so often.
    let is_taken = async |failures: u32, left_alone: &LeftAlone| {
        let mut tx = test.store.begin().await.unwrap();
        let row = OauthToken {
            failures,
            ..token(&test, &id)
        };
        oauth_token::put(&mut tx, &row, NOW).await.unwrap();
        let first = oauth_token::first(&mut tx, NOW, left_alone).await.unwrap();
        let claimed = oauth_token::claim(&mut tx, lease("a", until), NOW, left_alone)
            .await
            .unwrap();
        assert_eq!(first.is_some(), claimed.is_some());
        claimed.is_some()
    };
    assert!(!is_taken(0, &all).await);
    assert!(!is_taken(1, &all).await);
    assert!(is_taken(0, &failing).await);
    assert!(!is_taken(1, &failing).await);
    assert!(is_taken(1, &LeftAlone::default()).await);
}

async fn of_many_processes_one_gets_the_lease(test: TestStore) {
    let id = instance(&test).await;
    let mut tx = test.store.begin().await.unwrap();
    oauth_token::put(&mut tx, &token(&test, &id), NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let claim = async |holder: &str| {
        let mut tx = test.store.begin().await.unwrap();
        let claimed = oauth_token::claim(
            &mut tx,
            lease(holder, NOW.after(Duration::from_secs(9))),
            NOW,
            &LeftAlone::default(),
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        claimed.is_some()
    };
    let (a, b, c, d) = tokio::join!(claim("a"), claim("b"), claim("c"), claim("d"));
    assert_eq!(
        [a, b, c, d].into_iter().filter(|claimed| *claimed).count(),
        1
    );
}

async fn a_refused_token_is_due_at_once_while_it_is_the_one_that_is_held(test: TestStore) {
    let id = instance(&test).await;
    let later = NOW.after(Duration::from_secs(10));
    let due = async |row: OauthToken, tokens: &[u8]| {
        let mut tx = test.store.begin().await.unwrap();
        oauth_token::put(&mut tx, &row, NOW).await.unwrap();
        let expedited = oauth_token::expedite(&mut tx, &id, tokens, NOW)
            .await
            .unwrap();
        let claimed = oauth_token::claim(&mut tx, lease("a", later), NOW, &LeftAlone::default())
            .await
            .unwrap();
        assert_eq!(claimed.is_some(), expedited);
        expedited
    };
    let held = OauthToken {
        refresh_at: Some(later),
        ..token(&test, &id)
    };
    assert!(due(held.clone(), &[1, 2]).await);
    assert!(
        due(
            OauthToken {
                refresh_at: None,
                ..held.clone()
            },
            &[1, 2]
        )
        .await
    );
    assert!(!due(held.clone(), &[3]).await, "another one is held by now");
    assert!(
        !due(
            OauthToken {
                failures: 1,
                ..held.clone()
            },
            &[1, 2]
        )
        .await,
        "its provider is waited for"
    );
    assert!(
        !due(
            OauthToken {
                refused: "revoked".to_owned(),
                ..held
            },
            &[1, 2]
        )
        .await
    );
}

async fn a_start_is_taken_once(test: TestStore) {
    let id = instance(&test).await;
    let start = OauthStart {
        state_sha256: [7; 32],
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        instance_id: id.clone(),
        redirect_uri: "https://app.example/done".to_owned(),
        verifier: vec![1, 2, 3],
        expires_at: NOW.after(Duration::from_secs(600)),
    };
    let mut tx = test.store.begin().await.unwrap();
    oauth_start::insert(&mut tx, &start).await.unwrap();
    assert_eq!(
        oauth_start::take(&mut tx, &[8; 32], NOW).await.unwrap(),
        None
    );
    assert_eq!(
        oauth_start::take(&mut tx, &[7; 32], start.expires_at)
            .await
            .unwrap(),
        None,
        "it has expired"
    );
    assert_eq!(
        oauth_start::take(&mut tx, &[7; 32], NOW).await.unwrap(),
        Some(start.clone())
    );
    assert_eq!(
        oauth_start::take(&mut tx, &[7; 32], NOW).await.unwrap(),
        None
    );
    oauth_start::insert(&mut tx, &start).await.unwrap();
    oauth_start::delete_expired(&mut tx, NOW).await.unwrap();
    oauth_start::delete_of(&mut tx, &id).await.unwrap();
    assert_eq!(
        oauth_start::take(&mut tx, &[7; 32], NOW).await.unwrap(),
        None
    );
}
