//! The API over a real store and a real log, with messages that have ended already.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kanat_auth::Role;
use kanat_message_log::{
    AppendOutcome, LeasedWriteOutcome, MessageLog, NewMessage, Outcome, Placement, Settlement,
    TraceRecord,
};
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::{ErrorKind, Failure, Trigger};
use kanat_plan_stream::{Hash, Kind};
use kanat_proto::plan::v1::{FlowPlan, Retry};
use kanat_proto::v1 as wire;
use kanat_proto::v1::message_service_server::MessageService;
use kanat_store::published;
use prost::Message;
use tempfile::TempDir;
use tonic::{Request, Response, Status};

use crate::app::{Caller, testing};
use crate::grpc::Api;
use crate::push::source::seal_context;

/// The one flow of all messages.
pub const FLOW: &str = "flw_1";

/// The API on a fresh store and log.
pub struct Fixture {
    pub api: Api,
    pub caller: Caller,
    boot: BootId,
    _folder: TempDir,
}

impl Fixture {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        let caller = testing::caller(&app, Role::Editor).await;
        let boot = BootId::generate();
        app.log
            .open_lease(&boot, &NodeId::from("node_1"), Duration::from_secs(600))
            .await
            .unwrap();
        Self {
            api: Api { app: Arc::new(app) },
            caller,
            boot,
            _folder: folder,
        }
    }

    /// A fixture whose flow is deployed as version 2, with three retries.
    pub async fn deployed() -> Self {
        let fixture = Self::new().await;
        fixture
            .deploy(FlowPlan {
                version: 2,
                ..FlowPlan::default()
            })
            .await;
        fixture
    }

    pub async fn deploy(&self, plan: FlowPlan) {
        let retry = Some(Retry {
            count: 3,
            ..Retry::default()
        });
        let plan = FlowPlan {
            flow_id: FLOW.to_owned(),
            flow_name: "orders".to_owned(),
            retry,
            ..plan
        };
        let app = &self.api.app;
        let environment = &self.caller.environment_id;
        let id = Kind::Flow.resource_id(FLOW);
        let body = plan.encode_to_vec();
        let sealed = app.sealer.seal(&body, &seal_context(environment, &id));
        let mut tx = app.store.begin().await.unwrap();
        published::put(
            &mut tx,
            environment,
            &id,
            *Hash::of(&body).as_bytes(),
            sealed,
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }

    pub fn request<T>(&self, message: T) -> Request<T> {
        Self::request_of(self.caller.clone(), message)
    }

    pub fn request_of<T>(caller: Caller, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.extensions_mut().insert(caller);
        request
    }

    /// A message of version 1 that ended, or waits for a retry.
    pub async fn ended(&self, payload: &str, outcome: Outcome) -> String {
        let id = MessageId::generate();
        let message = NewMessage {
            id: id.clone(),
            account_id: self.caller.account_id.clone(),
            environment_id: self.caller.environment_id.clone(),
            flow_id: FlowId::from(FLOW),
            flow_name: "orders".to_owned(),
            flow_version: 1,
            trigger: Trigger::Webhook,
            raw_body: Bytes::from(payload.to_owned()),
            payload: None,
            request: Bytes::from_static(br#"{"headers":{"x-shop":"7"}}"#),
            received_at: Timestamp::now(),
            ordering_key: Some(id.to_string()),
            dedupe_keys: Vec::new(),
            replay_of: None,
            batch_id: None,
            max_attempts: 1,
            traceparent: None,
            place: Placement::Leased(self.boot.clone()),
        };
        let AppendOutcome::Leased(lease) = self.log().append(message).await.unwrap() else {
            panic!("it is leased")
        };
        let failure = Failure {
            kind: ErrorKind::Status,
            message: "the target answered 500".to_owned(),
            field: None,
            expression: None,
        };
        let record = TraceRecord {
            at: Timestamp::now(),
            stage: "delivery".to_owned(),
            name: "ci_1".to_owned(),
            status: "failed".to_owned(),
            duration_ms: 12,
            request: Some(r#"{"n":1.00}"#.to_owned()),
            response: None,
            error: Some("the target answered 500".to_owned()),
            attempt: 1,
        };
        let failed = outcome != Outcome::Delivered;
        let settlement = Settlement {
            lease,
            at: Timestamp::now(),
            attempt: 1,
            outcome,
            output: Some(Bytes::from_static(br#"{"sent":1.00}"#)),
            failure: failed.then_some(failure),
            trace: vec![record],
        };
        assert_eq!(
            self.log().settle(&settlement).await.unwrap(),
            LeasedWriteOutcome::Done
        );
        id.into_string()
    }

    pub fn log(&self) -> &dyn MessageLog {
        &*self.api.app.log
    }

    pub async fn list(
        &self,
        request: wire::ListMessagesRequest,
    ) -> Result<wire::ListMessagesResponse, Status> {
        let request = wire::ListMessagesRequest {
            flow_id: FLOW.to_owned(),
            ..request
        };
        self.api
            .list_messages(self.request(request))
            .await
            .map(Response::into_inner)
    }

    pub async fn get(&self, id: &str) -> Result<wire::Message, Status> {
        self.api
            .get_message(self.request(wire::GetMessageRequest { id: id.to_owned() }))
            .await
            .map(Response::into_inner)
    }

    pub async fn retry(&self, id: &str) -> Result<wire::RetryMessageResponse, Status> {
        let request = self.request(wire::RetryMessageRequest { id: id.to_owned() });
        self.api
            .retry_message(request)
            .await
            .map(Response::into_inner)
    }

    pub async fn replay(&self, id: &str) -> Result<wire::ReplayMessageResponse, Status> {
        let request = self.request(wire::ReplayMessageRequest { id: id.to_owned() });
        self.api
            .replay_message(request)
            .await
            .map(Response::into_inner)
    }
}
