//! Governance policies of an account.

use kanat_model::id::{AccountId, PolicyId};
use kanat_model::page::Page;
use kanat_model::policy::Severity;
use kanat_store::Error;
use kanat_store::policy::{self, Policy};

use crate::{NOW, TestStore};

on_both_databases! {
    a_policy_is_kept_whole_and_updated_from_what_was_read
}

async fn a_policy_is_kept_whole_and_updated_from_what_was_read(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut kept = Policy {
        id: PolicyId::generate(),
        account_id: test.account.clone(),
        name: "retries".to_owned(),
        description: "d".to_owned(),
        severity: Severity::Warn,
        expression: "true".to_owned(),
        message: "m".to_owned(),
        environment_ids: vec![test.environment.clone(), "env_2".into()],
        enabled: true,
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    };
    policy::insert(&mut tx, &kept).await.unwrap();
    let found = policy::get(&mut tx, &test.account, &kept.id).await;
    assert_eq!(found.unwrap().as_ref(), Some(&kept));
    let other = AccountId::generate();
    let found = policy::get(&mut tx, &other, &kept.id).await.unwrap();
    assert_eq!(found, None);

    let mut former = kept.clone();
    kept.environment_ids.clear();
    kept.enabled = false;
    policy::update(&mut tx, &mut kept).await.unwrap();
    let refused = policy::update(&mut tx, &mut former).await;
    assert!(matches!(refused, Err(Error::Changed { .. })), "{refused:?}");
    let list = policy::list(&mut tx, &test.account, "RETR", Page::new(None, None)).await;
    assert_eq!(list.unwrap().items, std::slice::from_ref(&kept));
    policy::delete(&mut tx, &test.account, &kept.id)
        .await
        .unwrap();
    let found = policy::get(&mut tx, &test.account, &kept.id).await.unwrap();
    assert_eq!(found, None);
}
