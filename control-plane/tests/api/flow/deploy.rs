//! Deploys: alone, and many at once.

use super::*;

#[tokio::test]
async fn a_deploy_makes_a_version_with_a_webhook() {
    let plane = TestPlane::start().await;
    let (instance, table) = surroundings(&plane).await;
    let flow = create(&plane, ORDERS).await;
    let deployed = deploy(&plane, &flow.id).await.unwrap();
    assert_eq!(deployed.status.as_str(), "active");
    assert_eq!(deployed.version, 1);
    let url = deployed.webhook_url.unwrap();
    assert!(
        url.starts_with("https://kanat.example/webhooks/receive/"),
        "{url}"
    );
    let again = deploy(&plane, &flow.id).await.unwrap();
    assert_eq!(again.version, 1);
    assert_eq!(again.webhook_url, Some(url));

    let refused = plane
        .tables()
        .delete_lookup_table(DeleteLookupTableRequest { id: table.clone() })
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
    let delete = DeleteConnectorInstanceRequest {
        id: instance.clone(),
    };
    let refused = plane
        .connectors()
        .delete_connector_instance(delete.clone())
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
    plane
        .flows()
        .delete_flow(DeleteFlowRequest {
            id: flow.id.clone(),
        })
        .await
        .unwrap();
    plane
        .connectors()
        .delete_connector_instance(delete)
        .await
        .unwrap();
    plane
        .tables()
        .delete_lookup_table(DeleteLookupTableRequest { id: table })
        .await
        .unwrap();
    assert_eq!(
        deploy(&plane, &flow.id).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn deploys_at_once_are_few_changes() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let mut flows = Vec::new();
    for n in 0..24 {
        flows.push(
            create(
                &plane,
                &ORDERS.replace("flow: orders", &format!("flow: orders-{n}")),
            )
            .await
            .id,
        );
    }
    let before = plane.generation().await;
    let all = flows.iter().map(|id| deploy(&plane, id));
    let mut versions: Vec<_> = join_all(all)
        .await
        .into_iter()
        .map(|deployed| deployed.unwrap())
        .collect();
    versions.sort_by(|a, b| (&a.id, a.version).cmp(&(&b.id, b.version)));
    let expected: Vec<_> = flows.iter().map(|id| (id, 1)).collect();
    assert_eq!(
        versions
            .iter()
            .map(|flow| (&flow.id, flow.version))
            .collect::<Vec<_>>(),
        expected
    );
    let changes = plane.generation().await - before;
    assert!(
        (1..24).contains(&changes),
        "{changes} changes for 24 deploys"
    );
}

#[tokio::test]
async fn deploys_of_one_flow_at_once_make_one_version_of_each_definition() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let id = create(&plane, ORDERS).await.id;
    for version in 1..=4 {
        let changed = ORDERS.replace("total > 0", &format!("total > {version}"));
        let update = UpdateFlowRequest {
            id: id.clone(),
            yaml_config: Some(changed.clone()),
            ..Default::default()
        };
        plane.flows().update_flow(update).await.unwrap();
        for deployed in join_all([&id; 6].map(|id| deploy(&plane, id))).await {
            let deployed = deployed.unwrap();
            assert_eq!(deployed.version, version);
            assert_eq!(deployed.yaml_config, changed);
        }
    }
    let versions = ListFlowVersionsRequest {
        id,
        ..Default::default()
    };
    let versions = plane
        .flows()
        .list_flow_versions(versions)
        .await
        .unwrap()
        .into_inner()
        .data;
    assert_eq!(
        versions
            .iter()
            .map(|version| version.version)
            .collect::<Vec<_>>(),
        [4, 3, 2, 1]
    );
}

#[tokio::test]
async fn a_deploy_that_is_wrong_fails_alone() {
    let plane = TestPlane::start().await;
    let (instance, _) = surroundings(&plane).await;
    let wrong = create(
        &plane,
        &ORDERS
            .replace("flow: orders", "flow: wrong")
            .replace("connector: erp", "connector: crm"),
    )
    .await;
    let good = create(&plane, ORDERS).await;
    let gone = async {
        let delete = DeleteConnectorInstanceRequest { id: instance };
        plane.connectors().delete_connector_instance(delete).await
    };
    let (wrong, unknown, good, gone) = join!(
        deploy(&plane, &wrong.id),
        deploy(&plane, "flw_unknown"),
        deploy(&plane, &good.id),
        gone
    );
    assert_eq!(wrong.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
    // Whichever of the two comes first, no flow is in service whose connector is gone.
    assert!(good.is_ok() != gone.is_ok(), "{good:?}, {gone:?}");
}
