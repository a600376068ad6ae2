//! Lookup tables from their making to their end.

use kanat_proto::v1::{
    CreateLookupTableRequest, DeleteLookupEntryRequest, DeleteLookupTableRequest,
    ExportLookupTableRequest, GetLookupTableRequest, ImportLookupTableRequest,
    ListLookupTablesRequest, LookupEntry, LookupTableChange, SetLookupEntryRequest,
    UpsertLookupEntriesRequest,
};
use tonic::{Code, Request};

use crate::plane::{TestPlane, faults};

async fn make(plane: &TestPlane, name: &str) -> String {
    let request = CreateLookupTableRequest {
        name: name.to_owned(),
        description: Some("of the shop".to_owned()),
    };
    let made = plane
        .tables()
        .create_lookup_table(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(made.version, 1);
    assert_eq!(made.entries_count, 0);
    assert_eq!(made.name.as_str(), name);
    made.id
}

fn upsert(id: &str, entries: &[(&str, &str)]) -> UpsertLookupEntriesRequest {
    let entry = |(key, value): &(&str, &str)| LookupEntry {
        key: (*key).to_owned(),
        value: Some((*value).to_owned()),
    };
    UpsertLookupEntriesRequest {
        id: id.to_owned(),
        entries: entries.iter().map(entry).collect(),
    }
}

fn get(id: &str, search: Option<&str>, limit: Option<u32>) -> GetLookupTableRequest {
    GetLookupTableRequest {
        id: id.to_owned(),
        search: search.map(str::to_owned),
        limit,
    }
}

#[tokio::test]
async fn each_request_is_one_step_of_the_version() {
    let plane = TestPlane::start().await;
    let id = make(&plane, "countries").await;
    let change = |entries_count, version| LookupTableChange {
        id: id.clone(),
        entries_count,
        version,
    };
    let mut tables = plane.tables();

    let many = upsert(&id, &[("DE", "x"), ("FR", "France"), ("DE", "Germany")]);
    assert_eq!(
        tables
            .upsert_lookup_entries(many)
            .await
            .unwrap()
            .into_inner(),
        change(2, 2)
    );
    let one = SetLookupEntryRequest {
        id: id.clone(),
        key: "IT".to_owned(),
        value: Some("Italy".to_owned()),
    };
    assert_eq!(
        tables.set_lookup_entry(one).await.unwrap().into_inner(),
        change(3, 3)
    );
    let csv = ImportLookupTableRequest {
        id: id.clone(),
        csv: "key,value\nES,Spain\nFR,\"La, France\"\n".to_owned(),
    };
    assert_eq!(
        tables.import_lookup_table(csv).await.unwrap().into_inner(),
        change(4, 4)
    );
    let gone = DeleteLookupEntryRequest {
        id: id.clone(),
        key: "IT".to_owned(),
    };
    tables.delete_lookup_entry(gone.clone()).await.unwrap();
    assert_eq!(
        tables.delete_lookup_entry(gone).await.unwrap_err().code(),
        Code::NotFound
    );

    let found = tables
        .get_lookup_table(get(&id, None, None))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.version, 5);
    assert_eq!(found.entries_count, 3);
    let pairs: Vec<_> = found
        .entries
        .iter()
        .map(|entry| {
            (
                entry.key.as_str(),
                entry.value.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        pairs,
        [("DE", "Germany"), ("ES", "Spain"), ("FR", "La, France")]
    );
    let found = tables
        .get_lookup_table(get(&id, Some("fr"), Some(1)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.entries.len(), 1);
    let csv = tables
        .export_lookup_table(ExportLookupTableRequest { id })
        .await
        .unwrap()
        .into_inner()
        .csv;
    assert_eq!(csv, "key,value\nDE,Germany\nES,Spain\nFR,\"La, France\"\n");
}

#[tokio::test]
async fn a_name_is_unique_and_free_again_after_the_delete() {
    let plane = TestPlane::start().await;
    let id = make(&plane, "countries").await;
    let again = CreateLookupTableRequest {
        name: "countries".to_owned(),
        description: None,
    };
    assert_eq!(
        plane
            .tables()
            .create_lookup_table(again)
            .await
            .unwrap_err()
            .code(),
        Code::AlreadyExists
    );
    plane
        .tables()
        .delete_lookup_table(DeleteLookupTableRequest { id: id.clone() })
        .await
        .unwrap();
    let gone = plane
        .tables()
        .get_lookup_table(get(&id, None, None))
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert_eq!(
        gone.message(),
        format!("lookup table {id:?} does not exist")
    );
    make(&plane, "countries").await;
    let listed = plane
        .tables()
        .list_lookup_tables(ListLookupTablesRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.data.len(), 1);
    assert_eq!(listed.pagination.unwrap().total, 1);
}

#[tokio::test]
async fn a_lost_update_is_refused() {
    let plane = TestPlane::start().await;
    let id = make(&plane, "countries").await;
    let tagged = |etag: &str| {
        let mut request = Request::new(upsert(&id, &[("DE", "Germany")]));
        request
            .metadata_mut()
            .insert("if-match", etag.parse().unwrap());
        request
    };
    plane
        .tables()
        .upsert_lookup_entries(tagged("\"1\""))
        .await
        .unwrap();
    let refused = plane
        .tables()
        .upsert_lookup_entries(tagged("\"1\""))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
}

#[tokio::test]
async fn wrong_entries_change_nothing_and_are_named() {
    let plane = TestPlane::start().await;
    let id = make(&plane, "countries").await;
    let mut tables = plane.tables();
    let refused = tables
        .upsert_lookup_entries(upsert(&id, &[("DE", "Germany"), ("", "x")]))
        .await
        .unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["entries[1].key".to_owned()])
    );
    let mut valueless = upsert(&id, &[("DE", "Germany"), ("FR", "France")]);
    valueless.entries[1].value = None;
    let refused = tables.upsert_lookup_entries(valueless).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["entries[1].value".to_owned()])
    );
    let one = SetLookupEntryRequest {
        id: id.clone(),
        key: "IT".to_owned(),
        value: None,
    };
    let refused = tables.set_lookup_entry(one).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["value".to_owned()])
    );
    let csv = ImportLookupTableRequest {
        id: id.clone(),
        csv: "key;value\nDE;Germany\n".to_owned(),
    };
    let refused = tables.import_lookup_table(csv).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["csv".to_owned()])
    );
    let found = tables
        .get_lookup_table(get(&id, None, None))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.version, 1);
    assert_eq!(found.entries_count, 0);
}
