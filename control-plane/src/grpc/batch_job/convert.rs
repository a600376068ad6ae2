//! Batch jobs between the wire and the store.

use kanat_model::Error;
use kanat_model::id::{BatchJobId, MessageId};
use kanat_proto::v1 as wire;
use kanat_store::batch_job::BatchJob;
use kanat_store::batch_job::record::FailedRecord;
use tonic::{Code, Status};

use crate::app::batch_job::Piece;

pub fn piece(message: wire::CreateBatchJobRequest) -> Piece {
    let wire::CreateBatchJobRequest {
        flow_id,
        records,
        concurrency,
    } = message;
    Piece {
        flow_id,
        records: records.into_iter().map(|record| record.text).collect(),
        concurrency,
    }
}

/// The stream of a caller that went away, or sent what cannot be read.
pub fn broken(status: Status) -> Error {
    let message = match status.code() {
        Code::OutOfRange => "a message of the stream is too large",
        _ => "the stream of records broke off",
    };
    Error::field("records", message)
}

pub fn job(job: BatchJob) -> wire::BatchJob {
    wire::BatchJob {
        id: job.id.into_string(),
        flow_id: job.flow_id.into_string(),
        status: job.status.as_str().to_owned(),
        total: job.total,
        processed: job.succeeded.saturating_add(job.failed),
        succeeded: job.succeeded,
        failed: job.failed,
        concurrency: job.concurrency,
        retry_of: job.retry_of.map(BatchJobId::into_string),
        created_at: job.created_at.to_string(),
        started_at: job.started_at.map(|at| at.to_string()),
        finished_at: job.finished_at.map(|at| at.to_string()),
    }
}

pub fn error(failed: FailedRecord) -> wire::BatchJobError {
    wire::BatchJobError {
        index: u32::try_from(failed.position).unwrap_or(u32::MAX),
        message_id: failed.message_id.map(MessageId::into_string),
        error: Some(wire::MessageError {
            kind: failed.kind,
            message: failed.message,
            field: failed.field,
            expression: None,
        }),
        record: Some(wire::Json {
            text: failed.payload,
        }),
    }
}
