//! How a batch job goes on: what has ended is counted, and as many records begin as there is room
//! for.
//!
//! Every control plane may drive every job at any time, and one that dies in between leaves nothing
//! undone. Records begin under the lock of their job, so that never more than its concurrency are
//! under way; a record becomes one message, however often that is tried, because the log knows it
//! by its place; and it is counted by whoever ends it, once.

use std::collections::HashMap;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use kanat_message_log::{Filter, Message, NewMessage, Position, Tenant, key};
use kanat_model::batch_job::Status;
use kanat_model::id::MessageId;
use kanat_model::message::{self, ErrorKind, Failure, Trigger};
use kanat_model::page::Page;
use kanat_model::{Code, Error, Result, Timestamp, saturated};
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::batch_job::record::{self, End, RecordEnd, StartedRecord};
use kanat_store::batch_job::{self, BatchJob};
use kanat_store::{Db, flow};

use crate::app::App;
use crate::app::flow::{Start, append, deployed_plan, prepare};

/// Records that are put into the log at one time, so that they share a commit.
const AT_ONCE: usize = 64;

/// How long the log knows a record's message by its place in the job. A record that has begun and
/// has no message by then has stood still for longer than any outage.
const KNOWN_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Takes every job a step further; says whether there is one to go on with.
pub async fn drive_all(app: &App) -> Result<bool> {
    let jobs = batch_job::unfinished(&mut *app.store.read().await?).await?;
    for job in &jobs {
        drive(app, job).await?;
    }
    Ok(!jobs.is_empty())
}

async fn drive(app: &App, job: &BatchJob) -> Result<()> {
    let started = record::started(&mut *app.store.read().await?, &job.id).await?;
    let ends = ends(app, job, &started).await?;
    if ends.is_empty() && !moves(job, &started) {
        return Ok(());
    }
    let mut tx = app.store.begin().await?;
    // The lock comes first: what is counted below is what there is.
    let goes_on = batch_job::begin(&mut tx, &job.id, Timestamp::now()).await?;
    let mut succeeded = 0;
    let mut failed = 0;
    for ended in &ends {
        if record::end(&mut tx, &job.id, ended).await? {
            match ended.end {
                End::Succeeded | End::Filtered => succeeded += 1,
                End::Failed { .. } => failed += 1,
            }
        }
    }
    if succeeded + failed > 0 {
        batch_job::ended(&mut tx, &job.id, succeeded, failed).await?;
    }
    let under_way = record::count_started(&mut tx, &job.id).await?;
    let mut begun = 0;
    if goes_on {
        begun =
            record::start_next(&mut tx, &job.id, job.concurrency.saturating_sub(under_way)).await?;
    }
    if under_way == 0 && begun == 0 {
        batch_job::finish(&mut tx, &job.id, Timestamp::now()).await?;
    }
    tx.commit().await?;
    if begun > 0 || started.iter().any(|record| record.message_id.is_none()) {
        begin_messages(app, job).await?;
    }
    Ok(())
}

/// Returns whether there is anything to do for a job none of whose records has ended: most looks
/// find nothing, and write nothing.
fn moves(job: &BatchJob, started: &[StartedRecord]) -> bool {
    let under_way = saturated(started.len());
    let pending = job
        .total
        .saturating_sub(job.succeeded)
        .saturating_sub(job.failed)
        .saturating_sub(under_way);
    let begins = job.status != Status::Cancelled && pending > 0 && under_way < job.concurrency;
    under_way == 0 || begins || started.iter().any(|record| record.message_id.is_none())
}

/// Returns how the records ended whose messages have. Messages are read page by page, and no page
/// is kept: their payloads would take as much memory as all records under way.
async fn ends(app: &App, job: &BatchJob, started: &[StartedRecord]) -> Result<Vec<RecordEnd>> {
    let mut waiting: HashMap<MessageId, Vec<i64>> = HashMap::new();
    for record in started {
        if let Some(id) = &record.message_id {
            waiting.entry(id.clone()).or_default().push(record.position);
        }
    }
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let tenant = Tenant {
        account_id: job.account_id.clone(),
        environment_id: job.environment_id.clone(),
    };
    let filter = Filter {
        ids: waiting.keys().cloned().collect(),
        ..Filter::flow(tenant, job.flow_id.clone())
    };
    let mut ended = Vec::new();
    let mut position = Position::Page(Page::new(Some(Page::MAX_LIMIT), None));
    loop {
        let page = app.log.list(&filter, position).await?;
        let mut tx = app.store.read().await?;
        for message in &page.messages {
            let records = waiting.remove(&message.id).unwrap_or_default();
            let Some(end) = end(message) else { continue };
            for position in records {
                ended.push(RecordEnd {
                    position,
                    end: end_of_record(&mut tx, job, position, message, &end).await?,
                    is_repeat: !is_of(message, job),
                });
            }
        }
        let Some(cursor) = page.next else { break };
        position = Position::After {
            cursor,
            limit: Page::MAX_LIMIT,
        };
    }
    for position in waiting.into_values().flatten() {
        let gone = "the message is not kept any more";
        ended.push(failed(position, ErrorKind::Configuration, gone));
    }
    Ok(ended)
}

/// Returns whether a message was made of a record of the job.
fn is_of(message: &Message, job: &BatchJob) -> bool {
    message.batch_id.as_deref() == Some(job.id.as_str())
}

/// Returns how the record ended, given the end of its message, which may have been made of an
/// earlier record of the same idempotency key.
async fn end_of_record(
    tx: &mut Db,
    job: &BatchJob,
    position: i64,
    message: &Message,
    end: &End,
) -> Result<End> {
    if matches!(end, End::Failed { .. })
        && !(is_of(message, job)
            && record::payload(tx, &job.id, position).await?.as_bytes() == message.payload)
    {
        return Ok(not_run(end.clone(), message));
    }
    Ok(end.clone())
}

/// Returns the end of a record that made no message, because its idempotency key came before with
/// one that failed.
fn not_run(end: End, first: &Message) -> End {
    match end {
        End::Failed {
            kind,
            message,
            field,
        } => End::Failed {
            message: format!(
                "not run: its idempotency_key came before, with {}, which ended as {}: {message}",
                first.id,
                first.status.as_str()
            ),
            kind,
            field,
        },
        End::Succeeded | End::Filtered => end,
    }
}

/// Returns what a message that has ended says of its record.
fn end(message: &Message) -> Option<End> {
    match message.status {
        message::Status::Received
        | message::Status::Processing
        | message::Status::Retrying
        | message::Status::Held => None,
        message::Status::Delivered => Some(End::Succeeded),
        message::Status::Filtered => Some(End::Filtered),
        message::Status::Discarded
            if !message
                .error
                .as_ref()
                .is_some_and(|e| e.kind == ErrorKind::FlowDeleted) =>
        {
            Some(failure(
                ErrorKind::Rejected,
                "a person discarded the message",
            ))
        }
        message::Status::Discarded | message::Status::DeadLetter => Some(match &message.error {
            Some(error) => End::Failed {
                kind: error.kind.as_str().to_owned(),
                message: error.message.clone(),
                field: error.field.clone(),
            },
            None => failure(ErrorKind::Configuration, "the message was given up"),
        }),
    }
}

/// Makes a message of every record that has begun and has none.
async fn begin_messages(app: &App, job: &BatchJob) -> Result<()> {
    let mut tx = app.store.read().await?;
    let started = record::started(&mut tx, &job.id).await?;
    let plan = deployed_plan(app, &mut tx, &job.environment_id, &job.flow_id).await?;
    let is_deleted = plan.is_none() && !flow::exists(&mut tx, &job.flow_id).await?;
    drop(tx);
    if is_deleted {
        return fail_rest(app, job).await;
    }
    let waiting = started
        .into_iter()
        .filter(|record| record.message_id.is_none());
    let appended = append_all(app, job, plan.as_ref(), waiting.collect()).await;
    let mut tx = app.store.begin().await?;
    let mut failures = 0;
    for (position, result) in &appended {
        match result {
            Ok(message) => record::set_message(&mut tx, &job.id, *position, message).await?,
            // What may pass is tried again at the next look.
            Err(error) if may_pass(error) => {
                tracing::warn!(
                    %error,
                    batch_job.id = %job.id,
                    "a record of a batch job cannot begin yet",
                );
            }
            Err(error) => {
                let end = failed(*position, ErrorKind::Configuration, &error.to_string());
                failures += u32::from(record::end(&mut tx, &job.id, &end).await?);
            }
        }
    }
    if failures > 0 {
        batch_job::ended(&mut tx, &job.id, 0, failures).await?;
    }
    Ok(tx.commit().await?)
}

/// Ends the records that no flow can run any more.
async fn fail_rest(app: &App, job: &BatchJob) -> Result<()> {
    let kind = ErrorKind::FlowDeleted.as_str();
    let mut tx = app.store.begin().await?;
    // The lock of the job: no other process begins its records meanwhile.
    batch_job::begin(&mut tx, &job.id, Timestamp::now()).await?;
    let failed = record::fail_rest(&mut tx, &job.id, kind, Failure::FLOW_DELETED).await?;
    batch_job::ended(&mut tx, &job.id, 0, saturated(failed)).await?;
    Ok(tx.commit().await?)
}

/// Puts the records into the log, many at a time. Records of one ordering key are delivered in the
/// order in which they come into the log: each waits for the one before it, and none goes ahead of
/// one that is tried again at the next look. So those of different keys share commits, and those of
/// one key do not: the log promises the order of appends that it takes up, and may refuse an
/// earlier one of them.
async fn append_all(
    app: &App,
    job: &BatchJob,
    plan: Option<&FlowPlan>,
    records: Vec<StartedRecord>,
) -> Vec<(i64, Result<MessageId>)> {
    let mut appended = Vec::new();
    let mut lines: Vec<Vec<(i64, NewMessage)>> = Vec::new();
    let mut line_of: HashMap<String, usize> = HashMap::new();
    let prepared = stream::iter(records).map(|record| async move {
        let position = record.position;
        (position, message_of(app, job, plan, record).await)
    });
    let mut prepared = prepared.buffered(AT_ONCE);
    while let Some((position, message)) = prepared.next().await {
        match message {
            Ok(message) => match message.ordering_key.clone() {
                Some(key) => {
                    let line = *line_of.entry(key).or_insert(lines.len());
                    if line == lines.len() {
                        lines.push(Vec::new());
                    }
                    lines[line].push((position, message));
                }
                None => lines.push(vec![(position, message)]),
            },
            Err(error) => {
                // Its key is not known: whatever comes behind it may be of the same one.
                let stops = may_pass(&error);
                appended.push((position, Err(error)));
                if stops {
                    break;
                }
            }
        }
    }
    let mut ended = stream::iter(lines)
        .map(|line| append_line(app, line))
        .buffer_unordered(AT_ONCE);
    while let Some(line) = ended.next().await {
        appended.extend(line);
    }
    appended
}

/// Puts messages of one ordering key into the log, one after another, up to the first that may
/// succeed at another try.
async fn append_line(app: &App, line: Vec<(i64, NewMessage)>) -> Vec<(i64, Result<MessageId>)> {
    let mut appended = Vec::with_capacity(line.len());
    for (position, message) in line {
        let result = append(app, message).await.map(|started| started.message_id);
        let stops = result.as_ref().is_err_and(may_pass);
        appended.push((position, result));
        if stops {
            break;
        }
    }
    appended
}

/// Returns whether another try at the same record may succeed.
fn may_pass(error: &Error) -> bool {
    matches!(
        error.code,
        Code::Unavailable | Code::ResourceExhausted | Code::Internal
    )
}

/// Makes the message of a record.
async fn message_of(
    app: &App,
    job: &BatchJob,
    plan: Option<&FlowPlan>,
    record: StartedRecord,
) -> Result<NewMessage> {
    let plan = plan.ok_or_else(|| Error::precondition("the flow is not deployed any more"))?;
    let own = key::batch_record(&job.id, record.position, KNOWN_FOR);
    let start = Start {
        plan: plan.clone(),
        payload: record.payload,
        trigger: Trigger::Batch,
        at: Timestamp::now(),
        dedupe: Some(own.clone()),
        batch_id: Some(job.id.to_string()),
        traceparent: None,
    };
    let mut message = prepare(app, start).await?;
    if job.retry_of.is_some() {
        // By the flow's key it would be a repeat of the message that failed, and run no more.
        message.dedupe_keys = vec![own];
    }
    Ok(message)
}

/// Returns the end of a record without a message that could have ended.
fn failed(position: i64, kind: ErrorKind, message: &str) -> RecordEnd {
    RecordEnd {
        position,
        end: failure(kind, message),
        is_repeat: false,
    }
}

fn failure(kind: ErrorKind, message: &str) -> End {
    End::Failed {
        kind: kind.as_str().to_owned(),
        message: message.to_owned(),
        field: None,
    }
}

#[cfg(test)]
mod tests;
