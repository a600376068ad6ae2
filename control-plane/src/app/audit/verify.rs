//! Verification of an account's audit log: every entry, every link, and the head.

use kanat_auth::MacKey;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::Db;
use kanat_store::audit::chain::{self as links, Head, LinkedEntry};

use super::chain;
use crate::app::{Call, kept_key};

/// Links that are read together.
const BATCH_SIZE: u32 = 500;

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of chained entries that were looked at.
    pub entries: u64,
    /// Times of the first and of the last one.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Number of entries that wait for their link.
    pub unchained: u64,
    /// First fault, if there is one.
    pub fault: Option<Fault>,
    /// The head, to be compared with later.
    pub head: Option<String>,
}

/// Difference between the log and what the service has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Id of the entry, or `head`.
    pub at: String,
    pub reason: String,
}

impl Fault {
    fn new(at: impl ToString, reason: impl Into<String>) -> Self {
        Self {
            at: at.to_string(),
            reason: reason.into(),
        }
    }

    fn of_head(reason: &str) -> Self {
        Self::new("head", reason)
    }
}

/// Verifies the log, and compares it with a head that was shown before.
///
/// # Errors
/// The caller sees one environment only; the former head is no text of a head, or is older than
/// what retention has kept.
pub async fn verify(call: &Call, former: Option<&str>) -> Result<Verification> {
    call.caller.refuse_if_bound()?;
    // What was just done is looked at too. A chain that cannot go on is found below.
    let _ = chain::chain_all(&call.app).await;
    let mut tx = call.read().await?;
    let account = &call.caller.account_id;
    let mut found = Verification {
        unchained: links::count_pending(&mut tx, account).await?,
        ..Verification::default()
    };
    let key = kept_key::find(&mut tx, &call.app.sealer, &chain::key_name(account)).await;
    let head = match links::head(&mut tx, account).await {
        Err(error) if error.is_of_row() => {
            found.fault = Some(Fault::of_head("the head is not as it was written"));
            return Ok(found);
        }
        head => head?,
    };
    let (key, head) = match (key, head) {
        (Ok(Some(key)), Some(head)) => (MacKey::new(&key), head),
        (Err(_), _) => {
            found.fault = Some(Fault::of_head("the key of the chain cannot be opened"));
            return Ok(found);
        }
        (Ok(None), None) => {
            let unlinked = links::unlinked(&mut tx, account).await?;
            let is_empty = unlinked.is_none() && former.is_none();
            found.fault = (!is_empty).then(|| Fault::of_head("the chain is gone"));
            return Ok(found);
        }
        (Ok(Some(_)), None) | (Ok(None), Some(_)) => {
            found.fault = Some(Fault::of_head("the head or its key is gone"));
            return Ok(found);
        }
    };
    found.head = Some(chain::text_of(&head));
    if !chain::is_authentic(&key, &head) {
        found.fault = Some(Fault::of_head("the head is not as it was written"));
    }
    let walked = walk(&mut tx, &head, &mut found).await?;
    let beside = beside(call, &mut tx).await?;
    found.fault = found.fault.or(walked).or(beside);
    if let Some(former) = former {
        let former = parse(&head, former)?;
        if found.fault.is_none() {
            found.fault = differs(&mut tx, &key, &head, &former).await?;
        }
    }
    Ok(found)
}

/// Compares all links with their entries and with each other.
async fn walk(db: &mut Db, head: &Head, found: &mut Verification) -> Result<Option<Fault>> {
    let mut sequence = head.anchor;
    let mut hash = head.anchor_hash;
    let mut fault = None;
    loop {
        let some = match links::linked(db, &head.account_id, sequence, BATCH_SIZE).await {
            Err(error) if error.is_of_row() => {
                let unreadable = || Fault::of_head("a link of the chain was changed");
                return Ok(fault.or_else(|| Some(unreadable())));
            }
            some => some?,
        };
        if some.is_empty() {
            break;
        }
        for LinkedEntry { link, entry } in some {
            let id = &link.entry_id;
            let problem = match &entry {
                _ if link.sequence != sequence + 1 => Some("what was before it is gone"),
                None => Some("it is gone"),
                Some(Ok(entry)) if chain::hash(&hash, link.sequence, entry) == link.hash => None,
                Some(Ok(_) | Err(_)) => Some("it, or its place in the chain, was changed"),
            };
            if let Some(problem) = problem {
                fault = fault.or_else(|| Some(Fault::new(id, problem)));
            }
            found.entries += u64::from(entry.is_some());
            if let Some(Ok(entry)) = entry {
                found.from = found.from.or(Some(entry.at));
                found.to = Some(entry.at);
            }
            sequence = link.sequence;
            hash = link.hash;
        }
    }
    let ends = sequence == head.sequence && hash == head.hash;
    let kept = head.sequence.checked_sub(head.anchor) == Some(head.kept);
    if fault.is_none() && !(ends && kept) {
        fault = Some(Fault::of_head(
            "the chain ends elsewhere than its head says",
        ));
    }
    Ok(fault)
}

/// Looks for entries that the chain does not know.
async fn beside(call: &Call, db: &mut Db) -> Result<Option<Fault>> {
    let account = &call.caller.account_id;
    if let Some(id) = links::unlinked(db, account).await? {
        return Ok(Some(Fault::new(id, "it was added beside the chain")));
    }
    let lost = links::lost(db, account).await?;
    Ok(lost.map(|id| Fault::new(id, "it is gone")))
}

/// Compares the chain with a head that was shown before.
async fn differs(db: &mut Db, key: &MacKey, head: &Head, former: &Head) -> Result<Option<Fault>> {
    if !key.is_code(&chain::head_text(former), &former.code) {
        return Ok(Some(Fault::of_head("the given head is none of this chain")));
    }
    if former.sequence < head.anchor {
        return Err(Error::precondition(
            "the given head is older than what is kept of the audit log",
        ));
    }
    let hash = if former.sequence == head.anchor {
        Some(head.anchor_hash)
    } else {
        let link = links::link(db, &head.account_id, former.sequence).await?;
        link.map(|link| link.hash)
    };
    let is_there = hash == Some(former.hash);
    Ok((!is_there).then(|| Fault::of_head("the given head is not in the chain: its end was cut")))
}

fn parse(head: &Head, text: &str) -> Result<Head> {
    let wrong = || Error::field("head", "is no head as this method shows it");
    let mut parts = text.trim().split('-');
    let mut part = || parts.next().ok_or_else(wrong);
    let mut former = head.clone();
    former.sequence = part()?.parse().map_err(|_| wrong())?;
    former.kept = part()?.parse().map_err(|_| wrong())?;
    hex::decode_to_slice(part()?, &mut former.hash).map_err(|_| wrong())?;
    hex::decode_to_slice(part()?, &mut former.code).map_err(|_| wrong())?;
    if parts.next().is_some() {
        return Err(wrong());
    }
    Ok(former)
}
