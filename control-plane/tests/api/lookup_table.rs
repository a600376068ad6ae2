//! Requests for entries of lookup tables that are refused.

use kanat_proto::v1::{
    CreateLookupTableRequest, GetLookupTableRequest, ImportLookupTableRequest, LookupEntry,
    SetLookupEntryRequest, UpsertLookupEntriesRequest,
};
use tonic::{Code, Request};

use crate::plane::{TestPlane, faults};

async fn make(plane: &TestPlane, name: &str) -> String {
    let request = CreateLookupTableRequest {
        name: name.to_owned(),
        description: None,
    };
    let made = plane.tables().create_lookup_table(request).await;
    made.unwrap().into_inner().id
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
    let get = GetLookupTableRequest {
        id,
        ..GetLookupTableRequest::default()
    };
    let found = tables.get_lookup_table(get).await.unwrap().into_inner();
    assert_eq!(found.version, 1);
    assert_eq!(found.entries_count, 0);
}
