//! Several control planes on one PostgreSQL, with flows whose schedules began at a chosen time.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::postgres::PostgresLog;
use kanat_message_log::{
    Claim, ClaimBudget, Filter, LeasedWriteOutcome, Message, MessageLog, Outcome, Position, Room,
    Settlement, Tenant, postgres,
};
use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, NodeId};
use kanat_model::page::Page;
use kanat_plan_stream::{Hash, Kind};
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::flow::Flow;
use kanat_store::schedule::Schedule;
use kanat_store::{Store, environment, flow, published, schedule};
use kanat_testing_postgres::Database;
use prost::Message as _;

use crate::app::schedule::outcome;
use crate::app::timetable::sync_schedule_with_definition;
use crate::app::{App, testing};
use crate::push::source::seal_context;

pub struct Planes {
    /// Each with connections of its own.
    pub apps: Vec<App>,
    account: AccountId,
    environment: EnvironmentId,
    database: Database,
}

impl Planes {
    pub async fn start(count: usize) -> Self {
        let database = Database::fresh();
        let mut apps = Vec::new();
        for _ in 0..count {
            apps.push(app(&database).await);
        }
        crate::app::bootstrap::run(&apps[0].store, None)
            .await
            .unwrap();
        let environment = environment::all(&mut apps[0].store.read().await.unwrap())
            .await
            .unwrap()
            .swap_remove(0);
        Self {
            apps,
            account: environment.account_id,
            environment: environment.id,
            database,
        }
    }

    /// Another process takes the place of a control plane, as after its end.
    pub async fn restart(&mut self, n: usize) {
        self.apps[n].store = Store::open(self.database.url()).await.unwrap();
    }

    /// Puts a flow into service at `now` that is due at these times.
    pub async fn deploy(&self, name: &str, cron: &str, timezone: &str, now: Timestamp) -> FlowId {
        let flow = Flow {
            id: FlowId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: String::new(),
            status: Status::Active,
            version: 1,
            trigger_kind: "schedule".to_owned(),
            yaml_config: String::new(),
            sealed_config: None,
            change_summary: String::new(),
            draft: true,
            webhook_token: None,
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.apps[0].store.begin().await.unwrap();
        flow::insert(&mut tx, &flow).await.unwrap();
        tx.commit().await.unwrap();
        self.deploy_again(&flow, cron, timezone, now).await;
        flow.id
    }

    /// The same flow with a definition that says these times.
    pub async fn deploy_again(&self, flow: &Flow, cron: &str, timezone: &str, now: Timestamp) {
        let definition = kanat_flow::parse(&format!(
            "flow: {}\nversion: 1\nsource:\n  connector: shop\n  trigger: schedule\n  schedule: \
             {cron:?}\n  timezone: {timezone}\ntarget:\n  connector: shop\n  endpoint: /in\n  \
             method: POST\n",
            flow.name
        ));
        let definition = definition.unwrap();
        let plan = FlowPlan {
            flow_id: flow.id.to_string(),
            flow_name: flow.name.clone(),
            account_id: flow.account_id.to_string(),
            environment_id: flow.environment_id.to_string(),
            version: flow.version,
            ..FlowPlan::default()
        };
        let id = Kind::Flow.resource_id(flow.id.as_str());
        let body = plan.encode_to_vec();
        let sealed = self.apps[0]
            .sealer
            .seal(&body, &seal_context(&self.environment, &id));
        let mut tx = self.apps[0].store.begin().await.unwrap();
        published::put(
            &mut tx,
            &self.environment,
            &id,
            *Hash::of(&body).as_bytes(),
            sealed,
        )
        .await
        .unwrap();
        sync_schedule_with_definition(&mut tx, flow, &definition, now)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    pub async fn flow(&self, id: &FlowId) -> Flow {
        flow::get(
            &mut self.apps[0].store.read().await.unwrap(),
            &self.environment,
            id,
        )
        .await
        .unwrap()
        .unwrap()
    }

    pub async fn set_status(&self, id: &FlowId, status: Status) {
        let mut flow = self.flow(id).await;
        flow.status = status;
        let mut tx = self.apps[0].store.begin().await.unwrap();
        flow::update(&mut tx, &mut flow).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// The flow's schedule, with its last run as it now stands.
    pub async fn schedule(&self, flow: &FlowId) -> Schedule {
        let found = schedule::of_flow(&mut self.apps[0].store.read().await.unwrap(), flow)
            .await
            .unwrap();
        outcome::live_one(&self.apps[0], found.unwrap())
            .await
            .unwrap()
    }

    /// The flow's schedule as it is written down.
    pub async fn written(&self, flow: &FlowId) -> Schedule {
        schedule::of_flow(&mut self.apps[0].store.read().await.unwrap(), flow)
            .await
            .unwrap()
            .unwrap()
    }

    /// All messages of a flow, in the order of their arrival.
    pub async fn messages(&self, flow: &FlowId) -> Vec<Message> {
        let tenant = Tenant {
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
        };
        let filter = Filter::flow(tenant, flow.clone());
        let mut position = Position::Page(Page::new(Some(Page::MAX_LIMIT), None));
        let mut found = Vec::new();
        loop {
            let page = self.apps[0].log.list(&filter, position).await.unwrap();
            found.extend(page.messages);
            let Some(cursor) = page.next else { break };
            position = Position::After {
                cursor,
                limit: Page::MAX_LIMIT,
            };
        }
        found.sort_by_key(|message| message.seq);
        found
    }

    /// The times that the messages of a flow are for, in order.
    pub async fn fired(&self, flow: &FlowId) -> Vec<Timestamp> {
        let mut times: Vec<_> = self.messages(flow).await.iter().map(scheduled_at).collect();
        times.sort_unstable();
        times
    }

    /// A node takes the flow's message and settles it.
    pub async fn settle(&self, flow: &FlowId, outcome: Outcome) {
        let log = &self.apps[0].log;
        let owner = BootId::generate();
        log.open_lease(&owner, &NodeId::generate(), Duration::from_secs(600))
            .await
            .unwrap();
        let rooms = vec![Room {
            flow_id: flow.clone(),
            messages: 1,
            without_versions: Vec::new(),
        }];
        let claimed = log
            .claim(Claim {
                owner,
                bytes: u64::MAX,
                budgets: vec![ClaimBudget::unbounded(rooms)],
                awaited: Vec::new(),
            })
            .await
            .unwrap()
            .swap_remove(0);
        let settlement = Settlement {
            lease: claimed.lease,
            at: claimed.received_at,
            attempt: 1,
            outcome,
            output: None,
            failure: None,
            trace: Vec::new(),
        };
        assert_eq!(
            log.settle(&settlement).await.unwrap(),
            LeasedWriteOutcome::Done
        );
    }
}

/// Returns the due time of the run that a message is for.
pub fn scheduled_at(message: &Message) -> Timestamp {
    let payload: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
    super::at(payload["scheduled_at"].as_str().unwrap())
}

async fn app(database: &Database) -> App {
    let store = Store::open(database.url()).await.unwrap();
    let log: Arc<dyn MessageLog> = Arc::new(
        PostgresLog::open(database.url(), postgres::Options::default())
            .await
            .unwrap(),
    );
    testing::over(store, log)
}
