//! Resources that nodes run: generations, snapshots, and concurrent transactions.

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::{Hash, SetHash};
use kanat_store::published::set_identity::{self, SetIdentity};
use kanat_store::published::{Resource, ResourceChange};
use kanat_store::{meta, published};

use crate::TestStore;

on_both_databases! {
    every_change_of_what_nodes_run_has_its_own_generation
    the_hash_over_all_that_is_published_goes_with_each_generation
    what_is_published_together_has_one_generation
    an_epoch_is_renewed_once
    a_reader_sees_one_state_while_another_writes
    concurrent_writers_wait_for_each_other
}

async fn every_change_of_what_nodes_run_has_its_own_generation(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let env = &test.environment;
    assert_eq!(
        published::put(&mut tx, env, "flow/a", [1; 32], vec![1])
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        published::put(&mut tx, env, "flow/b", [2; 32], vec![2])
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        published::put(&mut tx, env, "flow/a", [3; 32], vec![3])
            .await
            .unwrap(),
        3
    );
    assert_eq!(published::remove(&mut tx, env, "flow/b").await.unwrap(), 4);
    tx.commit().await.unwrap();

    let mut read = test.store.read().await.unwrap();
    let snapshot = published::snapshot(&mut read, env).await.unwrap().unwrap();
    assert_eq!(snapshot.identity.generation, 4);
    assert_eq!(snapshot.epoch, meta::epoch(&mut read).await.unwrap());
    let [a] = snapshot.resources.as_slice() else {
        panic!("one resource is left: {:?}", snapshot.resources)
    };
    assert_eq!(a.resource_id.as_str(), "flow/a");
    assert_eq!(a.hash, [3; 32]);
    assert_eq!(a.sealed.as_slice(), [3].as_slice());
    assert_eq!(a.generation, 3);
    let since = published::since(&mut read, env, 2).await.unwrap();
    let ids: Vec<_> = since
        .iter()
        .map(|row| (row.resource_id.as_str(), row.removed))
        .collect();
    assert_eq!(ids, [("flow/a", false), ("flow/b", true)]);
    assert_eq!(
        published::get(&mut read, env, "flow/b").await.unwrap(),
        None
    );
    assert_eq!(
        published::snapshot(&mut read, &EnvironmentId::generate())
            .await
            .unwrap(),
        None
    );
}

async fn the_hash_over_all_that_is_published_goes_with_each_generation(test: TestStore) {
    let env = &test.environment;
    let hash =
        |pairs: &[(&str, u8)]| SetHash::of(pairs.iter().map(|(id, n)| (*id, Hash::from([*n; 32]))));
    let mut tx = test.store.begin().await.unwrap();
    let fresh = set_identity::of(&mut tx, env).await.unwrap().unwrap();
    assert_eq!(fresh.generation, 0);
    assert_eq!(fresh.set_hash, None);
    assert!(fresh.matches(0, SetHash::default()));
    for (id, n, expected) in [
        ("flow/a", Some(1), hash(&[("flow/a", 1)])),
        ("flow/b", Some(2), hash(&[("flow/a", 1), ("flow/b", 2)])),
        ("flow/a", Some(3), hash(&[("flow/a", 3), ("flow/b", 2)])),
        ("flow/b", None, hash(&[("flow/a", 3)])),
        ("flow/c", None, hash(&[("flow/a", 3)])),
        ("flow/b", Some(2), hash(&[("flow/a", 3), ("flow/b", 2)])),
    ] {
        let generation = match n {
            Some(n) => published::put(&mut tx, env, id, [n; 32], vec![n])
                .await
                .unwrap(),
            None => published::remove(&mut tx, env, id).await.unwrap(),
        };
        let now = set_identity::of(&mut tx, env).await.unwrap().unwrap();
        assert_eq!(
            now,
            SetIdentity {
                generation,
                set_hash: Some(expected)
            },
            "after {id}"
        );
        assert!(now.matches(generation, expected) && !now.matches(generation, SetHash::default()));
    }
    let now = set_identity::of(&mut tx, env).await.unwrap();
    assert_eq!(
        set_identity::all(&mut tx).await.unwrap().get(env).copied(),
        now
    );
}

async fn what_is_published_together_has_one_generation(test: TestStore) {
    let env = &test.environment;
    let resource = |id: &str, n| Resource {
        id: id.to_owned(),
        hash: [n; 32],
        sealed: vec![n],
    };
    let mut tx = test.store.begin().await.unwrap();
    assert_eq!(
        published::put(&mut tx, env, "flow/b", [1; 32], vec![1])
            .await
            .unwrap(),
        1
    );
    let a = resource("flow/a", 2);
    let b = resource("flow/b", 3);
    let c = resource("flow/c", 4);
    assert_eq!(
        published::put_all(&mut tx, env, &a, &[&b, &c])
            .await
            .unwrap(),
        2
    );
    let snapshot = published::snapshot(&mut tx, env).await.unwrap().unwrap();
    let found: Vec<_> = snapshot
        .resources
        .iter()
        .map(|r| (r.resource_id.as_str(), r.hash[0], r.generation))
        .collect();
    assert_eq!(
        found,
        [("flow/a", 2, 2), ("flow/b", 3, 2), ("flow/c", 4, 2)]
    );
    let hash =
        SetHash::of([&a, &b, &c].map(|resource| (resource.id.as_str(), Hash::from(resource.hash))));
    assert_eq!(
        snapshot.identity,
        SetIdentity {
            generation: 2,
            set_hash: Some(hash)
        }
    );

    let changes = [ResourceChange::Remove("flow/a"), ResourceChange::Put(&b)];
    assert_eq!(
        published::apply_all(&mut tx, env, ResourceChange::Remove("flow/c"), &changes)
            .await
            .unwrap(),
        3
    );
    let snapshot = published::snapshot(&mut tx, env).await.unwrap().unwrap();
    assert_eq!(
        snapshot
            .resources
            .iter()
            .map(|r| r.resource_id.as_str())
            .collect::<Vec<_>>(),
        ["flow/b"]
    );
    let hash = SetHash::of([("flow/b", Hash::from(b.hash))]);
    assert_eq!(
        snapshot.identity,
        SetIdentity {
            generation: 3,
            set_hash: Some(hash)
        }
    );
}

async fn an_epoch_is_renewed_once(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let former = meta::epoch(&mut tx).await.unwrap();
    assert!(meta::renew_epoch(&mut tx, &former).await.unwrap());
    let renewed = meta::epoch(&mut tx).await.unwrap();
    assert_ne!(renewed, former);
    assert!(!meta::renew_epoch(&mut tx, &former).await.unwrap());
    assert_eq!(meta::epoch(&mut tx).await.unwrap(), renewed);
}

async fn generation(db: &mut kanat_store::Db, environment: &EnvironmentId) -> u64 {
    set_identity::of(db, environment)
        .await
        .unwrap()
        .unwrap()
        .generation
}

async fn a_reader_sees_one_state_while_another_writes(test: TestStore) {
    let mut read = test.store.read().await.unwrap();
    assert_eq!(generation(&mut read, &test.environment).await, 0);
    let mut tx = test.store.begin().await.unwrap();
    published::put(&mut tx, &test.environment, "flow/a", [1; 32], vec![1])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let snapshot = published::snapshot(&mut read, &test.environment)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.identity.generation, 0);
    assert_eq!(snapshot.resources.len(), 0);
}

async fn concurrent_writers_wait_for_each_other(test: TestStore) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40_u8 {
        let store = test.store.clone();
        let environment = test.environment.clone();
        tasks.spawn(async move {
            let mut tx = store.begin().await.unwrap();
            published::put(
                &mut tx,
                &environment,
                &format!("flow/{n}"),
                [n; 32],
                vec![n],
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
        });
    }
    tasks.join_all().await;
    let mut read = test.store.read().await.unwrap();
    assert_eq!(generation(&mut read, &test.environment).await, 40);
}
