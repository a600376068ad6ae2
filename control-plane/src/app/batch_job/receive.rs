//! How the records of a job come in: piece by piece, each durable before the next is read, so that
//! memory holds one piece however many there are. The job is there when the last one has come; what
//! a wrong or broken-off call leaves is dropped.

use futures::{Stream, StreamExt};
use kanat_mapping::json;
use kanat_model::id::{BatchJobId, FlowId};
use kanat_model::{Code, Error, Result, Timestamp, saturated};
use kanat_store::batch_job::{self, BatchJob, record, upload};

use super::{check_flow, concurrency};
use crate::app::{Call, audit};

/// Records of one job.
const MAX_RECORDS: usize = 100_000;

/// Bytes of one record: as many as a webhook takes.
const MAX_RECORD: usize = 1 << 20;

/// A part of a job to be. What is given in several pieces counts as the last one says it.
#[derive(Debug, Default)]
pub struct Piece {
    /// Empty when it is not known yet.
    pub flow_id: String,
    /// JSON texts.
    pub records: Vec<String>,
    pub concurrency: Option<u32>,
}

/// Takes the records as they come; the job is durable when this answers.
pub async fn create<P>(call: &Call, pieces: P) -> Result<BatchJob>
where
    P: Stream<Item = Result<Piece>> + Send,
{
    let mut upload = Upload {
        call,
        id: BatchJobId::generate(),
        flow_id: None,
        concurrency: None,
        records: 0,
    };
    let outcome = upload.receive(pieces).await;
    if outcome.is_err() && upload.records > 0 {
        upload.discard().await;
    }
    outcome
}

struct Upload<'a> {
    call: &'a Call,
    id: BatchJobId,
    flow_id: Option<FlowId>,
    concurrency: Option<u32>,
    /// That are stored.
    records: u32,
}

impl Upload<'_> {
    async fn receive<P>(&mut self, pieces: P) -> Result<BatchJob>
    where
        P: Stream<Item = Result<Piece>> + Send,
    {
        let mut pieces = std::pin::pin!(pieces);
        while let Some(piece) = pieces.next().await {
            self.take(piece?).await?;
        }
        let flow_id = self
            .flow_id
            .take()
            .ok_or_else(|| Error::field("flowId", "is required"))?;
        if self.records == 0 {
            return Err(Error::field(
                "records",
                format!("has no records, and must have 1 to {MAX_RECORDS}"),
            ));
        }
        let concurrency = concurrency(self.concurrency)?;
        let mut tx = self.call.write().await?;
        if let Some(made) = self.call.made::<BatchJobId>(&mut tx).await? {
            drop(tx);
            self.discard().await;
            return Ok(made);
        }
        check_flow(self.call, &mut tx, &flow_id).await?;
        if !upload::end(&mut tx, &self.id).await? {
            return Err(too_slow());
        }
        let job = super::job(&self.call.caller, flow_id, self.records, concurrency, None);
        let job = BatchJob {
            id: self.id.clone(),
            ..job
        };
        batch_job::insert(&mut tx, &job).await?;
        self.call
            .caller
            .record_idempotent_result(&mut tx, &job.id)
            .await?;
        audit::created(self.call, &mut tx, &job).await?;
        tx.commit().await?;
        self.call.app.batch_jobs.notify_one();
        Ok(job)
    }

    async fn take(&mut self, piece: Piece) -> Result<()> {
        let Piece {
            flow_id,
            records,
            concurrency,
        } = piece;
        if concurrency.is_some() {
            super::concurrency(concurrency)?;
            self.concurrency = concurrency;
        }
        check(self.records as usize, &records)?;
        let known = self
            .flow_id
            .as_ref()
            .is_some_and(|known| known.as_str() == flow_id);
        if !flow_id.is_empty() && !known {
            let flow_id = FlowId::from(flow_id);
            // Who names the flow first is told what is wrong with it before all records have come.
            if !records.is_empty() {
                check_flow(self.call, &mut *self.call.read().await?, &flow_id).await?;
            }
            self.flow_id = Some(flow_id);
        }
        if records.is_empty() {
            Ok(())
        } else {
            self.store(&records).await
        }
    }

    async fn store(&mut self, records: &[String]) -> Result<()> {
        let now = Timestamp::now();
        let mut tx = self.call.write().await?;
        if self.records == 0 {
            upload::begin(&mut tx, &self.id, now).await?;
        } else if !upload::touch(&mut tx, &self.id, now).await? {
            return Err(too_slow());
        }
        record::insert(&mut tx, &self.id, self.records, records).await?;
        tx.commit().await?;
        self.records = self.records.saturating_add(saturated(records.len()));
        kanat_failpoint::hit("batch.piece");
        Ok(())
    }

    /// Drops the upload. Records that stay when this fails are dropped later, as those of an idle
    /// upload.
    async fn discard(&self) {
        let dropped = async {
            let mut tx = self.call.app.store.begin().await?;
            upload::discard(&mut tx, &self.id).await?;
            tx.commit().await
        };
        if let Err(error) = dropped.await {
            tracing::warn!(
                %error,
                batch_job.id = %self.id,
                "the records of a refused batch job cannot be dropped yet",
            );
        }
    }
}

/// Checks records that follow `before` others.
fn check(before: usize, records: &[String]) -> Result<()> {
    for (index, record) in (before..).zip(records) {
        if index >= MAX_RECORDS {
            return Err(Error::field(
                "records",
                format!("has more than {MAX_RECORDS} records: start several jobs"),
            ));
        }
        let wrong = |message: String| Err(Error::field(format!("records[{index}]"), message));
        if record.len() > MAX_RECORD {
            return wrong(format!("is larger than {MAX_RECORD} bytes"));
        }
        if let Err(fault) = json::check_text(record, json::MAX_DEPTH) {
            return wrong(fault.message);
        }
        if !record.trim_start().starts_with('{') {
            return wrong("must be an object".to_owned());
        }
    }
    Ok(())
}

fn too_slow() -> Error {
    Error::new(
        Code::Aborted,
        "the records came too slowly, and what came was dropped: start the job again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_objects_and_names_what_is_none_by_its_place() {
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        assert!(check(7, &texts(&[r#"{"n": 1.10}"#, " {}"])).is_ok());
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_RECORD));
        for (record, told) in [
            ("1", "object"),
            ("[{}]", "object"),
            ("{", "found the end"),
            ("", "found the end"),
            (&large, "larger than"),
        ] {
            let details = check(7, &texts(&["{}", record])).unwrap_err().details;
            assert_eq!(details[0].field, "records[8]", "{record:.10}");
            assert!(details[0].message.contains(told), "{}", details[0].message);
        }
        let many = check(MAX_RECORDS - 1, &texts(&["{}", "{}"]))
            .unwrap_err()
            .details;
        assert!(
            many[0].field == "records" && many[0].message.contains("more than 100000"),
            "{many:?}"
        );
    }
}
