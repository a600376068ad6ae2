//! Schedules between the wire and the store.

use kanat_model::Timestamp;
use kanat_model::id::ScheduleId;
use kanat_proto::v1 as wire;
use kanat_store::schedule::Schedule;

use crate::app::schedule::{Details, Preview, Update, is_running, schedule_etag};

pub fn details(details: Details) -> wire::Schedule {
    wire::Schedule {
        next_runs: texts(&details.next_runs),
        ..schedule(details.schedule)
    }
}

pub fn schedule(schedule: Schedule) -> wire::Schedule {
    let run = schedule.last_run.as_ref();
    wire::Schedule {
        etag: schedule_etag(&schedule),
        last_run_at: run.map(|run| run.at.to_string()),
        next_run_at: schedule
            .next_run_at
            .filter(|_| is_running(&schedule))
            .map(|at| at.to_string()),
        last_run_status: run.map(|run| run.status.as_str().to_owned()),
        last_message_id: run.map(|run| run.message_id.to_string()),
        next_runs: Vec::new(),
        id: schedule.id.into_string(),
        flow_id: schedule.flow_id.into_string(),
        flow_name: schedule.flow_name,
        cron_expression: schedule.cron_expression,
        timezone: schedule.timezone,
        enabled: schedule.enabled,
        created_at: schedule.created_at.to_string(),
        updated_at: schedule.updated_at.to_string(),
    }
}

pub fn update(request: wire::UpdateScheduleRequest) -> (ScheduleId, Update) {
    let wire::UpdateScheduleRequest {
        id,
        cron_expression,
        timezone,
        enabled,
    } = request;
    (
        id.into(),
        Update {
            cron_expression,
            timezone,
            enabled,
        },
    )
}

pub fn preview(request: wire::PreviewScheduleRequest) -> Preview {
    let wire::PreviewScheduleRequest {
        cron_expression,
        timezone,
        after,
        count,
    } = request;
    Preview {
        cron_expression,
        timezone,
        after,
        count,
    }
}

pub fn texts(times: &[Timestamp]) -> Vec<String> {
    times.iter().map(Timestamp::to_string).collect()
}
