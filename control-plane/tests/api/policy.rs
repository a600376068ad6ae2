//! Governance policies over gRPC: kept whole, and on what they were based.

use kanat_proto::v1::policy_service_client::PolicyServiceClient;
use kanat_proto::v1::{
    CreatePolicyRequest, DeletePolicyRequest, GetPolicyRequest, Json, ListPoliciesRequest, Policy,
    UpdatePolicyRequest,
};
use tonic::{Code, Request};
use tonic_types::StatusExt;

use crate::plane::{AuthorizedService, TestPlane, faults};

fn policies(plane: &TestPlane) -> PolicyServiceClient<AuthorizedService> {
    PolicyServiceClient::new(plane.as_owner())
}

async fn make(plane: &TestPlane, name: &str) -> Policy {
    let request = CreatePolicyRequest {
        name: name.to_owned(),
        expression: "true".to_owned(),
        ..CreatePolicyRequest::default()
    };
    let made = policies(plane).create_policy(request).await;
    made.unwrap().into_inner()
}

#[tokio::test]
async fn a_policy_is_made_listed_changed_and_deleted() {
    let plane = TestPlane::start().await;
    let made = make(&plane, "retries").await;
    let id = made.id.clone();
    let list = ListPoliciesRequest::default();
    let list = policies(&plane).list_policies(list).await.unwrap();
    assert_eq!(list.into_inner().data, [made]);
    let update = UpdatePolicyRequest {
        id: id.clone(),
        enabled: Some(false),
        ..UpdatePolicyRequest::default()
    };
    let changed = policies(&plane).update_policy(update).await.unwrap();
    let changed = changed.into_inner();
    assert!(!changed.enabled);
    let get = GetPolicyRequest { id: id.clone() };
    let found = policies(&plane).get_policy(get.clone()).await.unwrap();
    assert_eq!(found.into_inner(), changed);
    let mut delete = Request::new(DeletePolicyRequest { id: id.clone() });
    delete
        .metadata_mut()
        .insert("if-match", "1".parse().unwrap());
    let refused = policies(&plane).delete_policy(delete).await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    policies(&plane)
        .delete_policy(DeletePolicyRequest { id: id.clone() })
        .await
        .unwrap();
    let missing = policies(&plane).get_policy(get).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let details = missing.get_error_details();
    let resource = details.resource_info().unwrap();
    assert_eq!(resource.resource_type, "policy");
    assert_eq!(resource.resource_name, id);
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let plane = TestPlane::start().await;
    let made = make(&plane, "retries").await;
    let update = UpdatePolicyRequest {
        id: made.id,
        environment_ids: Some(Json {
            text: "{}".to_owned(),
        }),
        ..UpdatePolicyRequest::default()
    };
    let refused = policies(&plane).update_policy(update).await.unwrap_err();
    assert_eq!(faults(&refused).1, ["environmentIds"]);
    let request = CreatePolicyRequest {
        name: "x".to_owned(),
        ..CreatePolicyRequest::default()
    };
    let refused = policies(&plane).create_policy(request).await.unwrap_err();
    assert_eq!(faults(&refused).1, ["expression"]);
}
