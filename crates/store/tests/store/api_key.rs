//! Rows of API keys.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, ApiKeyId};
use kanat_model::page::Page;
use kanat_store::api_key::{self, ApiKey};

use crate::{NOW, TestStore};

on_both_databases! {
    a_key_is_found_by_its_hash_until_it_is_revoked
}

async fn a_key_is_found_by_its_hash_until_it_is_revoked(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let key = ApiKey {
        id: ApiKeyId::generate(),
        account_id: test.account.clone(),
        name: "ci".to_owned(),
        role: "owner".to_owned(),
        environment_id: None,
        sha256: [5; 32],
        prefix: "kanat_ak_abcdef".to_owned(),
        created_at: NOW,
        expires_at: Some(NOW),
        last_used_at: None,
        created_by_type: None,
        created_by_id: None,
        created_by_name: None,
    };
    api_key::insert(&mut tx, &key).await.unwrap();
    assert_eq!(
        api_key::by_hash(&mut tx, &[5; 32]).await.unwrap(),
        Some(key.clone())
    );
    assert_eq!(api_key::by_hash(&mut tx, &[6; 32]).await.unwrap(), None);
    api_key::used(&mut tx, &key.id, NOW).await.unwrap();
    let used = ApiKey {
        last_used_at: Some(NOW),
        ..key.clone()
    };
    assert_eq!(
        api_key::list(&mut tx, &test.account, "", Page::new(None, None))
            .await
            .unwrap()
            .items,
        std::slice::from_ref(&used)
    );
    assert_eq!(
        api_key::get(&mut tx, &test.account, &key.id).await.unwrap(),
        Some(used)
    );
    assert_eq!(
        api_key::get(&mut tx, &AccountId::generate(), &key.id)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        api_key::other_owners(&mut tx, &test.account, &ApiKeyId::generate(), NOW)
            .await
            .unwrap(),
        0
    );
    let earlier = Timestamp::from_millis(0);
    assert_eq!(
        api_key::other_owners(&mut tx, &test.account, &ApiKeyId::generate(), earlier)
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        api_key::other_owners(&mut tx, &test.account, &key.id, earlier)
            .await
            .unwrap(),
        0
    );
    assert!(
        api_key::delete(&mut tx, &test.account, &key.id, NOW)
            .await
            .unwrap()
    );
    assert_eq!(api_key::by_hash(&mut tx, &[5; 32]).await.unwrap(), None);
}
