//! Conversion of the records of a page to messages. A record that was seen before and is unchanged
//! is skipped; one that is appended again after a crash is recognised by its key.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use kanat_message_log::{AppendOutcome, Error, MessageLog, NewMessage, Placement, SeenRecord, key};
use kanat_model::Timestamp;
use kanat_model::id::MessageId;
use kanat_model::message::Trigger;
use kanat_telemetry::metrics::Outcome;
use sha2::{Digest, Sha256};

use super::page;
use crate::plans::Runnable;

/// Time for which a record is remembered after it was last seen.
pub(super) const RECORD_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Age from which the memory of a record is refreshed.
const REFRESH_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Length of the longest id that is stored as it is; longer ids are hashed.
const MAX_ID_BYTES: usize = 256;

/// Concurrent appends. Records enter the log in their order.
const CONCURRENT_APPENDS: usize = 64;

/// A page of a cycle.
pub(super) struct Page<'a> {
    pub runnable: &'a Runnable,
    /// Path of the id of a record; empty when no record is skipped.
    pub record_id: &'a str,
    pub method: &'a str,
    pub began_at: Timestamp,
    /// Number of the page, from 0.
    pub number: u32,
    pub now: Timestamp,
}

/// Counts of the records of a page, or of a part of it.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub records: usize,
    /// Records that became messages.
    pub messages: usize,
    /// Records that have an id.
    pub identified: usize,
    /// Records that have the id of another one of the page, and are not equal to it.
    pub ambiguous: usize,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.messages += other.messages;
        self.identified += other.identified;
        self.ambiguous += other.ambiguous;
    }

    /// Returns the sentence on a path of ids that is probably misspelt.
    pub fn fault(&self, record_id: &str) -> Option<String> {
        if record_id.is_empty() || self.records == 0 {
            return None;
        }
        let Self {
            records, ambiguous, ..
        } = self;
        if self.identified == 0 {
            Some(format!(
                "record_id {record_id:?} is in none of the {records} records"
            ))
        } else if *ambiguous > 0 {
            Some(format!(
                "record_id {record_id:?} is no id: {ambiguous} of the {records} records of a page \
                 have the same value as another one, and are taken in each cycle"
            ))
        } else {
            None
        }
    }
}

impl Page<'_> {
    /// Appends a message for each new record; the first record has the index `first`. Returns the
    /// counts once all messages are durable.
    pub async fn take_in(
        &self,
        log: &dyn MessageLog,
        first: usize,
        records: Vec<Bytes>,
    ) -> Result<Counts, Error> {
        let flow = &self.runnable.flow.id;
        let ids: Vec<Option<String>> = records.iter().map(|record| self.id(record)).collect();
        let known: Vec<String> = ids.iter().flatten().cloned().collect();
        let mut counts = Counts {
            records: records.len(),
            identified: known.len(),
            ..Counts::default()
        };
        let mut seen: HashMap<String, SeenRecord> = HashMap::new();
        if !known.is_empty() {
            let oldest = self.now.before(RECORD_RETENTION);
            let found = log
                .seen_records(flow, &known)
                .await?
                .into_iter()
                .filter(|record| record.seen_at > oldest);
            seen.extend(found.map(|record| (record.id.clone(), record)));
        }
        let mut fresh = Vec::new();
        let mut notes = Vec::new();
        for (index, (record, id)) in records.into_iter().zip(ids).enumerate() {
            let hash = hex::encode(Sha256::digest(&record));
            let Some(id) = id else {
                fresh.push((
                    record,
                    key::record_position(self.began_at, self.number, first + index, &hash),
                ));
                continue;
            };
            let before = seen.get(&id);
            let count = match before {
                Some(before) if before.hash == hash => {
                    if self.now.since(before.seen_at) >= REFRESH_AGE {
                        notes.push(SeenRecord {
                            seen_at: self.now,
                            ..before.clone()
                        });
                    }
                    continue;
                }
                Some(before) => {
                    // Each page has an instant of its own.
                    counts.ambiguous += usize::from(before.seen_at == self.now);
                    before.count + 1
                }
                None => 1,
            };
            fresh.push((record, key::record(&id, count, &hash)));
            let note = SeenRecord {
                id: id.clone(),
                hash,
                count,
                seen_at: self.now,
            };
            notes.push(note.clone());
            seen.insert(id, note);
        }
        counts.messages = fresh.len();
        let appends =
            futures::stream::iter(fresh).map(|(record, key)| log.append(self.message(record, key)));
        let appends = appends.buffered(CONCURRENT_APPENDS);
        let flow_counts = &self.runnable.flow.counts;
        appends
            .try_for_each(|appended| {
                flow_counts.count(match appended {
                    AppendOutcome::Duplicate(_) => Outcome::Duplicate,
                    AppendOutcome::Leased(_)
                    | AppendOutcome::Awaited(_)
                    | AppendOutcome::Waiting => Outcome::Accepted,
                });
                std::future::ready(Ok(()))
            })
            .await?;
        if !notes.is_empty() {
            log.upsert_seen_records(flow, notes).await?;
        }
        Ok(counts)
    }

    fn id(&self, record: &[u8]) -> Option<String> {
        if self.record_id.is_empty() {
            return None;
        }
        let id = page::value(std::str::from_utf8(record).ok()?, self.record_id)?;
        let long = id.len() > MAX_ID_BYTES;
        Some(if long {
            format!("sha256:{}", hex::encode(Sha256::digest(id.as_bytes())))
        } else {
            id
        })
    }

    fn message(&self, record: Bytes, known_by: kanat_message_log::DedupeKey) -> NewMessage {
        let flow = &self.runnable.flow;
        let at = self.now;
        let plan = flow.plan();
        let method = &self.method;
        let request = format!(
            "{{\"headers\":{{}},\"query\":{{}},\"method\":\"{method}\",\"path_params\":{{}},\
             \"received_at\":\"{at}\"}}"
        );
        let keys = self.runnable.keys(&record, request.as_bytes(), at);
        NewMessage {
            id: MessageId::generate(),
            account_id: flow.account_id.clone(),
            environment_id: flow.environment_id.clone(),
            flow_id: flow.id.clone(),
            flow_name: plan.flow_name.clone(),
            flow_version: flow.version,
            trigger: Trigger::Poll,
            raw_body: record,
            payload: None,
            request: Bytes::from(request),
            received_at: at,
            ordering_key: keys.ordering.map(key::ordering),
            dedupe_keys: std::iter::once(known_by)
                .chain(keys.idempotency.map(key::idempotency))
                .collect(),
            replay_of: None,
            batch_id: None,
            max_attempts: plan
                .retry
                .as_ref()
                .map_or(1, |retry| retry.count.saturating_add(1)),
            traceparent: None,
            place: if flow.paused {
                Placement::Held
            } else {
                Placement::Queued
            },
        }
    }
}
