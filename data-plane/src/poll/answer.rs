//! The answer to a page while it comes: its records, some at a time, and what leads on. What is
//! held of it is bounded, however long it is.

use bytes::Bytes;
use kanat_net::outbound::{Error, Stream};
use kanat_proto::plan::v1::Poll;

use super::find::Finder;
use super::page;
use crate::connector::Pass;
use crate::delivery::verdict;

/// Records that are handed on together, and the bytes of them after which no more are waited for.
const TOGETHER: (usize, usize) = (256, 1 << 20);

/// An answer that is no longer is kept whole, for what it looks like to be told.
const SAMPLE: usize = 1 << 20;

pub(super) struct Answer {
    stream: Stream,
    /// Given back once all has come.
    pass: Option<Pass>,
    finder: Finder,
    sample: Vec<u8>,
    /// Bytes that came, and those that may.
    read: usize,
    most: usize,
    ended: bool,
}

/// What is known of an answer that came whole.
pub(super) struct Whole {
    /// What leads on, where there is something.
    pub found: Option<String>,
    /// Its text, when it is short.
    pub sample: Option<Vec<u8>>,
}

/// Why an answer gives no further records.
#[derive(Debug)]
pub(super) enum Broken {
    /// It did not come to its end.
    Call(Error),
    /// An answer that is not as expected, in words without secrets.
    Content(String),
}

impl From<String> for Broken {
    fn from(message: String) -> Self {
        Self::Content(message)
    }
}

impl Answer {
    /// Errors when it is said to be longer than `most` bytes.
    pub fn new(
        stream: Stream,
        pass: Option<Pass>,
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

    /// The next records; `None` after the last.
    pub async fn records(&mut self) -> Result<Option<Vec<Bytes>>, Broken> {
        let mut records = Vec::new();
        let mut bytes = 0;
        loop {
            while let Some(record) = self.next()? {
                bytes += record.len();
                records.push(record);
                if records.len() >= TOGETHER.0 || bytes >= TOGETHER.1 {
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
                    return Err(Broken::Call(error));
                }
            }
        }
    }

    /// After the last record.
    pub fn end(self) -> Result<Whole, String> {
        let sample = Some(self.sample).filter(|_| self.read <= SAMPLE);
        Ok(Whole {
            found: self.finder.end()?,
            sample,
        })
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), String> {
        self.read += chunk.len();
        if self.read > self.most {
            return Err(too_long(self.most));
        }
        if self.read <= SAMPLE {
            self.sample.extend_from_slice(chunk);
        } else {
            self.sample = Vec::new();
        }
        self.finder.push(chunk);
        Ok(())
    }

    /// What is no JSON is an answer all the same.
    fn next(&mut self) -> Result<Option<Bytes>, String> {
        let next = self.finder.next();
        if next.is_err() {
            self.give_back(Ok(self.stream.status()));
        }
        next
    }

    fn give_back(&mut self, status: Result<u16, &Error>) {
        if let Some(pass) = self.pass.take() {
            pass.judge(verdict(status));
        }
    }
}

fn too_long(most: usize) -> String {
    format!("the answer is longer than {most} bytes")
}
