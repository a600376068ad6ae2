//! What a record of the journal says: the messages that came in together, and the ends that were
//! written with them.
//!
//! Fields stand one after another without names; whoever changes them changes the file's magic too.
//! A text or body has its length before it, and what may be missing has a byte that says whether it
//! is there.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status, Trigger};

use crate::sqlite::journal::FRAME_BYTES;
use crate::sqlite::operation::{Change, Problem, nobody};
use crate::{Error, NewMessage, Placement};

const ARRIVAL: u8 = 1;
const END: u8 = 2;

/// What is kept of its room from one lot to the next: one large one is no reason to hold as much
/// for good.
const KEPT_BYTES: usize = 256 * 1024;

/// A lot as it is written, with room for the journal's frame before it.
pub(super) struct Lot(Vec<u8>);

/// A lot that was read: messages by their places, ends by their events.
#[derive(Default)]
pub(super) struct Said {
    pub arrivals: Vec<(i64, NewMessage)>,
    pub ends: Vec<(i64, Change)>,
}

impl Lot {
    pub fn new() -> Self {
        Self(vec![0; FRAME_BYTES])
    }

    pub fn clear(&mut self) {
        self.0.truncate(FRAME_BYTES);
        self.0.shrink_to(KEPT_BYTES);
    }

    pub fn is_empty(&self) -> bool {
        self.0.len() == FRAME_BYTES
    }

    pub fn arrival(&mut self, seq: i64, message: &NewMessage) {
        self.0.push(ARRIVAL);
        self.number(seq);
        for id in [
            message.id.as_str(),
            message.account_id.as_str(),
            message.environment_id.as_str(),
        ] {
            self.bytes(id);
        }
        self.bytes(message.flow_id.as_str());
        self.bytes(&message.flow_name);
        self.number(message.flow_version.into());
        self.bytes(message.trigger.as_str());
        self.bytes(&message.raw_body);
        self.maybe(message.payload.as_ref());
        self.bytes(&message.request);
        self.number(message.received_at.as_millis());
        self.maybe(message.replay_of.as_ref().map(MessageId::as_str));
        self.maybe(message.batch_id.as_ref());
        self.number(message.max_attempts.into());
        self.maybe(message.traceparent.as_ref());
        let (place, owner) = match &message.place {
            Placement::Leased(owner) | Placement::Awaited(owner) => ("leased", owner.as_str()),
            Placement::Queued => ("queued", ""),
            Placement::Held => ("held", ""),
        };
        self.bytes(place);
        self.bytes(owner);
    }

    pub fn end(&mut self, event: i64, change: &Change) {
        self.0.push(END);
        self.number(event);
        self.bytes(change.message_id.as_str());
        self.number(change.seq);
        self.bytes(change.from_owner.as_str());
        self.number(change.from_token);
        self.number(change.at.as_millis());
        self.bytes(change.status.map_or("", Status::as_str));
        self.number(change.attempts.map_or(-1, i64::from));
        match &change.error {
            Problem::Keep => self.bytes("keep"),
            Problem::Clear => self.bytes("clear"),
            Problem::Set(failure) => {
                self.bytes("set");
                self.bytes(failure.kind.as_str());
                self.bytes(&failure.message);
                self.maybe(failure.field.as_ref());
                self.maybe(failure.expression.as_ref());
            }
        }
        self.maybe(change.output.as_ref());
        self.maybe(change.trace.as_ref());
    }

    pub fn record(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn number(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn maybe(&mut self, bytes: Option<impl AsRef<[u8]>>) {
        self.0.push(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }
}

/// Reads what a record says.
pub(super) fn read(text: Vec<u8>) -> Result<Said, Error> {
    let mut rest = Rest(Bytes::from(text));
    let mut said = Said::default();
    while !rest.0.is_empty() {
        match rest.byte() {
            Some(ARRIVAL) => said.arrivals.push(rest.arrival().ok_or_else(unreadable)?),
            Some(END) => said.ends.push(rest.end().ok_or_else(unreadable)?),
            _ => return Err(unreadable()),
        }
    }
    Ok(said)
}

/// Returns what a record says, written again; `None` where it cannot be read.
#[cfg(feature = "fuzz")]
pub(in crate::sqlite) fn rewritten(text: Vec<u8>) -> Option<Vec<u8>> {
    let said = read(text).ok()?;
    let mut lot = Lot::new();
    said.arrivals
        .iter()
        .for_each(|(seq, message)| lot.arrival(*seq, message));
    said.ends
        .iter()
        .for_each(|(event, change)| lot.end(*event, change));
    Some(lot.record()[FRAME_BYTES..].to_vec())
}

/// What was not read yet. Every step gives `None` where it does not find what it looks for.
struct Rest(Bytes);

impl Rest {
    fn arrival(&mut self) -> Option<(i64, NewMessage)> {
        let seq = self.number()?;
        let message = NewMessage {
            id: MessageId::new(self.text()?),
            account_id: AccountId::new(self.text()?),
            environment_id: EnvironmentId::new(self.text()?),
            flow_id: FlowId::new(self.text()?),
            flow_name: self.text()?,
            flow_version: self.small()?,
            trigger: Trigger::parse(&self.text()?)?,
            raw_body: self.bytes()?,
            payload: self.maybe(Self::bytes)?,
            request: self.bytes()?,
            received_at: Timestamp::from_millis(self.number()?),
            ordering_key: None,
            dedupe: Vec::new(),
            replay_of: self.maybe(Self::text)?.map(MessageId::new),
            batch_id: self.maybe(Self::text)?,
            max_attempts: self.small()?,
            traceparent: self.maybe(Self::text)?,
            place: match (self.text()?.as_str(), self.text()?) {
                ("leased", owner) => Placement::Leased(BootId::new(owner)),
                ("queued", _) => Placement::Queued,
                ("held", _) => Placement::Held,
                _ => return None,
            },
        };
        Some((seq, message))
    }

    fn end(&mut self) -> Option<(i64, Change)> {
        let event = self.number()?;
        let change = Change {
            message_id: MessageId::new(self.text()?),
            seq: self.number()?,
            from_owner: BootId::new(self.text()?),
            from_token: self.number()?,
            at: Timestamp::from_millis(self.number()?),
            to_owner: nobody(),
            status: Some(Status::parse(&self.text()?)?),
            attempts: u32::try_from(self.number()?).ok(),
            due_at: None,
            error: match self.text()?.as_str() {
                "keep" => Problem::Keep,
                "clear" => Problem::Clear,
                "set" => Problem::Set(Failure {
                    kind: ErrorKind::parse(&self.text()?)?,
                    message: self.text()?,
                    field: self.maybe(Self::text)?,
                    expression: self.maybe(Self::text)?,
                }),
                _ => return None,
            },
            output: self.maybe(Self::bytes)?,
            trace: self.maybe(Self::text)?,
            ordered: false,
        };
        Some((event, change))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<i64> {
        self.take(8)?
            .as_ref()
            .try_into()
            .ok()
            .map(i64::from_le_bytes)
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let length = self.number()?.try_into().ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.into()).ok()
    }

    fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            _ => read(self).map(Some),
        }
    }

    fn take(&mut self, length: usize) -> Option<Bytes> {
        (length <= self.0.len()).then(|| self.0.split_to(length))
    }
}

fn unreadable() -> Error {
    Error::Other("a record of the message log's journal cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::message;

    fn written() -> (NewMessage, Change, Vec<u8>) {
        let message = NewMessage {
            payload: Some(Bytes::from_static(b"{\"parsed\":true}")),
            replay_of: Some(MessageId::new("msg_0")),
            batch_id: Some("batch_1".to_owned()),
            traceparent: Some("00-1-2-01".to_owned()),
            place: Placement::Leased(BootId::new("boot_1")),
            ..message(&FlowId::new("flow_1"))
        };
        let failure = Failure {
            kind: ErrorKind::Mapping,
            message: "näh".to_owned(),
            field: Some("total".to_owned()),
            expression: None,
        };
        let change = Change {
            message_id: message.id.clone(),
            seq: 7,
            from_owner: BootId::new("boot_1"),
            from_token: 7,
            at: Timestamp::from_millis(12),
            to_owner: nobody(),
            status: Some(Status::DeadLetter),
            attempts: Some(3),
            due_at: None,
            error: Problem::Set(failure),
            output: Some(Bytes::from_static(b"sent")),
            trace: Some("[]".to_owned()),
            ordered: false,
        };
        let mut lot = Lot::new();
        lot.arrival(7, &message);
        lot.end(8, &change);
        assert!(!lot.is_empty());
        let text = lot.record()[FRAME_BYTES..].to_vec();
        lot.clear();
        assert!(lot.is_empty());
        (message, change, text)
    }

    #[test]
    fn says_what_it_was_told() {
        let (message, change, text) = written();
        let said = read(text).unwrap();
        let [(7, arrival)] = said.arrivals.as_slice() else {
            panic!("one message")
        };
        let [(8, end)] = said.ends.as_slice() else {
            panic!("one end")
        };
        assert_eq!(format!("{arrival:?}"), format!("{message:?}"));
        assert_eq!(format!("{end:?}"), format!("{change:?}"));
        assert!(read(Vec::new()).unwrap().arrivals.is_empty());
    }

    #[test]
    fn what_is_cut_is_an_error() {
        let (.., text) = written();
        let whole = {
            let mut lot = Lot::new();
            lot.arrival(7, &written().0);
            lot.record().len() - FRAME_BYTES
        };
        for cut in (1..text.len()).filter(|cut| *cut != whole) {
            assert!(read(text[..cut].to_vec()).is_err(), "{cut}");
        }
        assert!(read(vec![9]).is_err());
    }
}
