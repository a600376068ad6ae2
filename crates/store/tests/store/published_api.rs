//! Published APIs, their versions, their keys, and what is kept from being deleted under them.

use std::time::Duration;

use kanat_model::flow::Status;
use kanat_model::id::{ConsumerKeyId, FlowId, PublishedApiId};
use kanat_model::page::Page;
use kanat_model::published_api::{
    Auth, Cors, Method, OAuth2, OnTimeout, Validation, VersionStatus,
};
use kanat_store::consumer_key::{self, ConsumerKey};
use kanat_store::flow::{self, Flow};
use kanat_store::published_api::version::{self, Content, Version};
use kanat_store::published_api::{self, PublishedApi, uses};
use kanat_store::{Error, environment};

use crate::{NOW, TestStore};

on_both_databases! {
    an_api_is_known_by_its_name_and_its_route
    versions_are_listed_highest_first_with_the_name_of_their_flow
    keys_end_and_stay_listed
    an_environment_has_a_base_url_of_its_own
}

impl TestStore {
    pub fn api(&self, name: &str, shape: &str) -> PublishedApi {
        PublishedApi {
            id: PublishedApiId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: String::new(),
            method: Method::Get,
            path: shape.replace("{}", "{id}"),
            shape: shape.to_owned(),
            auth: Auth::OAuth2,
            oauth2: Some(OAuth2 {
                issuer: "https://id.example".to_owned(),
                ..OAuth2::default()
            }),
            validation: Validation::Lenient,
            deadline_ms: 30_000,
            on_timeout: OnTimeout::Discard,
            strict_response: true,
            cors: Some(Cors {
                origins: vec!["*".to_owned()],
                ..Cors::default()
            }),
            revision: 1,
            created_at: NOW,
            updated_at: NOW,
        }
    }

    fn api_flow(&self, name: &str) -> Flow {
        Flow {
            id: FlowId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: String::new(),
            status: Status::Draft,
            version: 0,
            trigger_kind: "api".to_owned(),
            yaml_config: "name: x".to_owned(),
            sealed_config: None,
            change_summary: String::new(),
            draft: true,
            webhook_token: None,
            revision: 1,
            created_at: NOW,
            updated_at: NOW,
        }
    }
}

fn a_version(number: u32, flow: &Flow) -> Version {
    Version {
        number,
        status: VersionStatus::Active,
        flow_id: flow.id.clone(),
        flow_name: flow.name.clone(),
        content: Content {
            request_schema: Some("{\"a\": 1.0}".to_owned()),
            ..Content::default()
        },
        sunset_at: None,
        created_at: NOW,
        deprecated_at: None,
        retired_at: None,
    }
}

fn key(api: &PublishedApi, consumer: &str, n: u8) -> ConsumerKey {
    ConsumerKey {
        id: ConsumerKeyId::generate(),
        api_id: api.id.clone(),
        consumer: consumer.to_owned(),
        prefix: format!("kanat_ck_{consumer}_"),
        sha256: [n; 32],
        rate_limit_per_second: Some(10),
        daily_limit: None,
        standing: Default::default(),
        rotated_from: None,
        created_at: NOW,
    }
}

async fn an_api_is_known_by_its_name_and_its_route(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut api = test.api("orders", "orders/{}");
    published_api::insert(&mut tx, &api).await.unwrap();
    assert_eq!(
        published_api::get(&mut tx, &test.environment, &api.id)
            .await
            .unwrap(),
        Some(api.clone())
    );
    let found = published_api::by_route(&mut tx, &test.environment, Method::Get, "orders/{}")
        .await
        .unwrap();
    assert_eq!(found, Some(api.clone()));
    let other = published_api::by_route(&mut tx, &test.environment, Method::Put, "orders/{}")
        .await
        .unwrap();
    assert_eq!(other, None);

    api.oauth2 = None;
    api.auth = Auth::None;
    api.cors = None;
    published_api::update(&mut tx, &mut api).await.unwrap();
    assert_eq!(api.revision, 2);
    assert_eq!(
        published_api::get(&mut tx, &test.environment, &api.id)
            .await
            .unwrap(),
        Some(api.clone())
    );
    let page = Page::new(None, None);
    let listed = published_api::list(&mut tx, &test.environment, "ORDERS/", page)
        .await
        .unwrap();
    assert_eq!(listed.items.as_slice(), [api.clone()].as_slice());
    assert_eq!(listed.total, 1);

    uses::replace(&mut tx, &api.id, &["adapter/adp_1".to_owned()])
        .await
        .unwrap();
    assert_eq!(
        uses::users(&mut tx, "adapter/adp_1").await.unwrap(),
        ["orders"]
    );
    assert!(
        published_api::delete(&mut tx, &test.environment, &api.id, NOW)
            .await
            .unwrap()
    );
    assert!(
        !published_api::delete(&mut tx, &test.environment, &api.id, NOW)
            .await
            .unwrap()
    );
    assert!(
        uses::users(&mut tx, "adapter/adp_1")
            .await
            .unwrap()
            .is_empty()
    );
    // Name and route are free again.
    published_api::insert(&mut tx, &test.api("orders", "orders/{}"))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = test.store.begin().await.unwrap();
    let taken = published_api::insert(&mut tx, &test.api("orders", "elsewhere"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            taken,
            Error::Taken {
                kind: "published API",
                ..
            }
        ),
        "{taken}"
    );
}

async fn versions_are_listed_highest_first_with_the_name_of_their_flow(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let flow = test.api_flow("quotes");
    flow::insert(&mut tx, &flow).await.unwrap();
    assert_eq!(
        flow::find(&mut tx, &test.environment, "quotes")
            .await
            .unwrap(),
        Some(flow.clone())
    );
    assert_eq!(
        flow::find(&mut tx, &test.environment, flow.id.as_str())
            .await
            .unwrap(),
        Some(flow.clone())
    );
    let api = test.api("orders", "orders");
    published_api::insert(&mut tx, &api).await.unwrap();
    let first = a_version(2, &flow);
    let second = a_version(10, &flow);
    version::insert(&mut tx, &api.id, &first).await.unwrap();
    version::insert(&mut tx, &api.id, &second).await.unwrap();
    assert_eq!(
        version::list(&mut tx, &api.id).await.unwrap(),
        [second.clone(), first.clone()]
    );
    assert_eq!(uses::callers(&mut tx, &flow.id).await.unwrap(), ["orders"]);
    for version in [first, second] {
        let retired = Version {
            status: VersionStatus::Retired,
            sunset_at: Some(NOW),
            retired_at: Some(NOW),
            content: Content {
                response_schema: Some("true".to_owned()),
                ..Content::default()
            },
            ..version
        };
        version::update(&mut tx, &api.id, &retired).await.unwrap();
        assert!(
            version::list(&mut tx, &api.id)
                .await
                .unwrap()
                .contains(&retired)
        );
    }
    assert!(uses::callers(&mut tx, &flow.id).await.unwrap().is_empty());
}

async fn keys_end_and_stay_listed(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let api = test.api("orders", "orders");
    published_api::insert(&mut tx, &api).await.unwrap();
    let mut old = key(&api, "acme", 1);
    let new = key(&api, "acme", 2);
    let other = key(&api, "other", 3);
    for key in [&old, &new, &other] {
        consumer_key::insert(&mut tx, key).await.unwrap();
    }
    let later = NOW.after(Duration::from_secs(60));
    old.standing = old.standing.rotate(NOW, Duration::from_secs(60)).unwrap();
    old.daily_limit = Some(u32::MAX);
    consumer_key::update(&mut tx, &old).await.unwrap();
    assert_eq!(
        consumer_key::get(&mut tx, &api.id, &old.id).await.unwrap(),
        Some(old.clone())
    );
    let listed = consumer_key::list(&mut tx, &api.id, "acme", Page::new(Some(1), None))
        .await
        .unwrap();
    assert_eq!(listed.items.as_slice(), [new.clone()].as_slice());
    assert_eq!(listed.total, 2);

    assert!(
        consumer_key::end_expired(&mut tx, &api.id, NOW)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        consumer_key::end_expired(&mut tx, &api.id, later)
            .await
            .unwrap(),
        [old.id.clone()]
    );
    assert!(
        consumer_key::end_expired(&mut tx, &api.id, later)
            .await
            .unwrap()
            .is_empty()
    );
    let mut ended = consumer_key::end_all(&mut tx, &api.id, later)
        .await
        .unwrap();
    ended.sort();
    assert_eq!(ended, [new.id.clone(), other.id.clone()]);
    let listed = consumer_key::list(&mut tx, &api.id, "", Page::new(None, None))
        .await
        .unwrap();
    assert!(listed.total == 3 && listed.items.iter().all(|key| key.standing.has_ended(later)));
}

async fn an_environment_has_a_base_url_of_its_own(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut found = environment::find(&mut tx, &test.account, "development")
        .await
        .unwrap()
        .unwrap();
    found.base_url = Some("https://api.example.com".to_owned());
    found.name = "dev".to_owned();
    environment::update(&mut tx, &mut found).await.unwrap();
    assert_eq!(found.revision, 2);
    let all = environment::all(&mut tx).await.unwrap();
    assert!(all.contains(&found), "{all:?}");
}
