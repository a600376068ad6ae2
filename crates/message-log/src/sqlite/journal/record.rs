//! Payload of a journal record: the messages and the final settlements of one batch.
//!
//! Fields follow one another without names, so that a change of them needs a new magic of the file.
//! A text or a body has its length before it. An optional field has a byte before it that says
//! whether it is present.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status, Trigger};

use super::file::RECORD_HEADER_BYTES;
use crate::change::{Change, ErrorChange, nobody};
use crate::{Error, NewMessage, Placement};

/// Tag of a message.
const MESSAGE: u8 = 1;
/// Tag of a final settlement.
const SETTLEMENT: u8 = 2;

/// Capacity that is kept for the next record. A large record does not hold memory for good.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Record that is being encoded, with room for the header in front of its payload.
pub(super) struct JournalRecord(Vec<u8>);

/// Decoded payload of a record.
#[derive(Default)]
pub(super) struct DecodedRecord {
    /// Messages with their sequence numbers.
    pub messages: Vec<(i64, NewMessage)>,
    /// Final settlements with the sequence numbers of their events.
    pub settlements: Vec<(i64, Change)>,
}

impl JournalRecord {
    pub fn new() -> Self {
        Self(vec![0; RECORD_HEADER_BYTES])
    }

    pub fn clear(&mut self) {
        self.0.truncate(RECORD_HEADER_BYTES);
        self.0.shrink_to(MAX_KEPT_BYTES);
    }

    pub fn is_empty(&self) -> bool {
        self.0.len() == RECORD_HEADER_BYTES
    }

    /// Returns the room for the header, and the payload.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    pub fn push_message(&mut self, seq: i64, message: &NewMessage) {
        self.0.push(MESSAGE);
        self.put_number(seq);
        for id in [
            message.id.as_str(),
            message.account_id.as_str(),
            message.environment_id.as_str(),
        ] {
            self.put_bytes(id);
        }
        self.put_bytes(message.flow_id.as_str());
        self.put_bytes(&message.flow_name);
        self.put_number(message.flow_version.into());
        self.put_bytes(message.trigger.as_str());
        self.put_bytes(&message.raw_body);
        self.put_optional(message.payload.as_ref());
        self.put_bytes(&message.request);
        self.put_number(message.received_at.as_millis());
        self.put_optional(message.replay_of.as_ref().map(MessageId::as_str));
        self.put_optional(message.batch_id.as_ref());
        self.put_number(message.max_attempts.into());
        self.put_optional(message.traceparent.as_ref());
        let (place, owner) = match &message.place {
            Placement::Leased(owner) | Placement::Awaited(owner) => ("leased", owner.as_str()),
            Placement::Queued => ("queued", ""),
            Placement::Held => ("held", ""),
        };
        self.put_bytes(place);
        self.put_bytes(owner);
    }

    pub fn push_settlement(&mut self, event_seq: i64, change: &Change) {
        self.0.push(SETTLEMENT);
        self.put_number(event_seq);
        self.put_bytes(change.message_id.as_str());
        self.put_number(change.message_seq);
        self.put_bytes(change.from_owner.as_str());
        self.put_number(change.from_token);
        self.put_number(change.at.as_millis());
        self.put_bytes(change.status.map_or("", Status::as_str));
        self.put_number(change.attempts.map_or(-1, i64::from));
        match &change.error {
            ErrorChange::Keep => self.put_bytes("keep"),
            ErrorChange::Clear => self.put_bytes("clear"),
            ErrorChange::Set(failure) => {
                self.put_bytes("set");
                self.put_bytes(failure.kind.as_str());
                self.put_bytes(&failure.message);
                self.put_optional(failure.field.as_ref());
                self.put_optional(failure.expression.as_ref());
            }
        }
        self.put_optional(change.output.as_ref());
        self.put_optional(change.trace.as_ref());
    }

    fn put_number(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn put_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn put_optional(&mut self, bytes: Option<impl AsRef<[u8]>>) {
        self.0.push(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.put_bytes(bytes);
        }
    }
}

/// Decodes a payload.
pub(super) fn decode(payload: Vec<u8>) -> Result<DecodedRecord, Error> {
    let mut rest = PayloadReader(Bytes::from(payload));
    let mut record = DecodedRecord::default();
    while !rest.0.is_empty() {
        match rest.byte() {
            Some(MESSAGE) => record.messages.push(rest.message().ok_or_else(unreadable)?),
            Some(SETTLEMENT) => record
                .settlements
                .push(rest.settlement().ok_or_else(unreadable)?),
            _ => return Err(unreadable()),
        }
    }
    Ok(record)
}

/// Decodes a payload and encodes it again; `None` when it cannot be decoded.
#[cfg(feature = "fuzz")]
pub(in crate::sqlite) fn reencode(payload: Vec<u8>) -> Option<Vec<u8>> {
    let decoded = decode(payload).ok()?;
    let mut record = JournalRecord::new();
    for (seq, message) in &decoded.messages {
        record.push_message(*seq, message);
    }
    for (event_seq, change) in &decoded.settlements {
        record.push_settlement(*event_seq, change);
    }
    Some(record.0.split_off(RECORD_HEADER_BYTES))
}

/// Rest of a payload. Each function returns `None` when the payload does not begin as it expects.
struct PayloadReader(Bytes);

impl PayloadReader {
    fn message(&mut self) -> Option<(i64, NewMessage)> {
        let seq = self.number()?;
        let message = NewMessage {
            id: MessageId::new(self.text()?),
            account_id: AccountId::new(self.text()?),
            environment_id: EnvironmentId::new(self.text()?),
            flow_id: FlowId::new(self.text()?),
            flow_name: self.text()?,
            flow_version: self.u32()?,
            trigger: Trigger::parse(&self.text()?)?,
            raw_body: self.bytes()?,
            payload: self.optional(Self::bytes)?,
            request: self.bytes()?,
            received_at: Timestamp::from_millis(self.number()?),
            ordering_key: None,
            dedupe_keys: Vec::new(),
            replay_of: self.optional(Self::text)?.map(MessageId::new),
            batch_id: self.optional(Self::text)?,
            max_attempts: self.u32()?,
            traceparent: self.optional(Self::text)?,
            place: match (self.text()?.as_str(), self.text()?) {
                ("leased", owner) => Placement::Leased(BootId::new(owner)),
                ("queued", _) => Placement::Queued,
                ("held", _) => Placement::Held,
                _ => return None,
            },
        };
        Some((seq, message))
    }

    fn settlement(&mut self) -> Option<(i64, Change)> {
        let event_seq = self.number()?;
        let change = Change {
            message_id: MessageId::new(self.text()?),
            message_seq: self.number()?,
            from_owner: BootId::new(self.text()?),
            from_token: self.number()?,
            at: Timestamp::from_millis(self.number()?),
            to_owner: nobody(),
            status: Some(Status::parse(&self.text()?)?),
            attempts: u32::try_from(self.number()?).ok(),
            due_at: None,
            error: match self.text()?.as_str() {
                "keep" => ErrorChange::Keep,
                "clear" => ErrorChange::Clear,
                "set" => ErrorChange::Set(Failure {
                    kind: ErrorKind::parse(&self.text()?)?,
                    message: self.text()?,
                    field: self.optional(Self::text)?,
                    expression: self.optional(Self::text)?,
                }),
                _ => return None,
            },
            output: self.optional(Self::bytes)?,
            trace: self.optional(Self::text)?,
            ordered: false,
        };
        Some((event_seq, change))
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

    fn u32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let length = self.number()?.try_into().ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.into()).ok()
    }

    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
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

    fn encoded() -> (NewMessage, Change, Vec<u8>) {
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
            message_seq: 7,
            from_owner: BootId::new("boot_1"),
            from_token: 7,
            at: Timestamp::from_millis(12),
            to_owner: nobody(),
            status: Some(Status::DeadLetter),
            attempts: Some(3),
            due_at: None,
            error: ErrorChange::Set(failure),
            output: Some(Bytes::from_static(b"sent")),
            trace: Some("[]".to_owned()),
            ordered: false,
        };
        let mut record = JournalRecord::new();
        record.push_message(7, &message);
        record.push_settlement(8, &change);
        assert!(!record.is_empty());
        let payload = record.bytes_mut()[RECORD_HEADER_BYTES..].to_vec();
        record.clear();
        assert!(record.is_empty());
        (message, change, payload)
    }

    #[test]
    fn decodes_the_encoded_operations() {
        let (message, change, payload) = encoded();
        let decoded = decode(payload).unwrap();
        let [(7, decoded_message)] = decoded.messages.as_slice() else {
            panic!("one message")
        };
        let [(8, decoded_change)] = decoded.settlements.as_slice() else {
            panic!("one settlement")
        };
        assert_eq!(format!("{decoded_message:?}"), format!("{message:?}"));
        assert_eq!(format!("{decoded_change:?}"), format!("{change:?}"));
        assert!(decode(Vec::new()).unwrap().messages.is_empty());
    }

    #[test]
    fn a_truncated_payload_is_an_error() {
        let (.., payload) = encoded();
        let whole = {
            let mut record = JournalRecord::new();
            record.push_message(7, &encoded().0);
            record.bytes_mut().len() - RECORD_HEADER_BYTES
        };
        for cut in (1..payload.len()).filter(|cut| *cut != whole) {
            assert!(decode(payload[..cut].to_vec()).is_err(), "{cut}");
        }
        assert!(decode(vec![9]).is_err());
    }
}
