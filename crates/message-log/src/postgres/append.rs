//! New messages, many at a time.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use sqlx::{PgPool, Row};

use super::columns::{bind_each, each};
use super::commit_marker::CommitMarker;
use super::text::{optional, text};
use super::transaction::Transaction;
use crate::append::NewRow;
use crate::{AppendOutcome, DedupeKey, NewMessage};

pub(super) const FIND_DUPLICATES: &str = "
SELECT v.number, d.message_id
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS v(number, flow_id, key,
    received_at)
CROSS JOIN LATERAL (
    SELECT k.message_id FROM dedupe AS k
    WHERE k.flow_id = v.flow_id AND k.key = v.key AND k.expires_at > v.received_at OFFSET 0) AS d";

pub(super) const FIND_UNFINISHED_OF_ORDERING_KEYS: &str = "
SELECT v.number FROM unnest($1::bigint[], $2::text[], $3::text[]) AS v(number, flow_id,
    ordering_key)
WHERE (
    SELECT true FROM messages AS m
    WHERE m.flow_id = v.flow_id AND m.ordering_key = v.ordering_key AND m.completed_at IS NULL
        LIMIT 1)";

pub(super) const INSERT: &str = "
WITH bodies AS (
    INSERT INTO bodies (seq, raw_body, payload, request)
    SELECT * FROM unnest($1::bigint[], $20::bytea[], $21::bytea[], $22::bytea[])
)
INSERT INTO messages (seq, token, id, account_id, environment_id, flow_id, flow_name, flow_version,
    trigger_kind, status, accepted_as, owner, due_at, ordering_key, max_attempts, granted_attempts,
    received_at, replay_of, batch_id, traceparent, size_bytes)
SELECT v.seq, v.seq, v.id, v.account_id, v.environment_id, v.flow_id, v.flow_name, v.flow_version,
    v.trigger_kind, v.status, v.accepted_as, v.owner, v.due_at, v.ordering_key, v.max_attempts,
    v.max_attempts, v.received_at, v.replay_of, v.batch_id, v.traceparent, v.size_bytes
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::text[], $14::bigint[],
    $15::bigint[], $16::text[], $17::text[], $18::text[], $19::bigint[])
    AS v(seq, id, account_id, environment_id, flow_id, flow_name, flow_version, trigger_kind,
        status, accepted_as, owner, due_at, ordering_key, max_attempts, received_at, replay_of,
        batch_id, traceparent, size_bytes)";

/// A key of which the time is over is taken anew.
pub(super) const INSERT_DEDUPE_KEYS: &str = "
INSERT INTO dedupe (flow_id, key, message_id, expires_at)
SELECT DISTINCT ON (v.flow_id, v.key) v.flow_id, v.key, v.message_id, v.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY
    AS v(flow_id, key, message_id, expires_at, number)
ORDER BY v.flow_id, v.key, v.number DESC
ON CONFLICT (flow_id, key) DO UPDATE SET message_id = excluded.message_id, expires_at
    = excluded.expires_at";

/// Gives a key to a message, unless another one holds it at `$5`.
pub(super) const TAKE_KEY: &str = "
INSERT INTO dedupe (flow_id, key, message_id, expires_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (flow_id, key) DO UPDATE SET message_id = excluded.message_id, expires_at
    = excluded.expires_at
WHERE dedupe.expires_at <= $5";

/// Stores what is no duplicate; says of each message what became of it. The keys of the messages
/// are locked.
pub(super) async fn append(
    tx: &mut Transaction<'_>,
    messages: &[(usize, &NewMessage)],
) -> sqlx::Result<Vec<(usize, AppendOutcome)>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let duplicates = duplicates(tx, messages).await?;
    let mut fresh = Vec::with_capacity(messages.len());
    let mut indexes = Vec::with_capacity(messages.len());
    for &(index, message) in messages
        .iter()
        .filter(|(index, _)| !duplicates.contains_key(index))
    {
        fresh.push(NewRow::new(message, tx.next_seq()?));
        indexes.push(index);
    }
    mark_queued(tx, &mut fresh).await?;
    insert(tx, &fresh).await?;
    insert_dedupe_keys(tx, &fresh).await?;

    let mut appended: Vec<_> = duplicates
        .into_iter()
        .map(|(index, id)| (index, AppendOutcome::Duplicate(id)))
        .collect();
    appended.extend(indexes.into_iter().zip(fresh.iter().map(NewRow::outcome)));
    Ok(appended)
}

/// The messages whose keys are known, from the log or from an earlier message of this group.
async fn duplicates(
    tx: &mut Transaction<'_>,
    messages: &[(usize, &NewMessage)],
) -> sqlx::Result<HashMap<usize, MessageId>> {
    let keyed: Vec<(usize, &NewMessage)> = messages
        .iter()
        .filter(|(_, m)| !m.dedupe_keys.is_empty())
        .copied()
        .collect();
    let mut known = known_keys(tx, &keyed).await?;
    let mut duplicates = HashMap::new();
    let mut first: HashMap<(&str, &str), (&MessageId, Timestamp)> = HashMap::new();
    for (number, (index, message)) in (0..).zip(keyed) {
        let flow = message.flow_id.as_str();
        let earlier = refusing(message).find_map(|dedupe| {
            first
                .get(&(flow, dedupe.key.as_str()))
                .filter(|(_, expires_at)| *expires_at > message.received_at)
        });
        if let Some(id) = known.remove(&number) {
            duplicates.insert(index, MessageId::new(id));
        } else if let Some((id, _)) = earlier {
            duplicates.insert(index, (*id).clone());
        } else {
            let expires_at = |dedupe: &DedupeKey| message.received_at.after(dedupe.ttl);
            for dedupe in &message.dedupe_keys {
                let key = (flow, dedupe.key.as_str());
                let holder = (&message.id, expires_at(dedupe));
                if dedupe.refuses_repeats() {
                    first.insert(key, holder);
                } else {
                    first.entry(key).or_insert(holder);
                }
            }
        }
    }
    Ok(duplicates)
}

/// The messages that the log knows repeats of, by their numbers.
async fn known_keys(
    tx: &mut Transaction<'_>,
    messages: &[(usize, &NewMessage)],
) -> sqlx::Result<HashMap<i64, String>> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let numbered = (0_i64..).zip(messages);
    let keys: Vec<(i64, &NewMessage, Cow<'_, str>)> = numbered
        .flat_map(|(number, (_, message))| {
            refusing(message).map(move |d| (number, *message, text(&d.key)))
        })
        .collect();
    let rows = sqlx::query(FIND_DUPLICATES)
        .bind(each(&keys, |(number, _, _)| *number))
        .bind(each(&keys, |(_, message, _)| message.flow_id.as_str()))
        .bind(each(&keys, |(_, _, key)| key.as_ref()))
        .bind(each(&keys, |(_, message, _)| {
            message.received_at.as_millis()
        }))
        .fetch_all(&mut *tx.conn)
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

/// Finds the messages that have an unfinished one of their key before them.
async fn mark_queued(tx: &mut Transaction<'_>, fresh: &mut [NewRow<'_>]) -> sqlx::Result<()> {
    let mut keys: Vec<(i64, (&str, &str))> = Vec::new();
    let mut numbers: HashMap<(&str, &str), i64> = HashMap::new();
    for key in fresh.iter().filter_map(order) {
        let next = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
        numbers.entry(key).or_insert_with(|| {
            keys.push((next, key));
            next
        });
    }
    if keys.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query(FIND_UNFINISHED_OF_ORDERING_KEYS)
        .bind(each(&keys, |(number, _)| *number))
        .bind(each(&keys, |(_, (flow, _))| *flow))
        .bind(each(&keys, |(_, (_, key))| text(key)))
        .fetch_all(&mut *tx.conn)
        .await?;
    let mut busy = rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<HashSet<i64>, _>>()?;
    for fresh in fresh {
        if let Some(number) = order(fresh).and_then(|key| numbers.get(&key)) {
            fresh.is_blocked = !busy.insert(*number);
        }
    }
    Ok(())
}

async fn insert(tx: &mut Transaction<'_>, fresh: &[NewRow<'_>]) -> sqlx::Result<()> {
    let Some(first) = fresh.first() else {
        return Ok(());
    };
    tx.marker = Some(CommitMarker::Message {
        seq: first.seq,
        id: first.message.id.clone(),
    });
    let query = bind_each!(sqlx::query(INSERT), fresh, |f| [
        f.seq,
        text(f.message.id.as_str()),
        text(f.message.account_id.as_str()),
        text(f.message.environment_id.as_str()),
        text(f.message.flow_id.as_str()),
        text(&f.message.flow_name),
        i64::from(f.message.flow_version),
        f.message.trigger.as_str(),
        f.status().as_str(),
        f.arrival_status().as_str(),
        f.owner(),
        f.due_at(),
        optional(f.message.ordering_key.as_deref()),
        i64::from(f.message.max_attempts.max(1)),
        f.message.received_at.as_millis(),
        optional(f.message.replay_of.as_ref().map(MessageId::as_str)),
        optional(f.message.batch_id.as_deref()),
        optional(f.message.traceparent.as_deref()),
        f.message.size_column(),
        f.message.raw_body.as_ref(),
        f.message.payload.as_deref(),
        f.message.request.as_ref(),
    ]);
    query.execute(&mut *tx.conn).await?;
    Ok(())
}

async fn insert_dedupe_keys(tx: &mut Transaction<'_>, fresh: &[NewRow<'_>]) -> sqlx::Result<()> {
    let keys: Vec<(&NewMessage, &DedupeKey)> = fresh
        .iter()
        .flat_map(|fresh| {
            fresh
                .message
                .dedupe_keys
                .iter()
                .map(|dedupe| (fresh.message, dedupe))
        })
        .collect();
    let (keys, accepting): (Vec<_>, Vec<_>) = keys
        .into_iter()
        .partition(|(_, dedupe)| dedupe.refuses_repeats());
    if !keys.is_empty() {
        insert_refusing_keys(tx, &keys).await?;
    }
    // Last, so that a key which a message of this group has taken stays with it.
    for (message, dedupe) in accepting {
        let holder = (&message.flow_id, &message.id);
        take_key(tx, holder, dedupe, message.received_at).await?;
    }
    Ok(())
}

/// Gives a locked key to a message from `since` on, unless another one holds it.
pub(super) async fn take_key(
    tx: &mut Transaction<'_>,
    (flow_id, message_id): (&FlowId, &MessageId),
    dedupe: &DedupeKey,
    since: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(TAKE_KEY)
        .bind(text(flow_id.as_str()))
        .bind(text(&dedupe.key))
        .bind(text(message_id.as_str()))
        .bind(since.after(dedupe.ttl).as_millis())
        .bind(since.as_millis())
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}

async fn insert_refusing_keys(
    tx: &mut Transaction<'_>,
    keys: &[(&NewMessage, &DedupeKey)],
) -> sqlx::Result<()> {
    sqlx::query(INSERT_DEDUPE_KEYS)
        .bind(each(keys, |(message, _)| message.flow_id.as_str()))
        .bind(each(keys, |(_, dedupe)| text(&dedupe.key)))
        .bind(each(keys, |(message, _)| message.id.as_str()))
        .bind(each(keys, |(message, dedupe)| {
            message.received_at.after(dedupe.ttl).as_millis()
        }))
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}

/// Keys of a message that make it a duplicate where another message holds them.
fn refusing(message: &NewMessage) -> impl Iterator<Item = &DedupeKey> {
    message
        .dedupe_keys
        .iter()
        .filter(|key| key.refuses_repeats())
}

/// Returns the flow and the ordering key of a message, if it has one.
fn order<'m>(row: &NewRow<'m>) -> Option<(&'m str, &'m str)> {
    let message = row.message;
    let key = message.ordering_key.as_deref()?;
    Some((message.flow_id.as_str(), key))
}

/// Writes random bytes, which cannot be compressed.
const PROBE: &str = "
INSERT INTO bodies (seq, raw_body, request)
SELECT nextval('events'), decode(string_agg(md5(random()::text), ''), 'hex'), ''
    FROM generate_series(1, 200)";

/// Has the database find room for a body, and gives it back.
pub(super) async fn probe(workers: &PgPool) -> sqlx::Result<()> {
    let mut tx = workers.begin().await?;
    sqlx::query(PROBE).execute(&mut *tx).await?;
    tx.rollback().await
}
