//! Fixture for tests of use-cases.

use std::path::Path;
use std::sync::Arc;

use kanat_auth::{Role, Sealer};
use kanat_message_log::MessageLog;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{ApiKeyId, FlowId};
use kanat_net::egress::Policy;
use kanat_net::outbound;
use kanat_store::flow::Flow;
use kanat_store::{Store, environment, flow};

use super::flow::DeployQueues;
use super::{App, Call, Caller, Credential, IfMatch};
use crate::identity::IdentityProviders;
use crate::push::Hub;
use crate::push::source::Source;
use crate::tasks::Tasks;

/// Over this store and this log, with no node.
pub fn over(store: Store, log: Arc<dyn MessageLog>) -> App {
    let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
    let policy = Arc::new(Policy::new(Vec::new(), Default::default()));
    let tasks = Tasks::default();
    let identities = IdentityProviders::new(Vec::new(), &tasks).unwrap();
    let source = Source::new(store.clone(), Arc::clone(&sealer));
    App {
        hub: Hub::new(source, tasks.clone()),
        tasks,
        deploy_queues: DeployQueues::default(),
        batch_jobs: Arc::default(),
        store,
        log,
        sealer,
        master_keys: Arc::default(),
        outbound: outbound::Client::new(policy, &outbound::Options::default()).unwrap(),
        public_url: crate::PublicUrl::default(),
        api_url: crate::PublicUrl::default(),
        adapters: kanat_script::Pool::new(kanat_script::Options::default()),
        denials: Arc::default(),
        identities,
        retention: Default::default(),
        mailer: None,
    }
}

/// Over new files in this folder, with the first account and its environment.
pub async fn in_folder(folder: &Path) -> App {
    let store = Store::open_file(&folder.join("kanat.db")).await.unwrap();
    crate::app::bootstrap::run(&store, None).await.unwrap();
    let log = SqliteLog::open(folder.join("messages.db"), sqlite::Options::default())
        .await
        .unwrap();
    over(store, Arc::new(log))
}

/// Somebody with this role in the first environment.
pub async fn caller(app: &App, role: Role) -> Caller {
    let environment = environment::all(&mut app.store.read().await.unwrap())
        .await
        .unwrap()
        .swap_remove(0);
    Caller {
        account_id: environment.account_id,
        environment_id: environment.id,
        role,
        credential: Credential::Key(ApiKeyId::generate()),
        name: "test".to_owned(),
        email: None,
        bound_to: None,
        expires_at: None,
        idempotency_id: None,
    }
}

/// A call of somebody with this role in the first environment, which says nothing beside its
/// message.
pub async fn call(app: &App, role: Role) -> Call {
    Call {
        app: Arc::new(app.clone()),
        caller: caller(app, role).await,
        if_match: IfMatch::default(),
        trace_context: None,
        audit_context: Default::default(),
    }
}

/// A flow of the first environment that the store takes for deployed; nodes have heard nothing of
/// it.
pub async fn flow(app: &App, name: &str) -> Flow {
    let mut tx = app.store.begin().await.unwrap();
    let environment = environment::all(&mut tx).await.unwrap().swap_remove(0);
    let flow = Flow {
        id: FlowId::generate(),
        account_id: environment.account_id,
        environment_id: environment.id,
        name: name.to_owned(),
        description: String::new(),
        status: Status::Active,
        version: 1,
        trigger_kind: "poll".to_owned(),
        yaml_config: String::new(),
        sealed_config: None,
        change_summary: String::new(),
        draft: true,
        webhook_token: None,
        revision: 1,
        created_at: Timestamp::now(),
        updated_at: Timestamp::now(),
    };
    flow::insert(&mut tx, &flow).await.unwrap();
    tx.commit().await.unwrap();
    flow
}
