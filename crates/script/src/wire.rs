//! Protocol of a worker's pipes: frames, each a length and as many bytes, which hold numbers and
//! byte strings in a fixed order. Both ends are the same build.

use crate::failure::{Failure, Kind, Position};

/// Bytes of the largest frame. A worker that says more is broken.
pub(crate) const LARGEST: usize = 256 << 20;

/// Request to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// Nanoseconds on a core.
    pub allowed: u64,
    pub hash: [u8; 32],
    /// Left out when the worker was given it before.
    pub code: Option<&'a str>,
    /// Input and context; without them the code is only loaded.
    pub on: Option<(&'a str, &'a str)>,
}

/// Answer of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Nanoseconds on a core that it took.
    pub used: u64,
    /// Nanoseconds on a core that the whole process has had.
    pub total: u64,
    pub logs: Vec<Log>,
    pub outcome: Outcome,
}

/// A line that an adapter wrote to its console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// `debug`, `log`, `info`, `warn` or `error`.
    pub level: String,
    pub message: String,
}

impl Log {
    /// As people read it: what is no plain line says so.
    pub fn line(&self) -> String {
        match self.level.as_str() {
            "log" => self.message.clone(),
            level => format!("{level}: {}", self.message),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// JSON; nothing when the code gave undefined.
    Output(Option<String>),
    Failed(Failure),
    /// The worker does not have the code any more.
    Unknown,
}

impl Request<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let sizes = self.code.map_or(0, str::len)
            + self
                .on
                .map_or(0, |(input, context)| input.len() + context.len());
        let mut frame = Writer::new(sizes + 80);
        frame.number(self.allowed);
        frame.bytes(&self.hash);
        frame.optional(self.code);
        frame.optional(self.on.map(|(input, _)| input));
        frame.optional(self.on.map(|(_, context)| context));
        frame.finish()
    }

    pub fn decode(frame: &[u8]) -> Option<Request<'_>> {
        let mut reader = Reader(frame);
        let allowed = reader.number()?;
        let hash = reader.bytes()?.try_into().ok()?;
        let code = reader.optional()?;
        let on = reader.optional()?.zip(reader.optional()?);
        Some(Request {
            allowed,
            hash,
            code,
            on,
        })
    }
}

impl Answer {
    pub fn encode(&self) -> Vec<u8> {
        let mut frame = Writer::new(1 << 12);
        frame.number(self.used);
        frame.number(self.total);
        frame.number(self.logs.len() as u64);
        for log in &self.logs {
            frame.bytes(log.level.as_bytes());
            frame.bytes(log.message.as_bytes());
        }
        match &self.outcome {
            Outcome::Output(output) => {
                frame.number(0);
                frame.optional(output.as_deref());
            }
            Outcome::Failed(Failure {
                kind,
                message,
                position,
            }) => {
                frame.number(1);
                frame.number(number_of(*kind));
                frame.bytes(message.as_bytes());
                frame.number(position.map_or(0, |position| u64::from(position.line)));
                frame.number(position.map_or(0, |position| u64::from(position.column)));
            }
            Outcome::Unknown => frame.number(2),
        }
        frame.finish()
    }

    pub fn decode(frame: &[u8]) -> Option<Self> {
        let mut reader = Reader(frame);
        let used = reader.number()?;
        let total = reader.number()?;
        let mut logs = Vec::new();
        for _ in 0..reader.number()? {
            logs.push(Log {
                level: reader.text()?.to_owned(),
                message: reader.text()?.to_owned(),
            });
        }
        let outcome = match reader.number()? {
            0 => Outcome::Output(reader.optional()?.map(str::to_owned)),
            1 => {
                let kind = kind_of(reader.number()?)?;
                let message = reader.text()?.to_owned();
                let line = u32::try_from(reader.number()?).ok()?;
                let column = u32::try_from(reader.number()?).ok()?;
                let position = (line > 0).then_some(Position { line, column });
                Outcome::Failed(Failure {
                    kind,
                    message,
                    position,
                })
            }
            2 => Outcome::Unknown,
            _ => return None,
        };
        Some(Self {
            used,
            total,
            logs,
            outcome,
        })
    }
}

const KINDS: [Kind; 5] = [
    Kind::Code,
    Kind::Thrown,
    Kind::Time,
    Kind::Memory,
    Kind::Unavailable,
];

fn number_of(kind: Kind) -> u64 {
    KINDS.iter().position(|known| *known == kind).unwrap_or(0) as u64
}

fn kind_of(number: u64) -> Option<Kind> {
    KINDS.get(usize::try_from(number).ok()?).copied()
}

struct Writer(Vec<u8>);

impl Writer {
    /// Begins with room for the frame's own length.
    fn new(size: usize) -> Self {
        let mut frame = Vec::with_capacity(size + 4);
        frame.extend_from_slice(&[0; 4]);
        Self(frame)
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn optional(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        if let Some(text) = text {
            self.bytes(text.as_bytes());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn optional(&mut self) -> Option<Option<&'a str>> {
        match self.number()? {
            0 => Some(None),
            _ => self.text().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let request = Request {
            allowed: 7,
            hash: [3; 32],
            code: Some("code"),
            on: Some(("{}", "null")),
        };
        for request in [
            request,
            Request {
                code: None,
                on: None,
                ..request
            },
        ] {
            let frame = request.encode();
            assert_eq!(
                u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize,
                frame.len() - 4
            );
            assert_eq!(Request::decode(&frame[4..]), Some(request));
        }
        let logs = vec![Log {
            level: "warn".to_owned(),
            message: "é".to_owned(),
        }];
        let position = Some(Position { line: 3, column: 9 });
        let failure = Failure {
            kind: Kind::Memory,
            message: "m".to_owned(),
            position,
        };
        for outcome in [
            Outcome::Output(None),
            Outcome::Output(Some("1".to_owned())),
            Outcome::Failed(failure),
            Outcome::Unknown,
        ] {
            let answer = Answer {
                used: 5,
                total: 6,
                logs: logs.clone(),
                outcome,
            };
            assert_eq!(Answer::decode(&answer.encode()[4..]), Some(answer));
        }
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        let request = Request {
            allowed: 7,
            hash: [3; 32],
            code: Some("code"),
            on: Some(("{}", "null")),
        }
        .encode();
        let failure = Failure::new(Kind::Thrown, "m");
        let answer = Answer {
            used: 5,
            total: 6,
            logs: Vec::new(),
            outcome: Outcome::Failed(failure),
        }
        .encode();
        for end in 4..request.len() {
            assert_eq!(Request::decode(&request[4..end]), None, "{end}");
        }
        for end in 4..answer.len() {
            assert_eq!(Answer::decode(&answer[4..end]), None, "{end}");
        }
        assert_eq!(Answer::decode(&[0xff; 64]), None);
    }
}
