//! The chain of an account's audit log: a link for each entry, in the order in which they were
//! chained, and the head, which is the last one. What the hashes and the codes mean is the
//! caller's.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, AuditEntryId};

use super::{Entry, StoredEntry};
use crate::record::record;
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Result};

record! {
    /// The place of an entry in the chain.
    pub struct Link in "audit_link" {
        pub account_id: AccountId,
        /// The first one has 1.
        pub sequence: u64,
        pub entry_id: AuditEntryId,
        pub hash: [u8; 32],
    }
}

record! {
    /// The end of a chain, and where what is kept of it begins.
    pub struct Head in "audit_head" {
        pub account_id: AccountId,
        /// Sequence of the last link; 0 before the first one.
        pub sequence: u64,
        pub hash: [u8; 32],
        /// Number of links that are kept.
        pub kept: u64,
        /// Message authentication code (MAC) of the fields above.
        pub code: [u8; 32],
        /// Sequence of the last link that was dropped; 0 when none was.
        pub anchor: u64,
        pub anchor_hash: [u8; 32],
        /// Message authentication code (MAC) of the anchor.
        pub anchor_code: [u8; 32],
    }
}

statements! {
    /// Writes the head of a new chain.
    fn insert_head(..head: &Head);

    /// Moves the head.
    fn update_head(..head: &Head) =
        "UPDATE audit_head SET sequence = {sequence}, hash = {hash}, kept = {kept}, code = {code}, \
         anchor = {anchor}, anchor_hash = {anchor_hash}, anchor_code = {anchor_code} WHERE \
         account_id = {account_id}";

    /// Makes others that extend the chain wait for the end of this transaction.
    fn lock(account: &AccountId) =
        "UPDATE audit_head SET sequence = sequence WHERE account_id = $1";

    fn head(account: &AccountId) -> Option<Head> =
        "SELECT {COLUMNS} FROM audit_head WHERE account_id = $1";

    /// Returns accounts that have a chain.
    fn accounts() -> Vec<AccountId> = "SELECT account_id FROM audit_head";

    /// Returns accounts that have entries without a link.
    fn waiting_accounts() -> Vec<AccountId> = "SELECT DISTINCT account_id FROM audit_pending";

    /// Counts the entries that wait for their link.
    fn count_pending(account: &AccountId) -> u64 =
        "SELECT COUNT(*) AS total FROM audit_pending WHERE account_id = $1";

    /// Returns entries that wait for their link, oldest first.
    fn pending(account: &AccountId, limit: u32) -> Vec<StoredEntry> =
        "SELECT {COLUMNS} FROM audit_entry WHERE id IN (SELECT entry_id FROM audit_pending WHERE \
         account_id = $1 ORDER BY entry_id LIMIT $2) AND account_id = $1 ORDER BY id";

    /// Returns the first entry that waits for its link and is not there.
    fn lost(account: &AccountId) -> Option<AuditEntryId> =
        "SELECT entry_id FROM audit_pending WHERE account_id = $1 AND NOT EXISTS (SELECT 1 FROM \
         audit_entry WHERE audit_entry.id = audit_pending.entry_id) ORDER BY entry_id LIMIT 1";

    /// Returns the first entry that has no link and does not wait for one.
    fn unlinked(account: &AccountId) -> Option<AuditEntryId> =
        "SELECT id FROM audit_entry WHERE account_id = $1 AND NOT EXISTS (SELECT 1 FROM \
         audit_link WHERE audit_link.entry_id = audit_entry.id) AND NOT EXISTS (SELECT 1 FROM \
         audit_pending WHERE audit_pending.entry_id = audit_entry.id) ORDER BY id LIMIT 1";

    fn no_longer_pending(entry: &AuditEntryId) = "DELETE FROM audit_pending WHERE entry_id = $1";

    /// Adds a link.
    fn insert_link(..link: &Link);

    fn link(account: &AccountId, sequence: u64) -> Option<Link> =
        "SELECT {COLUMNS} FROM audit_link WHERE account_id = $1 AND sequence = $2";

    /// Returns links behind one of this sequence, in their order.
    fn links(account: &AccountId, after: u64, limit: u32) -> Vec<Link> =
        "SELECT {COLUMNS} FROM audit_link WHERE account_id = $1 AND sequence > $2 ORDER BY \
         sequence LIMIT $3";

    /// Returns the last link up to a sequence whose entry is older than `before`, as are the
    /// entries of all links before it.
    fn last_before(account: &AccountId, before: Timestamp) -> Option<u64> =
        "SELECT sequence FROM audit_link JOIN audit_entry ON audit_entry.id = \
         audit_link.entry_id WHERE audit_link.account_id = $1 AND sequence < (SELECT \
         COALESCE(MIN(l.sequence), 9223372036854775807) FROM audit_link l JOIN audit_entry e ON \
         e.id = l.entry_id WHERE l.account_id = $1 AND e.at >= $2) ORDER BY sequence DESC LIMIT 1";

    /// Drops the entries of the links after `anchor` up to `last`.
    fn drop_entries(account: &AccountId, anchor: u64, last: u64) =
        "DELETE FROM audit_entry WHERE id IN (SELECT entry_id FROM audit_link WHERE account_id = \
         $1 AND sequence > $2 AND sequence <= $3)";

    fn drop_links(account: &AccountId, anchor: u64, last: u64) =
        "DELETE FROM audit_link WHERE account_id = $1 AND sequence > $2 AND sequence <= $3";
}

/// A link with its entry, where that is there.
#[derive(Debug)]
pub struct LinkedEntry {
    pub link: Link,
    pub entry: Option<StoredEntry>,
}

const ENTRIES: &str = sql!(
    Entry,
    "SELECT {COLUMNS} FROM audit_entry WHERE account_id = $1 AND id IN (SELECT entry_id FROM \
     audit_link WHERE account_id = $1 AND sequence > $2 AND sequence <= $3)"
);

/// Returns links behind one of this sequence, in their order, with their entries.
pub async fn linked(
    db: &mut Db,
    account: &AccountId,
    after: u64,
    limit: u32,
) -> Result<Vec<LinkedEntry>> {
    let links = links(db, account, after, limit).await?;
    let last = links.last().map_or(after, |link| link.sequence);
    let entries: Vec<StoredEntry> = db.all(ENTRIES, &[account, &after, &last]).await?;
    let id = |entry: &StoredEntry| match entry {
        Ok(entry) => entry.id.clone(),
        Err(unreadable) => unreadable.id.clone(),
    };
    let mut by_id: std::collections::HashMap<_, _> = entries
        .into_iter()
        .map(|entry| (id(&entry), entry))
        .collect();
    let with_entry = |link: Link| LinkedEntry {
        entry: by_id.remove(&link.entry_id),
        link,
    };
    Ok(links.into_iter().map(with_entry).collect())
}
