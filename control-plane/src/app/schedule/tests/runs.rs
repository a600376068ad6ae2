//! Outcomes of runs, and the effects of pauses, changes and downtime on them.

use kanat_message_log::Outcome;
use kanat_model::flow::Status;
use kanat_model::message::Trigger;
use kanat_model::schedule::RunStatus;
use kanat_store::schedule::due;

use super::at;
use super::planes::Planes;
use crate::app::schedule::{fire_due, settle};

const START: &str = "2026-03-01T08:00:00Z";

#[tokio::test]
async fn a_run_is_true_to_its_message_and_stays_so_when_that_is_forgotten() {
    let planes = Planes::start(1).await;
    let app = &planes.apps[0];
    let start = at(START);
    let flow = planes.deploy("hourly", "0 * * * *", "UTC", start).await;
    assert_eq!(
        fire_due(app, start).await.unwrap(),
        Some(at("2026-03-01T09:00:00Z"))
    );
    assert_eq!(planes.schedule(&flow).await.last_run, None);

    for (hour, outcome, status) in [
        (
            "2026-03-01T09:00:00Z",
            Outcome::Delivered,
            RunStatus::Success,
        ),
        (
            "2026-03-01T10:00:00Z",
            Outcome::DeadLetter,
            RunStatus::Failed,
        ),
        (
            "2026-03-01T11:00:00Z",
            Outcome::Filtered,
            RunStatus::Success,
        ),
    ] {
        let now = at(hour);
        fire_due(app, now).await.unwrap();
        let messages = planes.messages(&flow).await;
        let message = messages.last().unwrap();
        assert_eq!(message.trigger, Trigger::Schedule);
        assert_eq!(message.received_at, now);
        let run = planes.schedule(&flow).await.last_run.unwrap();
        assert_eq!(run.at, now);
        assert_eq!(&run.message_id, &message.id);
        assert_eq!(run.status, RunStatus::Running);
        settle(app).await.unwrap();
        assert_eq!(
            planes.written(&flow).await.last_run.unwrap().status,
            RunStatus::Running
        );

        planes.settle(&flow, outcome).await;
        assert_eq!(
            planes.schedule(&flow).await.last_run.unwrap().status,
            status,
            "{hour}"
        );
        assert_eq!(
            planes.written(&flow).await.last_run.unwrap().status,
            RunStatus::Running
        );
        settle(app).await.unwrap();
        assert_eq!(
            planes.written(&flow).await.last_run.unwrap().status,
            status,
            "{hour}"
        );
    }
}

#[tokio::test]
async fn what_was_missed_comes_to_one_run_for_the_last_time_that_was_due() {
    let planes = Planes::start(2).await;
    let start = at(START);
    let flow = planes
        .deploy("quarterly", "*/15 * * * *", "UTC", start)
        .await;
    fire_due(&planes.apps[0], at("2026-03-01T08:15:00Z"))
        .await
        .unwrap();
    // Nobody looks for a week.
    let now = at("2026-03-08T08:20:00Z");
    for app in &planes.apps {
        assert_eq!(
            fire_due(app, now).await.unwrap(),
            Some(at("2026-03-08T08:30:00Z"))
        );
    }
    assert_eq!(
        planes.fired(&flow).await,
        [at("2026-03-01T08:15:00Z"), at("2026-03-08T08:15:00Z")]
    );
    assert_eq!(planes.schedule(&flow).await.last_run.unwrap().at, now);
}

#[tokio::test]
async fn a_run_whose_claimant_died_is_taken_up_when_the_claim_ends() {
    let planes = Planes::start(1).await;
    let app = &planes.apps[0];
    let flow = planes.deploy("hourly", "0 * * * *", "UTC", at(START)).await;
    let nine = at("2026-03-01T09:00:00Z");
    let ends = at("2026-03-01T09:00:10Z");
    let mut tx = app.store.begin().await.unwrap();
    assert_eq!(due::claim(&mut tx, nine, ends, 1).await.unwrap().len(), 1);
    tx.commit().await.unwrap();
    assert_eq!(fire_due(app, nine).await.unwrap(), Some(ends));
    assert_eq!(planes.fired(&flow).await, []);
    assert_eq!(
        fire_due(app, ends).await.unwrap(),
        Some(at("2026-03-01T10:00:00Z"))
    );
    assert_eq!(planes.fired(&flow).await, [nine]);
}

#[tokio::test]
async fn a_paused_flow_is_not_started_and_catches_up_with_one_run() {
    let planes = Planes::start(1).await;
    let app = &planes.apps[0];
    let flow = planes.deploy("hourly", "0 * * * *", "UTC", at(START)).await;
    planes.set_status(&flow, Status::Paused).await;
    for hour in [
        "2026-03-01T09:00:00Z",
        "2026-03-01T10:00:00Z",
        "2026-03-01T11:00:00Z",
    ] {
        assert_eq!(fire_due(app, at(hour)).await.unwrap(), None);
    }
    assert_eq!(planes.fired(&flow).await, []);
    planes.set_status(&flow, Status::Active).await;
    fire_due(app, at("2026-03-01T11:30:00Z")).await.unwrap();
    fire_due(app, at("2026-03-01T12:00:00Z")).await.unwrap();
    assert_eq!(
        planes.fired(&flow).await,
        [at("2026-03-01T11:00:00Z"), at("2026-03-01T12:00:00Z")]
    );
}

#[tokio::test]
async fn a_deploy_that_changes_the_time_forgets_what_was_due_before() {
    let planes = Planes::start(1).await;
    let app = &planes.apps[0];
    let flow = planes.deploy("hourly", "0 * * * *", "UTC", at(START)).await;
    let row = planes.flow(&flow).await;
    planes
        .deploy_again(
            &row,
            "30 12 * * *",
            "Europe/Berlin",
            at("2026-03-01T08:30:00Z"),
        )
        .await;
    assert_eq!(
        fire_due(app, at("2026-03-01T09:30:00Z")).await.unwrap(),
        Some(at("2026-03-01T11:30:00Z"))
    );
    fire_due(app, at("2026-03-01T11:30:00Z")).await.unwrap();
    assert_eq!(planes.fired(&flow).await, [at("2026-03-01T11:30:00Z")]);
}
