//! Lookup tables and their entries.

use kanat_model::id::LookupTableId;
use kanat_store::lookup_table::entry::Entry;
use kanat_store::lookup_table::{self, LookupTable};
use kanat_store::names::{self, NamedResource};

use crate::{NOW, TestStore};

on_both_databases! {
    entries_are_counted_and_ordered_by_key
}

impl TestStore {
    pub fn table(&self, name: &str) -> LookupTable {
        LookupTable {
            id: LookupTableId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: String::new(),
            version: 1,
            entries_count: 0,
            created_at: NOW,
            updated_at: NOW,
        }
    }
}

fn entry(key: &str, value: &str) -> Entry {
    Entry {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

async fn entries_are_counted_and_ordered_by_key(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let table = test.table("countries");
    lookup_table::insert(&mut tx, &table).await.unwrap();
    let many: Vec<Entry> = (0..250)
        .map(|n| entry(&format!("key {n:03}"), "old"))
        .collect();
    lookup_table::entry::upsert(&mut tx, &table.id, &many)
        .await
        .unwrap();
    lookup_table::entry::upsert(
        &mut tx,
        &table.id,
        &[entry("key 007", "Bond"), entry("ä", "ö")],
    )
    .await
    .unwrap();
    assert!(
        lookup_table::entry::delete(&mut tx, &table.id, "key 000")
            .await
            .unwrap()
    );
    assert!(
        !lookup_table::entry::delete(&mut tx, &table.id, "key 000")
            .await
            .unwrap()
    );

    let table = lookup_table::modified(&mut tx, &table.id, 250, NOW)
        .await
        .unwrap();
    assert_eq!(table.version, 2);
    assert_eq!(table.entries_count, 250);
    assert_eq!(
        lookup_table::get(&mut tx, &test.environment, &table.id)
            .await
            .unwrap(),
        Some(table.clone())
    );
    let all = lookup_table::entry::all(&mut tx, &table.id).await.unwrap();
    assert_eq!(all.len(), 250);
    assert!(all.is_sorted_by(|a, b| a.key < b.key));
    let found = lookup_table::entry::find(&mut tx, &table.id, "bond", 10)
        .await
        .unwrap();
    assert_eq!(found, [entry("key 007", "Bond")]);
    assert_eq!(
        lookup_table::entry::find(&mut tx, &table.id, "", 3)
            .await
            .unwrap(),
        all[..3]
    );
    let names = names::of(&mut tx, &test.environment).await.unwrap();
    assert_eq!(
        names,
        [(
            "countries".to_owned(),
            NamedResource::Table(table.id.clone())
        )]
    );
    assert!(
        lookup_table::delete(&mut tx, &test.environment, &table.id, NOW)
            .await
            .unwrap()
    );
    assert!(
        !lookup_table::delete(&mut tx, &test.environment, &table.id, NOW)
            .await
            .unwrap()
    );
}
