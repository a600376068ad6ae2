//! A database that goes away, stands still, or breaks off in the middle.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::Status;
use kanat_testing_postgres::{Cluster, Durability, Line, Programs, Stop};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::sync::Mutex;

use super::LogHarness;
use super::proxy::{Break, Proxy};
use crate::contract::{leased, message, settlement, tenant};
use crate::postgres::{Options, PostgresLog};
use crate::prelude::*;
use crate::{
    AppendOutcome, Claim, ClaimBudget, Error, Filter, Lease, LeasedWriteOutcome, NewMessage,
    NodeLease, Outcome, Placement, Position, RenewalOutcome, Room,
};

const HOUR: Duration = Duration::from_secs(3_600);

pub(super) struct Node {
    pub log: Arc<PostgresLog>,
    boot: BootId,
    lease: Mutex<NodeLease>,
    flow: FlowId,
}

impl Node {
    pub async fn start(url: &str, options: Options) -> Self {
        let log = Arc::new(PostgresLog::open(url, options).await.unwrap());
        let boot = BootId::generate();
        let lease = Mutex::new(
            log.open_lease(&boot, &NodeId::generate(), HOUR)
                .await
                .unwrap(),
        );
        Self {
            log,
            boot,
            lease,
            flow: FlowId::generate(),
        }
    }

    pub fn message(&self) -> NewMessage {
        NewMessage {
            place: Placement::Leased(self.boot.clone()),
            ..message(&self.flow)
        }
    }

    /// Sends until it is taken, as a sender that is told to come back does.
    pub async fn send(&self) -> Lease {
        loop {
            match self.log.append(self.message()).await {
                Ok(appended) => return leased(appended),
                Err(Error::Unavailable(_) | Error::Full) => {
                    tokio::time::sleep(Duration::from_millis(20)).await
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub async fn deliver(&self, lease: &Lease) -> LeasedWriteOutcome {
        loop {
            match self
                .log
                .settle(&settlement(lease, 1, Outcome::Delivered))
                .await
            {
                Ok(settled) => return settled,
                Err(Error::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub async fn ids(&self, status: Option<Status>) -> HashSet<MessageId> {
        let statuses = status.into_iter().collect();
        let filter = Filter {
            statuses,
            ..Filter::flow(tenant(), self.flow.clone())
        };
        let page = Position::Page(kanat_model::page::Page {
            limit: 100_000,
            offset: 0,
        });
        self.log
            .list(&filter, page)
            .await
            .unwrap()
            .messages
            .into_iter()
            .map(|message| message.id)
            .collect()
    }

    async fn claim(&self) -> Result<Vec<crate::ClaimedMessage>, Error> {
        let rooms = vec![Room {
            flow_id: self.flow.clone(),
            messages: 10,
            without_versions: Vec::new(),
        }];
        self.log
            .claim(Claim {
                owner: self.boot.clone(),
                bytes: u64::MAX,
                budgets: vec![ClaimBudget::unbounded(rooms)],
                awaited: Vec::new(),
            })
            .await
    }
}

#[tokio::test]
async fn acknowledges_what_was_written_although_the_answer_was_lost() {
    let place = LogHarness::new();
    let proxy = Proxy::start(place.database.url()).await;
    let node = Node::start(&proxy.url, Options::default()).await;
    proxy.break_line(Break::AfterTheCommit);
    let lease = leased(node.log.append(node.message()).await.unwrap());
    assert!(proxy.is_intact(), "it broke");
    assert_eq!(node.ids(None).await.len(), 1);
    proxy.break_line(Break::AfterTheCommit);
    assert_eq!(
        node.log
            .settle(&settlement(&lease, 1, Outcome::Delivered))
            .await
            .unwrap(),
        LeasedWriteOutcome::Done
    );
    assert!(proxy.is_intact());
    assert_eq!(node.ids(Some(Status::Delivered)).await.len(), 1);

    node.log
        .append(NewMessage {
            place: Placement::Queued,
            ..node.message()
        })
        .await
        .unwrap();
    proxy.break_line(Break::AfterTheCommit);
    let claimed = node.claim().await.unwrap();
    assert!(proxy.is_intact());
    assert_eq!(
        node.deliver(&claimed[0].lease).await,
        LeasedWriteOutcome::Done
    );
    node.log.close().await;
}

#[tokio::test]
async fn writes_nothing_of_what_it_refused() {
    let place = LogHarness::new();
    let proxy = Proxy::start(place.database.url()).await;
    let node = Node::start(&proxy.url, Options::default()).await;
    proxy.break_line(Break::BeforeTheCommit);
    assert!(matches!(
        node.log.append(node.message()).await,
        Err(Error::Unavailable(_))
    ));
    assert!(proxy.is_intact(), "it broke");
    assert_eq!(node.ids(None).await.len(), 0);
    let lease = node.send().await;
    proxy.break_line(Break::BeforeTheCommit);
    assert!(
        node.log
            .settle(&settlement(&lease, 1, Outcome::Delivered))
            .await
            .is_err()
    );
    assert_eq!(node.deliver(&lease).await, LeasedWriteOutcome::Done);

    node.log
        .append(NewMessage {
            place: Placement::Queued,
            ..node.message()
        })
        .await
        .unwrap();
    proxy.break_line(Break::BeforeTheCommit);
    assert!(matches!(node.claim().await, Err(Error::Unavailable(_))));
    assert_eq!(node.claim().await.unwrap().len(), 1);
    node.log.close().await;
}

/// Neither end hears of it, as when a database moves to another machine. One connection for all
/// claims, so that whoever keeps it for nothing is seen.
#[tokio::test]
async fn claims_go_on_after_connections_fell_silent() {
    let place = LogHarness::new();
    for asked in ["WITH RECURSIVE\nowners", "FOR UPDATE SKIP LOCKED"] {
        let line = Line::to(place.database.url());
        let options = Options {
            workers: 1,
            patience: Duration::from_secs(1),
            ..Options::default()
        };
        let node = Node::start(line.url(), options).await;
        line.fall_silent_at(asked);
        let mut taken = 0;
        while line.waits() || taken == 0 {
            let appended = node
                .log
                .append(NewMessage {
                    place: Placement::Queued,
                    ..node.message()
                })
                .await;
            let waiting = node.log.waiting().await;
            let claimed = node.claim().await;
            for error in [appended.err(), waiting.err()].into_iter().flatten() {
                assert!(matches!(error, Error::Unavailable(_)), "{error}");
            }
            taken += claimed.map_or(0, |claimed| claimed.len());
        }
        node.log.close().await;
    }
}

/// One connection for all of them, whose place is lost.
#[tokio::test]
async fn leases_are_renewed_after_answers_stopped_coming() {
    let place = LogHarness::new();
    let line = Line::to(place.database.url());
    let options = Options {
        workers: 1,
        patience: Duration::from_secs(1),
        ..Options::default()
    };
    let node = Node::start(line.url(), options).await;
    node.log
        .append(NewMessage {
            place: Placement::Queued,
            ..node.message()
        })
        .await
        .unwrap();
    line.drop_answers();
    assert_eq!(node.claim().await.unwrap().len(), 1);
    let again = async {
        while line.waits() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        loop {
            match node.log.renew_lease(&mut *node.lease.lock().await).await {
                Ok(renewed) => break renewed,
                Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
            }
        }
    };
    let renewed = tokio::time::timeout(Duration::from_secs(60), again)
        .await
        .expect("its place is lost for good");
    assert_eq!(renewed, RenewalOutcome::Done);
    tokio::time::timeout(Duration::from_secs(60), node.log.close())
        .await
        .expect("nothing holds it up");
}

/// Messages from several senders, while the database stops and starts again.
async fn survives(stop: Stop) {
    let cluster = Cluster::start(Programs::find().unwrap(), Durability::OnDisk).unwrap();
    cluster.create_database("messages").unwrap();
    let node = Node::start(&cluster.url("messages"), Options::default()).await;
    let stopped = std::sync::atomic::AtomicBool::new(false);
    let senders = (0..8).map(|_| async {
        let mut acknowledged = Vec::new();
        // At least some before the stop, and some after it.
        while acknowledged.len() < 60 || !stopped.load(std::sync::atomic::Ordering::SeqCst) {
            let lease = node.send().await;
            assert_eq!(node.deliver(&lease).await, LeasedWriteOutcome::Done);
            acknowledged.push(lease.message_id);
        }
        acknowledged
    });
    let outage = async {
        while node.log.stats().settled < 100 {
            node.log.changed().changed().await.unwrap();
        }
        let cluster = &cluster;
        tokio::task::block_in_place(|| {
            cluster.stop(stop).unwrap();
        });
        assert!(matches!(
            node.log.append(node.message()).await,
            Err(Error::Unavailable(_))
        ));
        assert!(matches!(node.log.ping().await, Err(Error::Unavailable(_))));
        tokio::task::block_in_place(|| cluster.start_again().unwrap());
        stopped.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let (acknowledged, ()) = futures::future::join(join_all(senders), outage).await;
    let acknowledged: HashSet<MessageId> = acknowledged.into_iter().flatten().collect();
    let delivered = node.ids(Some(Status::Delivered)).await;
    assert!(
        acknowledged.is_subset(&delivered),
        "{} of {}",
        delivered.len(),
        acknowledged.len()
    );
    node.log.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_restart_of_the_database() {
    survives(Stop::Fast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_crash_of_the_database() {
    survives(Stop::Immediate).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refuses_at_once_what_a_database_that_stands_still_cannot_take() {
    let cluster = Cluster::start(Programs::find().unwrap(), Durability::OnDisk).unwrap();
    cluster.create_database("messages").unwrap();
    let node = Node::start(
        &cluster.url("messages"),
        Options {
            max_queued_operations: 10,
            ..Options::default()
        },
    )
    .await;
    node.send().await;
    cluster.pause().unwrap();
    let mut taken = Vec::new();
    let full = loop {
        let mut append = Box::pin(node.log.append(node.message()));
        match futures::poll!(append.as_mut()) {
            std::task::Poll::Pending => taken.push(append),
            std::task::Poll::Ready(result) => break result,
        }
        tokio::task::yield_now().await;
    };
    assert!(matches!(full, Err(Error::Full)), "{full:?}");
    cluster.resume().unwrap();
    for result in join_all(taken).await {
        assert!(matches!(result.unwrap(), AppendOutcome::Leased(_)));
    }
    node.log.close().await;
}

#[tokio::test]
async fn a_transaction_that_stands_still_is_ended_by_the_database() {
    let place = LogHarness::new();
    let node = Node::start(place.database.url(), Options::default()).await;
    let mut conn = place.connect().await;
    // As in a process that was stopped in the middle of a group, but with less patience.
    sqlx::raw_sql("SET idle_in_transaction_session_timeout = '50ms'")
        .execute(&mut conn)
        .await
        .unwrap();
    let space = place.connecting().space;
    crate::postgres::sequence::begin(&mut conn, space, 1)
        .await
        .unwrap();
    let begin = node.log.last_event().await.unwrap();
    node.send().await;
    let mut changed = node.log.changed();
    while node.log.last_event().await.unwrap() == begin {
        changed.changed().await.unwrap();
    }
}

/// As on a server that ends sessions which are idle, or behind a firewall that does.
#[tokio::test]
async fn a_session_that_was_ended_while_it_was_idle_costs_nobody_a_refusal() {
    let place = LogHarness::new();
    let node = Node::start(place.database.url(), Options::default()).await;
    let mut conn = place.connect().await;
    let end_others = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for _ in 0..3 {
        let lease = leased(node.log.append(node.message()).await.unwrap());
        sqlx::raw_sql(end_others).execute(&mut conn).await.unwrap();
        assert_eq!(
            node.log
                .settle(&settlement(&lease, 1, Outcome::Delivered))
                .await
                .unwrap(),
            LeasedWriteOutcome::Done
        );
    }
    node.log.close().await;
}

/// A managed service has settings for everybody's sessions. Ours have their own.
#[tokio::test]
async fn sessions_have_their_own_bounds_whatever_the_database_sets_for_everybody() {
    let place = LogHarness::new();
    let mut conn = place.connect().await;
    let settings = [
        ("statement_timeout", "5s", "30s"),
        ("lock_timeout", "1s", "10s"),
        ("idle_in_transaction_session_timeout", "1s", "5s"),
        ("idle_session_timeout", "1s", "0"),
    ];
    for (name, value, _) in settings {
        alter(&mut conn, &format!("SET {name} = ''{value}''")).await;
    }
    let pool = place.connecting().pool(1);
    let mut session = place.connect().await;
    for (name, _, expected) in settings {
        let show = || sqlx::query_scalar::<_, String>("SELECT current_setting($1)").bind(name);
        assert_eq!(
            show().fetch_one(&mut session).await.unwrap(),
            expected,
            "{name}"
        );
        assert_eq!(show().fetch_one(&pool).await.unwrap(), expected, "{name}");
    }
    pool.close().await;
}

#[tokio::test]
async fn a_server_without_a_free_connection_says_what_to_do() {
    let place = LogHarness::new();
    let mut conn = place.connect().await;
    alter(&mut conn, "CONNECTION LIMIT 0").await;
    // The limit is not for those who may do everything.
    let role = format!("tenant_{}", MessageId::generate().as_str());
    let execute = async |conn: &mut PgConnection, statement: String| {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(conn)
            .await
            .unwrap();
    };
    execute(&mut conn, format!("CREATE ROLE {role} LOGIN")).await;
    let url = place
        .database
        .url()
        .replace("postgres@", &format!("{role}@"));
    let refused = PostgresLog::open(&url, Options::default())
        .await
        .err()
        .unwrap();
    execute(&mut conn, format!("DROP ROLE {role}")).await;
    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    assert!(
        refused.to_string().contains("lower --store-connections"),
        "{refused}"
    );
}

/// Changes the database that a connection is to.
async fn alter(conn: &mut PgConnection, change: &str) {
    let statement = format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I {change}', current_database()); END $$"
    );
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(conn)
        .await
        .unwrap();
}
