//! A control plane on a temporary folder, and clients with a credential.

use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_control_plane::{ControlPlane, Options, PublicService, PublicUrl};
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_message_log::{MessageLog, Tenant};
use kanat_model::Secret;
use kanat_net::egress::{LocalTargets, Policy};
use kanat_net::outbound;
use kanat_proto::v1::api_key_service_client::ApiKeyServiceClient;
use kanat_proto::v1::connector_service_client::ConnectorServiceClient;
use kanat_proto::v1::environment_service_client::EnvironmentServiceClient;
use kanat_proto::v1::flow_service_client::FlowServiceClient;
use kanat_proto::v1::lookup_table_service_client::LookupTableServiceClient;
use kanat_proto::v1::{CreateConnectorInstanceRequest, Json, ListEnvironmentsRequest};
use kanat_store::Store;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Status};
use tonic_types::StatusExt;

pub const OWNER: &str = "kanat_ak_0123456789abcdefghijklmnopqrstuvwxyz";

pub struct TestPlane {
    pub plane: ControlPlane,
    pub log: Arc<dyn MessageLog>,
    _folder: tempfile::TempDir,
}

/// Adds an API key to every call.
#[derive(Clone)]
pub struct Credential {
    key: String,
}

pub type AuthorizedService = InterceptedService<PublicService, Credential>;

impl TestPlane {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("config.db"))
            .await
            .unwrap();
        let log = SqliteLog::open(folder.path().join("log.db"), sqlite::Options::default())
            .await
            .unwrap();
        let log: Arc<dyn MessageLog> = Arc::new(log);
        let policy = Arc::new(Policy::new(Vec::new(), LocalTargets::Allowed));
        let outbound = outbound::Client::new(policy, &outbound::Options::default()).unwrap();
        let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
        let public_url = PublicUrl::default();
        public_url.set("https://kanat.example/");
        let options = Options {
            bootstrap_api_key: Some(Secret::new(OWNER.to_owned())),
            public_url,
            ..Options::default()
        };
        let plane = ControlPlane::start(options, store, Arc::clone(&log), sealer, outbound)
            .await
            .unwrap();
        assert!(
            plane.new_owner_key().is_none(),
            "the key was chosen, so there is nothing to show"
        );
        Self {
            plane,
            log,
            _folder: folder,
        }
    }

    pub fn as_owner(&self) -> AuthorizedService {
        self.with_key(OWNER)
    }

    pub fn with_key(&self, key: &str) -> AuthorizedService {
        let key = key.to_owned();
        InterceptedService::new(self.plane.service(), Credential { key })
    }

    pub fn flows(&self) -> FlowServiceClient<AuthorizedService> {
        FlowServiceClient::new(self.as_owner())
    }

    pub fn tables(&self) -> LookupTableServiceClient<AuthorizedService> {
        LookupTableServiceClient::new(self.as_owner())
    }

    pub fn connectors(&self) -> ConnectorServiceClient<AuthorizedService> {
        ConnectorServiceClient::new(self.as_owner())
    }

    pub fn keys(&self) -> ApiKeyServiceClient<AuthorizedService> {
        ApiKeyServiceClient::new(self.as_owner())
    }

    /// The id of an instance of the `http` entry.
    pub async fn http_instance(&self, name: &str) -> String {
        let config = r#"{"base_url": "http://127.0.0.1:9", "auth": "bearer", "token": "hunter2"}"#;
        let new = CreateConnectorInstanceRequest {
            catalog_id: "http".to_owned(),
            name: name.to_owned(),
            display_name: None,
            config: Some(Json {
                text: config.to_owned(),
            }),
        };
        self.connectors()
            .create_connector_instance(new)
            .await
            .unwrap()
            .into_inner()
            .id
    }

    /// Whose messages those of the default environment are.
    pub async fn tenant(&self, environment_id: &str) -> Tenant {
        let mut tx = self.plane.store().read().await.unwrap();
        let account = kanat_store::account::first(&mut tx).await.unwrap().unwrap();
        Tenant {
            account_id: account.id,
            environment_id: environment_id.into(),
        }
    }

    /// Returns the generation of the default environment.
    pub async fn generation(&self) -> u64 {
        let mut client = EnvironmentServiceClient::new(self.as_owner());
        let found = client
            .list_environments(ListEnvironmentsRequest::default())
            .await
            .unwrap()
            .into_inner();
        let mut environments = found.data.into_iter();
        let default = environments.find(|environment| environment.is_default);
        let environment = default.unwrap().id.into();
        let mut tx = self.plane.store().read().await.unwrap();
        kanat_store::published::set_identity::of(&mut tx, &environment)
            .await
            .unwrap()
            .unwrap()
            .generation
    }
}

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let value: AsciiMetadataValue = format!("Bearer {}", self.key).parse().unwrap();
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }
}

/// Code and fields at fault of a refused call.
pub fn faults(status: &Status) -> (tonic::Code, Vec<String>) {
    let details = status.get_error_details();
    let violations = details
        .bad_request()
        .map(|bad| bad.field_violations.clone())
        .unwrap_or_default();
    (
        status.code(),
        violations
            .into_iter()
            .map(|violation| violation.field)
            .collect(),
    )
}
