//! The process dies at one step of a message's life, twice, while 200 messages come in: `kanat up`
//! on SQLite, and a node of its own on PostgreSQL.

use std::time::Duration;

use kanat_tests::split::{Split, TestProcess};
use kanat_tests::wait::DEADLINE;
use kanat_tests::{Rest, TestApp, until};

use super::kept::{self, FLOW, Kill};
use super::senders::Senders;

const MESSAGES: usize = 200;
const FAILPOINT: &str = "KANAT_FAILPOINT";

/// Default lease of a process.
const LEASE: Duration = Duration::from_secs(30);

/// The process that dies, with the deployment around it.
enum Subject {
    Up(Box<TestApp>),
    Node {
        control: Box<TestProcess>,
        node: Box<TestProcess>,
        _split: Split,
    },
}

impl Subject {
    async fn on_sqlite() -> Self {
        Self::Up(Box::new(TestApp::start().await))
    }

    async fn on_postgres() -> Self {
        let split = Split::new();
        let control = Box::new(split.control_plane("control").await);
        let node = Box::new(split.node("node", &[&control]).await);
        Self::Node {
            control,
            node,
            _split: split,
        }
    }

    fn api(&self) -> &Rest {
        match self {
            Self::Up(app) => &app.api,
            Self::Node { control, .. } => &control.api,
        }
    }

    /// Deploys the flow; gives its id, and where messages are posted.
    async fn deploy(&self, target: &str) -> (String, String) {
        self.api().http_instance("erp", target).await;
        let (flow, url) = self.api().deployed(FLOW).await;
        match self {
            Self::Up(_) => (flow, url),
            Self::Node { node, .. } => {
                node.becomes_ready().await;
                (flow, format!("{}{url}", node.base))
            }
        }
    }

    /// Starts again, to die where `point` is reached for the n-th time; for good when there is
    /// none.
    async fn restart(&mut self, point: Option<(&str, usize)>) {
        let armed = point
            .map(|(point, hits)| format!("{point}:{hits}"))
            .unwrap_or_default();
        match self {
            Self::Up(app) => app.restart_with(&[(FAILPOINT, &armed)]).await,
            Self::Node { node, .. } => node.restart_with(&[(FAILPOINT, &armed)]).await,
        }
    }

    async fn kill(&mut self) {
        match self {
            Self::Up(app) => app.kill().await,
            Self::Node { node, .. } => node.kill().await,
        }
    }

    /// Waits for a death at `point`.
    async fn died(&mut self, point: &str, flow: &str) -> Kill {
        match self {
            Self::Up(app) => return died(app, point).await,
            Self::Node { node, .. } => dies(node.ended(), point).await,
        }
        self.dead(flow).await
    }

    /// Counts the messages that the death of the process interrupted.
    async fn dead(&self, flow: &str) -> Kill {
        match self {
            Self::Up(_) => Kill::unseen(),
            Self::Node { control, .. } => Kill::seen(&control.api, flow, LEASE).await,
        }
    }
}

/// Waits for a death of `kanat up` at `point`.
pub async fn died(app: &mut TestApp, point: &str) -> Kill {
    dies(app.ended(), point).await;
    Kill::unseen()
}

async fn dies(ended: impl Future<Output = Option<i32>>, point: &str) {
    let ended = tokio::time::timeout(DEADLINE / 2, ended).await;
    let code = ended.unwrap_or_else(|_| {
        panic!("nothing died at {point}: is kanat built with --features failpoints?")
    });
    assert_eq!(code, None, "a signal ended it");
}

/// Dies where `point` is reached for the n-th time, at each start for another n.
async fn dies_at(mut subject: Subject, point: &str, hits: [usize; 2]) {
    let target = kept::target().await;
    let (flow, url) = subject.deploy(&target.url()).await;
    subject.kill().await;
    subject.restart(Some((point, hits[0]))).await;
    let mut senders = Senders::start(subject.api(), &[url], MESSAGES);
    let first = subject.died(point, &flow).await;
    subject.restart(Some((point, hits[1]))).await;
    let second = subject.died(point, &flow).await;
    subject.restart(None).await;
    senders.finished().await;
    kept::nothing_is_lost(
        point,
        &senders,
        subject.api(),
        &flow,
        &target,
        &[first, second],
    )
    .await;
}

/// Every test, on SQLite and on PostgreSQL.
macro_rules! on_both_databases {
    ($($test:ident)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::Subject::on_sqlite().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::Subject::on_postgres().await).await;
            })*
        }
    };
}

on_both_databases! {
    dying_before_the_commit_of_what_came_in_loses_nothing
    dying_after_the_commit_of_what_came_in_loses_nothing
    dying_before_the_answer_to_the_sender_loses_nothing
    dying_after_the_mapping_loses_nothing
    dying_before_the_target_s_answer_loses_nothing
    dying_after_the_target_s_answer_loses_nothing
    dying_before_the_outcome_is_written_loses_nothing
    dying_after_the_outcome_is_written_loses_nothing
    dying_after_a_claim_loses_nothing
}

async fn dying_before_the_commit_of_what_came_in_loses_nothing(subject: Subject) {
    dies_at(subject, "accept.before_commit", [50, 70]).await;
}

async fn dying_after_the_commit_of_what_came_in_loses_nothing(subject: Subject) {
    dies_at(subject, "accept.after_commit", [50, 70]).await;
}

async fn dying_before_the_answer_to_the_sender_loses_nothing(subject: Subject) {
    dies_at(subject, "accept.before_answer", [50, 70]).await;
}

async fn dying_after_the_mapping_loses_nothing(subject: Subject) {
    dies_at(subject, "run.mapped", [50, 70]).await;
}

async fn dying_after_the_target_s_answer_loses_nothing(subject: Subject) {
    dies_at(subject, "delivery.answered", [50, 70]).await;
}

async fn dying_before_the_outcome_is_written_loses_nothing(subject: Subject) {
    dies_at(subject, "settle.before_commit", [50, 70]).await;
}

async fn dying_after_the_outcome_is_written_loses_nothing(subject: Subject) {
    dies_at(subject, "settle.after_commit", [50, 70]).await;
}

async fn dying_after_a_claim_loses_nothing(subject: Subject) {
    dies_at(subject, "claim.taken", [15, 20]).await;
}

/// Messages and ends are answered before the tables of the SQLite log have them, but for those that
/// go to disk together with a retry or a claim: these go into the tables at once.
#[tokio::test]
async fn dying_before_the_tables_have_it_loses_nothing() {
    dies_at(Subject::on_sqlite().await, "fold.before_commit", [10, 15]).await;
}

#[tokio::test]
async fn dying_after_the_tables_have_it_loses_nothing() {
    dies_at(Subject::on_sqlite().await, "fold.after_commit", [10, 15]).await;
}

/// The one step that lies at the target: it has the request, and has not answered.
async fn dying_before_the_target_s_answer_loses_nothing(mut subject: Subject) {
    const HANGS: [usize; 2] = [50, 120];
    let target = kept::target_that_hangs(&HANGS).await;
    let (flow, url) = subject.deploy(&target.url()).await;
    let mut senders = Senders::start(subject.api(), &[url], MESSAGES);
    let mut kills = Vec::new();
    for at in HANGS {
        until("the target hangs", || async {
            (target.received().len() >= at).then_some(())
        })
        .await;
        subject.kill().await;
        kills.push(subject.dead(&flow).await);
        subject.restart(None).await;
    }
    senders.finished().await;
    kept::nothing_is_lost(
        "delivery.before_answer",
        &senders,
        subject.api(),
        &flow,
        &target,
        &kills,
    )
    .await;
}
