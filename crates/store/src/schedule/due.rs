//! Which schedules are due, and who sees to them: a claim is a lease, so that several processes do
//! not do the same, and when the one that claimed dies, another does it. That a time fires once
//! does not hang on it.

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, ScheduleId};

use crate::record::record;
use crate::statement::statements;
use crate::{Db, Result};

record! {
    /// A schedule that is due.
    pub struct DueSchedule {
        pub id: ScheduleId,
        pub environment_id: EnvironmentId,
    }
}

statements! {
    /// Takes up to `limit` schedules that are due, those of active flows only, until `until`. The
    /// outer conditions are checked again when another process has claimed a row in between.
    fn claim(now: Timestamp, until: Timestamp, limit: u32) -> Vec<DueSchedule> =
        "UPDATE schedule SET claimed_until = $2 WHERE claimed_until <= $1 AND next_run_at <= $1 \
         AND id IN ( SELECT schedule.id FROM schedule JOIN flow ON flow.id = schedule.flow_id \
         WHERE next_run_at <= $1 AND claimed_until <= $1 AND flow.status = 'active' AND \
         flow.deleted_at IS NULL ORDER BY next_run_at LIMIT $3) RETURNING id, environment_id";
}

/// First time at which a run is due. A claimed schedule that is still due counts from the end of
/// its claim.
const FIRST: &str = "SELECT min(due) AS due FROM (SELECT next_run_at AS due FROM (SELECT \
                     next_run_at FROM schedule JOIN flow ON flow.id = schedule.flow_id WHERE \
                     next_run_at IS NOT NULL AND claimed_until <= $1 AND flow.status = 'active' \
                     AND flow.deleted_at IS NULL ORDER BY next_run_at LIMIT 1) AS free UNION ALL \
                     SELECT min(claimed_until) FROM schedule WHERE next_run_at <= $1 AND \
                     claimed_until > $1) AS first";

/// When the first schedule is due that nobody sees to by then; it may be long ago.
pub async fn first(db: &mut Db, now: Timestamp) -> Result<Option<Timestamp>> {
    db.one(FIRST, &[&now]).await
}

const ADVANCE: &str = "UPDATE schedule SET next_run_at = $4, claimed_until = 0 \
    WHERE id = $1 AND revision = $2 AND next_run_at = $3";

/// Goes on to the next time, unless somebody has done so or changed the schedule.
pub async fn advance(
    db: &mut Db,
    id: &ScheduleId,
    revision: u64,
    due: Timestamp,
    next: Option<Timestamp>,
) -> Result<()> {
    db.run(ADVANCE, &[id, &revision, &due, &next]).await
}
