//! The audit log of an account: its filters, its pages, and the rows of its chain.

use kanat_model::Timestamp;
use kanat_model::audit::{Principal, Status, Via};
use kanat_model::id::{AccountId, AuditEntryId};
use kanat_store::audit::chain::{self, Head, Link};
use kanat_store::audit::{self, Entry, Filter, Position};

use crate::{NOW, TestStore};

on_both_databases! {
    filters_find_entries_and_pages_follow_each_other
    a_chain_has_a_link_for_each_entry
    retention_drops_from_the_beginning
}

fn entry(test: &TestStore, n: i64) -> Entry {
    Entry {
        id: AuditEntryId::generate(),
        account_id: test.account.clone(),
        at: Timestamp::from_millis(NOW.as_millis() + n),
        action: "flow.deploy".to_owned(),
        entity_type: "flow".to_owned(),
        entity_id: Some(format!("flw_{n}")),
        entity_name: None,
        environment_id: Some(test.environment.clone()),
        actor: Principal::system(),
        via: Via::System,
        status: Status::Done,
        before: None,
        after: Some("{\"n\":1}".to_owned()),
        request_id: Some(format!("req_{n}")),
        address: None,
        calls: 1,
    }
}

async fn filled(test: &TestStore, count: i64) -> Vec<Entry> {
    let mut tx = test.store.begin().await.unwrap();
    let mut entries = Vec::new();
    for n in 0..count {
        let entry = entry(test, n);
        audit::insert(&mut tx, &entry).await.unwrap();
        entries.push(entry);
    }
    tx.commit().await.unwrap();
    entries
}

async fn filters_find_entries_and_pages_follow_each_other(test: TestStore) {
    let entries = filled(&test, 5).await;
    let mut tx = test.store.read().await.unwrap();
    let all = Filter::default();
    let count = audit::count(&mut tx, &test.account, &all).await.unwrap();
    assert_eq!(count, 5);
    let other = AccountId::generate();
    let count = audit::count(&mut tx, &other, &all).await.unwrap();
    assert_eq!(count, 0);

    let first = audit::list(&mut tx, &test.account, &all, Position::Offset(1), 2).await;
    let first = first.unwrap();
    assert_eq!(first, [Ok(entries[3].clone()), Ok(entries[2].clone())]);
    let after = Position::After(&entries[2].id);
    let second = audit::list(&mut tx, &test.account, &all, after, 5).await;
    assert_eq!(
        second.unwrap(),
        [Ok(entries[1].clone()), Ok(entries[0].clone())]
    );

    let text = |text: &str| Some(text.to_owned());
    let found = |filter: Filter| {
        let entries = &entries;
        let expected = match (filter.since, filter.until) {
            (Some(_), _) => entries[2..].to_vec(),
            (_, Some(_)) => entries[..2].to_vec(),
            (None, None) => vec![entries[2].clone()],
        };
        (filter, expected)
    };
    let third = Some(entries[2].at);
    for (filter, expected) in [
        found(Filter {
            entity_id: text("flw_2"),
            action: text("flow.deploy"),
            entity_type: text("flow"),
            actor_id: text("system"),
            environment_id: Some(test.environment.clone()),
            status: Some(Status::Done),
            via: Some(Via::System),
            ..Filter::default()
        }),
        found(Filter {
            request_id: text("req_2"),
            ..Filter::default()
        }),
        found(Filter {
            since: third,
            ..Filter::default()
        }),
        found(Filter {
            until: third,
            ..Filter::default()
        }),
    ] {
        let position = Position::Offset(0);
        let found = audit::list(&mut tx, &test.account, &filter, position, 9).await;
        let found = found.unwrap().into_iter().rev();
        let found: Vec<Entry> = found.map(Result::unwrap).collect();
        assert_eq!(found, expected, "{filter:?}");
        let count = audit::count(&mut tx, &test.account, &filter).await.unwrap();
        assert_eq!(count, expected.len() as u64, "{filter:?}");
    }
    let none = Filter {
        status: Some(Status::Denied),
        ..Filter::default()
    };
    let count = audit::count(&mut tx, &test.account, &none).await.unwrap();
    assert_eq!(count, 0);
}

/// Chains all entries that wait, with hashes of the test's.
async fn chained(test: &TestStore) -> Head {
    let mut tx = test.store.begin().await.unwrap();
    let mut head = Head {
        account_id: test.account.clone(),
        sequence: 0,
        hash: [0; 32],
        kept: 0,
        code: [1; 32],
        anchor: 0,
        anchor_hash: [0; 32],
        anchor_code: [2; 32],
    };
    chain::insert_head(&mut tx, &head).await.unwrap();
    chain::lock(&mut tx, &test.account).await.unwrap();
    for entry in chain::pending(&mut tx, &test.account, 100).await.unwrap() {
        let entry = entry.unwrap();
        head.sequence += 1;
        head.kept += 1;
        head.hash = [u8::try_from(head.sequence).unwrap(); 32];
        let link = Link {
            account_id: test.account.clone(),
            sequence: head.sequence,
            entry_id: entry.id.clone(),
            hash: head.hash,
        };
        chain::insert_link(&mut tx, &link).await.unwrap();
        let done = chain::no_longer_pending(&mut tx, &entry.id).await;
        done.unwrap();
    }
    chain::update_head(&mut tx, &head).await.unwrap();
    tx.commit().await.unwrap();
    head
}

async fn a_chain_has_a_link_for_each_entry(test: TestStore) {
    let entries = filled(&test, 3).await;
    let account = &test.account;
    let mut tx = test.store.read().await.unwrap();
    let waiting = chain::waiting_accounts(&mut tx).await.unwrap();
    assert_eq!(waiting, std::slice::from_ref(account));
    assert_eq!(chain::count_pending(&mut tx, account).await.unwrap(), 3);
    drop(tx);
    let head = chained(&test).await;
    let mut tx = test.store.begin().await.unwrap();
    assert_eq!(chain::head(&mut tx, account).await.unwrap(), Some(head));
    assert_eq!(chain::count_pending(&mut tx, account).await.unwrap(), 0);
    assert_eq!(chain::unlinked(&mut tx, account).await.unwrap(), None);
    assert_eq!(chain::lost(&mut tx, account).await.unwrap(), None);
    let linked = chain::linked(&mut tx, account, 1, 9).await.unwrap();
    let found = linked.into_iter().map(|each| each.entry.unwrap().unwrap());
    assert_eq!(found.collect::<Vec<_>>(), entries[1..]);
    let last = chain::link(&mut tx, account, 3).await.unwrap().unwrap();
    assert_eq!(last.entry_id, entries[2].id);
    let again = chain::insert_link(&mut tx, &last).await;
    again.unwrap_err();
}

async fn retention_drops_from_the_beginning(test: TestStore) {
    let entries = filled(&test, 4).await;
    chained(&test).await;
    let account = &test.account;
    let mut tx = test.store.begin().await.unwrap();
    let none = chain::last_before(&mut tx, account, entries[0].at).await;
    assert_eq!(none.unwrap(), None);
    let last = chain::last_before(&mut tx, account, entries[2].at).await;
    assert_eq!(last.unwrap(), Some(2));
    chain::drop_entries(&mut tx, account, 0, 2).await.unwrap();
    chain::drop_links(&mut tx, account, 0, 2).await.unwrap();
    let left = chain::linked(&mut tx, account, 0, 9).await.unwrap();
    let left: Vec<_> = left.into_iter().map(|each| each.link.sequence).collect();
    assert_eq!(left, [3, 4]);
    let all = Filter::default();
    assert_eq!(audit::count(&mut tx, account, &all).await.unwrap(), 2);
}
