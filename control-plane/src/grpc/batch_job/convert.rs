//! Batch jobs between the wire and the store.

use kanat_model::id::MessageId;
use kanat_model::{Error, saturated};
use kanat_proto::v1 as wire;
use kanat_store::batch_job::BatchJob;
use kanat_store::batch_job::record::FailedRecord;
use tonic::{Code, Status};

use crate::app::batch_job::{Details, Piece};
use crate::carry::carry;
use crate::grpc::message::convert::failure;

pub fn piece(message: wire::CreateBatchJobRequest) -> Piece {
    let records = message.records.into_iter();
    Piece {
        flow_id: message.flow_id,
        records: records.map(|record| record.text).collect(),
        concurrency: message.concurrency,
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
    carry!(
        wire::BatchJob, job { total, succeeded, failed, concurrency }
        text { id, flow_id, created_at }
        optional { retry_of, started_at, finished_at }
        word { status }
        with {
            processed: job.succeeded.saturating_add(job.failed),
            filtered: None,
            repeats: None,
            error: None,
        }
    )
}

pub fn details(found: Details) -> wire::BatchJob {
    wire::BatchJob {
        filtered: Some(found.filtered),
        repeats: Some(found.repeats),
        error: found.error.map(failure),
        ..job(found.job)
    }
}

pub fn error(failed: FailedRecord) -> wire::BatchJobError {
    wire::BatchJobError {
        index: saturated(failed.position),
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
