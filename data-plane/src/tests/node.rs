//! A node under test: its log in a folder of its own, its plans from [`Control`], and requests
//! straight to its service.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kanat_auth::Sealer;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_message_log::{Message, MessageLog, Tenant, TraceRecord};
use kanat_model::id::{AccountId, EnvironmentId, MessageId, NodeId};
use kanat_net::egress::{LocalTargets, Policy};
use kanat_net::outbound;
use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{
    FlowPlan, Retry, Target as PlanTarget, Trigger, Verify, Webhook, WebhookToken,
};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use super::control::{ACCOUNT, Control, ENVIRONMENT};
use crate::{DataPlane, Options};

pub struct Node {
    pub control: Control,
    pub plane: DataPlane,
    pub log: Arc<dyn MessageLog>,
    folder: tempfile::TempDir,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Node {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Its control plane does not answer.
    pub async fn without_plans() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), Control::silent(), |_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), Control::new(), change)
            .await
            .ready()
            .await
    }

    async fn in_folder(
        folder: tempfile::TempDir,
        control: Control,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        Self::on_log(folder, sqlite::Options::default(), control, change).await
    }

    /// On a log with these options.
    pub async fn with_log(options: sqlite::Options) -> Self {
        Self::on_log(
            tempfile::tempdir().unwrap(),
            options,
            Control::new(),
            |_| {},
        )
        .await
        .ready()
        .await
    }

    /// One of several on a log that they share.
    pub async fn beside(log: Arc<dyn MessageLog>, name: &str, control: Control) -> Self {
        let named = |options: &mut Options| options.node_id = NodeId::new(name);
        Self::on(tempfile::tempdir().unwrap(), log, control, named)
            .await
            .ready()
            .await
    }

    /// A node whose lease lasts for so long.
    pub async fn with_lease(log: Arc<dyn MessageLog>, lease: Duration) -> Self {
        let with_lease = |options: &mut Options| options.lease = lease;
        Self::on(
            tempfile::tempdir().unwrap(),
            log,
            Control::new(),
            with_lease,
        )
        .await
        .ready()
        .await
    }

    async fn on_log(
        folder: tempfile::TempDir,
        log: sqlite::Options,
        control: Control,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let log = SqliteLog::open(&folder.path().join("messages.db"), log)
            .await
            .unwrap();
        Self::on(folder, Arc::new(log), control, change).await
    }

    async fn on(
        folder: tempfile::TempDir,
        log: Arc<dyn MessageLog>,
        control: Control,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let policy = Arc::new(Policy::new(Vec::new(), LocalTargets::Allowed));
        let outbound = outbound::Client::new(policy, &outbound::Options::default()).unwrap();
        let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
        let mut options = Options::new(NodeId::new("node_1"), folder.path().to_owned());
        change(&mut options);
        let plane = DataPlane::start(
            options,
            Arc::clone(&log),
            control.client(),
            outbound,
            sealer,
        )
        .await;
        Self {
            control,
            plane,
            log,
            folder,
        }
    }

    /// Waits until plans are in place and the log has granted a lease.
    async fn ready(self) -> Self {
        self.control.again().await;
        while !self.plane.ready() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self
    }

    /// Drains, closes the log, and starts again on the same folder with the same control plane.
    pub async fn restart(self) -> Self {
        self.plane.drain(Duration::from_secs(60)).await;
        self.log.close().await;
        Self::in_folder(self.folder, self.control, |_| {})
            .await
            .ready()
            .await
    }

    /// Restarts on an empty log with its last good plans, as if the log had been restored from an
    /// early backup.
    pub async fn restart_on_empty_log(self) -> Self {
        self.plane.drain(Duration::from_secs(60)).await;
        self.log.close().await;
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_str().unwrap().starts_with("messages.") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        Self::in_folder(self.folder, self.control, |_| {})
            .await
            .ready()
            .await
    }

    pub async fn stop(self) {
        self.plane.drain(Duration::from_secs(60)).await;
        self.log.close().await;
    }

    pub async fn send<B>(&self, request: Request<B>) -> Answer
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<kanat_net::body::BoxError>,
    {
        let response = self.plane.service().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text,
        }
    }

    /// Posts JSON to the webhook of `token`.
    pub async fn post(&self, token: &str, body: impl Into<Bytes>) -> Answer {
        self.send(webhook(token, body)).await
    }

    /// Posts JSON, which must be accepted, and gives the message's id.
    pub async fn accepted(&self, token: &str, body: impl Into<Bytes>) -> MessageId {
        let answer = self.post(token, body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        answer.id("accepted")
    }

    /// The message once nothing more will happen to it.
    pub async fn finished(&self, id: &MessageId) -> Message {
        self.message_when(id, |message| message.status.is_final())
            .await
    }

    pub async fn message_when(&self, id: &MessageId, holds: impl Fn(&Message) -> bool) -> Message {
        let mut changed = self.log.changed();
        loop {
            changed.borrow_and_update();
            let message = self
                .log
                .get(&tenant(), id)
                .await
                .unwrap()
                .expect("an accepted message is in the log");
            if holds(&message) {
                return message;
            }
            changed.changed().await.unwrap();
        }
    }

    pub async fn trace(&self, id: &MessageId) -> Vec<TraceRecord> {
        self.log.trace(&tenant(), id).await.unwrap()
    }

    /// How many messages were ever stored.
    pub fn stored(&self) -> u64 {
        self.log.stats().appended
    }
}

impl Answer {
    pub fn id(&self, status: &str) -> MessageId {
        let body: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        assert_eq!(body["status"], status, "{}", self.text);
        MessageId::new(body["messageId"].as_str().unwrap())
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }
}

pub fn tenant() -> Tenant {
    Tenant {
        account_id: AccountId::new(ACCOUNT),
        environment_id: EnvironmentId::new(ENVIRONMENT),
    }
}

pub fn webhook(token: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post(format!("/webhooks/receive/{token}"))
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

/// A flow from the webhook of token `t-<name>` to `POST /in` of instance `ci_<name>`, that passes
/// its payload on.
pub fn flow(name: &str) -> FlowPlan {
    let token = WebhookToken {
        sha256: Sha256::digest(format!("t-{name}")).to_vec(),
        expires_at: 0,
    };
    FlowPlan {
        flow_id: format!("flw_{name}"),
        flow_name: name.to_owned(),
        account_id: ACCOUNT.to_owned(),
        environment_id: ENVIRONMENT.to_owned(),
        version: 1,
        trigger: Some(Trigger {
            kind: Some(Kind::Webhook(Webhook {
                tokens: vec![token],
                verify: None,
            })),
        }),
        target: Some(PlanTarget {
            instance: format!("ci_{name}"),
            endpoint: "/in".to_owned(),
            method: "POST".to_owned(),
            headers: Vec::new(),
            timeout_ms: 30_000,
            success_when: String::new(),
        }),
        retry: Some(Retry {
            count: 3,
            duration_ms: 1,
            ..Retry::default()
        }),
        ..FlowPlan::default()
    }
}

pub fn verified(mut plan: FlowPlan, verify: Verify) -> FlowPlan {
    if let Some(Kind::Webhook(webhook)) = plan
        .trigger
        .as_mut()
        .and_then(|trigger| trigger.kind.as_mut())
    {
        webhook.verify = Some(verify);
    }
    plan
}

impl Node {
    /// Deploys `flow` with an instance of its own that points at `url`.
    pub async fn deploy(&self, flow: &FlowPlan, url: &str) {
        let id = flow.target.as_ref().unwrap().instance.clone();
        self.control
            .instance(&id, &format!("{{\"base_url\":\"{url}\"}}"))
            .await;
        self.control.flow(flow).await;
    }
}
