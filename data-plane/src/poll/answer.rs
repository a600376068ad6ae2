//! Answer to a request for a page, read as a stream: its records and the value that leads to the
//! next page. Its use of memory is bounded, whatever its length.

use bytes::Bytes;
use kanat_engine::exchange::{Extent, ResponseView};
use kanat_model::nearest::nearest;
use kanat_net::outbound::{Error, Stream};
use kanat_proto::plan::v1::Poll;

use super::find::{EndError, Finder};
use super::{evidence, page};
use crate::connector::CallPermit;
use crate::delivery::breaker_outcome;

/// Records of one batch, and their size in bytes from which a batch is complete.
const BATCH: (usize, usize) = (256, 1 << 20);

/// Size of the longest answer that is kept as a sample of its shape, in bytes.
const MAX_SAMPLE_BYTES: usize = 1 << 20;

pub(super) struct Answer {
    stream: Stream,
    /// Released at the end of the answer.
    pass: Option<CallPermit>,
    finder: Finder,
    sample: Vec<u8>,
    /// Bytes that were read.
    read: usize,
    most: usize,
    ended: bool,
}

/// Result of an answer that was read to its end.
pub(super) struct AnswerEnd {
    /// Value that leads to the next page.
    pub found: Option<String>,
    /// Text of a short answer.
    pub sample: Option<Vec<u8>>,
}

/// Reason why an answer gives no further records.
#[derive(Debug)]
pub(super) enum AnswerError {
    /// The answer broke off.
    Call(Error),
    /// The answer is not as expected; a message without secrets.
    Content(String),
}

impl From<String> for AnswerError {
    fn from(message: String) -> Self {
        Self::Content(message)
    }
}

impl Answer {
    /// Starts to read an answer.
    ///
    /// # Errors
    /// The answer declares more than `most` bytes.
    pub fn new(
        stream: Stream,
        pass: Option<CallPermit>,
        poll: &Poll,
        most: usize,
    ) -> Result<Self, String> {
        if stream
            .announced()
            .is_some_and(|length| length > most as u64)
        {
            return Err(too_long(most));
        }
        let finder = Finder::new(
            &poll.records_path,
            page::value_path(poll.pagination.as_ref()),
        );
        Ok(Self {
            stream,
            pass,
            finder,
            sample: Vec::new(),
            read: 0,
            most,
            ended: false,
        })
    }

    /// Returns the next records; `None` after the last.
    pub async fn records(&mut self) -> Result<Option<Vec<Bytes>>, AnswerError> {
        let mut records = Vec::new();
        let mut bytes = 0;
        loop {
            while let Some(record) = self.next()? {
                bytes += record.len();
                records.push(record);
                if records.len() >= BATCH.0 || bytes >= BATCH.1 {
                    return Ok(Some(records));
                }
            }
            if self.ended {
                return Ok((!records.is_empty()).then_some(records));
            }
            match self.stream.chunk().await {
                Ok(Some(chunk)) => self.take(&chunk)?,
                Ok(None) => {
                    self.ended = true;
                    self.give_back(Ok(self.stream.status()));
                }
                Err(error) => {
                    self.give_back(Err(&error));
                    return Err(AnswerError::Call(error));
                }
            }
        }
    }

    /// Ends the answer after its last record.
    pub fn end(&mut self) -> Result<AnswerEnd, String> {
        let finder = std::mem::replace(&mut self.finder, Finder::new("", ""));
        let found = finder.end().map_err(|error| match error {
            EndError::Content(message) => message,
            EndError::NoRecords(path) => missing_records(&path, &self.sample),
        })?;
        let sample = std::mem::take(&mut self.sample);
        Ok(AnswerEnd {
            found,
            sample: Some(sample).filter(|_| self.read <= MAX_SAMPLE_BYTES),
        })
    }

    /// Reads on until so many bytes have come, for an error that shows the beginning.
    pub async fn read_beginning(&mut self, bytes: usize) {
        while !self.ended && self.read < bytes {
            match self.stream.chunk().await {
                Ok(Some(chunk)) => {
                    self.read += chunk.len();
                    self.sample.extend_from_slice(&chunk);
                }
                Ok(None) | Err(_) => self.ended = true,
            }
        }
    }

    /// Returns what has come so far, as errors show it; without the body of a long answer.
    pub fn seen(&self) -> ResponseView<'_> {
        ResponseView {
            status: self.stream.status(),
            headers: self.stream.headers(),
            body: &self.sample,
            extent: match self.ended {
                true => Extent::Whole,
                false => Extent::Beginning,
            },
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), String> {
        self.read += chunk.len();
        if self.read > self.most {
            return Err(too_long(self.most));
        }
        if self.read <= MAX_SAMPLE_BYTES {
            self.sample.extend_from_slice(chunk);
        } else {
            self.sample = Vec::new();
        }
        self.finder.push(chunk);
        Ok(())
    }

    /// Returns the next record. Invalid JSON still counts as an answer of the connector.
    fn next(&mut self) -> Result<Option<Bytes>, String> {
        let next = self.finder.next();
        if next.is_err() {
            self.give_back(Ok(self.stream.status()));
        }
        next
    }

    fn give_back(&mut self, status: Result<u16, &Error>) {
        if let Some(pass) = self.pass.take() {
            pass.record(breaker_outcome(status));
        }
    }
}

/// Returns the error of an answer that has no list at `records_path`, with one that it has.
fn missing_records(path: &str, sample: &[u8]) -> String {
    if path.is_empty() {
        return "the answer is no list of records".to_owned();
    }
    let body = String::from_utf8_lossy(sample);
    let lists = evidence::list_paths(&body);
    let near = nearest(path, lists.iter().map(String::as_str));
    let hint = match near.or(lists.first().map(String::as_str)) {
        Some("") => ": the answer itself is a list".to_owned(),
        Some(list) => format!("; there is a list at {list:?}"),
        None => String::new(),
    };
    format!("records_path {path:?} is not in the answer{hint}")
}

fn too_long(most: usize) -> String {
    format!("the answer is longer than {most} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_records_are_reported_with_a_list_that_is_there() {
        let told = |path: &str, body: &str| missing_records(path, body.as_bytes());
        let missing = "records_path \"data.cals\" is not in the answer";
        assert_eq!(
            told(
                "data.cals",
                r#"{"ids": [1], "data": {"calls": [], "n": 1}}"#
            ),
            format!("{missing}; there is a list at \"data.calls\"")
        );
        assert_eq!(
            told("data.cals", r#"{"result": {"items": []}}"#),
            format!("{missing}; there is a list at \"result.items\"")
        );
        assert_eq!(
            told("data.cals", "[]"),
            format!("{missing}: the answer itself is a list")
        );
        for body in [r#"{"error": "none"}"#, ""] {
            assert_eq!(told("data.cals", body), missing);
        }
        assert_eq!(told("", "{}"), "the answer is no list of records");
    }
}
