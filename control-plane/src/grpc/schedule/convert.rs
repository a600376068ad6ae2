//! Schedules between the wire and the store.

use kanat_model::Timestamp;
use kanat_model::id::ScheduleId;
use kanat_proto::v1 as wire;
use kanat_store::schedule::Schedule;

use crate::app::etag;
use crate::app::schedule::{Details, Preview, Update, is_running};
use crate::carry::carry;

pub fn details(details: Details) -> wire::Schedule {
    wire::Schedule {
        next_runs: texts(&details.next_runs),
        ..schedule(details.schedule)
    }
}

pub fn schedule(schedule: Schedule) -> wire::Schedule {
    let run = schedule.last_run.as_ref();
    carry!(
        wire::Schedule, schedule { flow_name, cron_expression, timezone, enabled }
        text { id, flow_id, created_at, updated_at }
        with {
            etag: etag(&schedule),
            last_run_at: run.map(|run| run.at.to_string()),
            next_run_at: schedule
                .next_run_at
                .filter(|_| is_running(&schedule))
                .map(|at| at.to_string()),
            last_run_status: run.map(|run| run.status.as_str().to_owned()),
            last_message_id: run.map(|run| run.message_id.to_string()),
            next_runs: Vec::new(),
        }
    )
}

pub fn update(request: wire::UpdateScheduleRequest) -> (ScheduleId, Update) {
    let update = carry!(
        Update,
        request {
            cron_expression,
            timezone,
            enabled
        }
    );
    (request.id.into(), update)
}

pub fn preview(request: wire::PreviewScheduleRequest) -> Preview {
    carry!(
        Preview,
        request {
            cron_expression,
            timezone,
            after,
            count
        }
    )
}

pub fn texts(times: &[Timestamp]) -> Vec<String> {
    times.iter().map(Timestamp::to_string).collect()
}
