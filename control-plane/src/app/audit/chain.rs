//! Chaining of entries: each gets a link with the SHA-256 of itself and of the link before it. The
//! head, which is the last link, has an authentication code under a key that the store has sealed
//! alone, so that nobody who may only write to the database makes another chain.

use kanat_auth::MacKey;
use kanat_model::id::AccountId;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::audit::chain::{self, Head, Link};
use kanat_store::audit::{Entry, Unreadable};
use kanat_store::{Db, meta};
use sha2::{Digest, Sha256};

use crate::app::{App, kept_key};

/// Links of one transaction, during which no other control plane chains.
const BATCH_SIZE: u32 = 200;

/// Hash before the first link.
const BEGINNING: [u8; 32] = [0; 32];

/// Returns the name of an account's key in the store.
pub fn key_name(account: &AccountId) -> String {
    format!("audit_key/{account}")
}

/// Chains the entries that wait for it.
pub async fn chain_all(app: &App) -> Result<()> {
    let accounts = chain::waiting_accounts(&mut *app.store.read().await?).await?;
    for account in accounts {
        while chain_some(app, &account).await? == BATCH_SIZE as usize {}
    }
    Ok(())
}

/// Chains some entries; returns how many.
async fn chain_some(app: &App, account: &AccountId) -> Result<usize> {
    let mut tx = app.store.begin().await?;
    chain::lock(&mut tx, account).await?;
    let (key, mut head) = key_and_head(app, &mut tx, account).await?;
    if !is_authentic(&key, &head) {
        tracing::error!(account.id = %account, "the head of the audit log was changed");
        return Err(Error::internal());
    }
    let entries = chain::pending(&mut tx, account, BATCH_SIZE).await?;
    let mut linked = 0;
    for entry in &entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(Unreadable { id, reason }) => {
                // Without a link it is found by who verifies the log.
                tracing::error!(entry.id = %id, %reason, "an entry of the audit log was changed");
                chain::no_longer_pending(&mut tx, id).await?;
                continue;
            }
        };
        linked += 1;
        head.sequence += 1;
        head.kept += 1;
        head.hash = hash(&head.hash, head.sequence, entry);
        let link = Link {
            account_id: account.clone(),
            sequence: head.sequence,
            entry_id: entry.id.clone(),
            hash: head.hash,
        };
        chain::insert_link(&mut tx, &link).await?;
        chain::no_longer_pending(&mut tx, &entry.id).await?;
    }
    if linked > 0 {
        head.code = key.code(&head_text(&head));
        chain::update_head(&mut tx, &head).await?;
    }
    if !entries.is_empty() {
        tx.commit().await?;
    }
    Ok(entries.len())
}

/// Returns the key and the head of a chain, which begins when it has neither.
async fn key_and_head(app: &App, db: &mut Db, account: &AccountId) -> Result<(MacKey, Head)> {
    let name = key_name(account);
    let mut key = kept_key::find(db, &app.sealer, &name).await?;
    if key.is_none() {
        // Another control plane may begin it.
        meta::lock(db).await?;
        chain::lock(db, account).await?;
        key = kept_key::find(db, &app.sealer, &name).await?;
    }
    match (key, chain::head(db, account).await?) {
        (Some(key), Some(head)) => Ok((MacKey::new(&key), head)),
        (None, None) => {
            let key = MacKey::new(&kept_key::make(db, &app.sealer, &name).await?);
            let mut head = Head {
                account_id: account.clone(),
                sequence: 0,
                hash: BEGINNING,
                kept: 0,
                code: [0; 32],
                anchor: 0,
                anchor_hash: BEGINNING,
                anchor_code: [0; 32],
            };
            head.code = key.code(&head_text(&head));
            head.anchor_code = key.code(&anchor_text(&head));
            chain::insert_head(db, &head).await?;
            Ok((key, head))
        }
        (Some(_), None) | (None, Some(_)) => {
            tracing::error!(account.id = %account, "the audit log lost its head or its key");
            Err(Error::internal())
        }
    }
}

/// Drops the entries that are older than `before`, from the beginning of the chain on; returns how
/// many. The last one that was dropped is the anchor, where what is kept begins.
pub async fn retain(app: &App, before: Timestamp) -> Result<u64> {
    let accounts = chain::accounts(&mut *app.store.read().await?).await?;
    let mut dropped = 0;
    for account in accounts {
        let mut tx = app.store.begin().await?;
        chain::lock(&mut tx, &account).await?;
        let (key, mut head) = key_and_head(app, &mut tx, &account).await?;
        let Some(last) = chain::last_before(&mut tx, &account, before).await? else {
            continue;
        };
        let Some(link) = chain::link(&mut tx, &account, last).await? else {
            continue;
        };
        if !is_authentic(&key, &head) {
            return Err(Error::internal());
        }
        chain::drop_entries(&mut tx, &account, head.anchor, last).await?;
        chain::drop_links(&mut tx, &account, head.anchor, last).await?;
        let count = last - head.anchor;
        head.anchor = last;
        head.anchor_hash = link.hash;
        head.anchor_code = key.code(&anchor_text(&head));
        head.kept = head.kept.saturating_sub(count);
        head.code = key.code(&head_text(&head));
        chain::update_head(&mut tx, &head).await?;
        tx.commit().await?;
        dropped += count;
    }
    Ok(dropped)
}

/// Logs the head of each chain, so that a chain that loses its end is found by the logs.
pub async fn log_heads(app: &App) -> Result<()> {
    let mut tx = app.store.read().await?;
    for account in chain::accounts(&mut tx).await? {
        if let Some(head) = chain::head(&mut tx, &account).await? {
            tracing::info!(
                account.id = %account,
                head = %text_of(&head),
                "the audit log ends here",
            );
        }
    }
    Ok(())
}

/// Returns a head as it is shown, and taken to be compared with.
pub fn text_of(head: &Head) -> String {
    let hash = hex::encode(head.hash);
    let code = hex::encode(head.code);
    format!("{}-{}-{hash}-{code}", head.sequence, head.kept)
}

/// Returns whether head and anchor are as this service has written them.
pub fn is_authentic(key: &MacKey, head: &Head) -> bool {
    key.is_code(&head_text(head), &head.code) && key.is_code(&anchor_text(head), &head.anchor_code)
}

/// Returns the text that the code of a head authenticates.
pub fn head_text(head: &Head) -> Vec<u8> {
    let Head {
        account_id,
        sequence,
        kept,
        hash,
        ..
    } = head;
    let hash = hex::encode(hash);
    format!("audit head {account_id} {sequence} {kept} {hash}").into_bytes()
}

fn anchor_text(head: &Head) -> Vec<u8> {
    let Head {
        account_id,
        anchor,
        anchor_hash,
        ..
    } = head;
    let hash = hex::encode(anchor_hash);
    format!("audit anchor {account_id} {anchor} {hash}").into_bytes()
}

/// Returns the hash of a link: of the hash before it, its sequence, and all fields of its entry,
/// each with its length in front.
pub fn hash(former: &[u8; 32], sequence: u64, entry: &Entry) -> [u8; 32] {
    let text = |text: &str| Some(text.to_owned());
    let actor = &entry.actor;
    let fields = [
        text(entry.id.as_str()),
        text(entry.account_id.as_str()),
        Some(entry.at.as_millis().to_string()),
        text(&entry.action),
        text(&entry.entity_type),
        entry.entity_id.clone(),
        entry.entity_name.clone(),
        entry.environment_id.as_ref().map(ToString::to_string),
        text(actor.kind.as_str()),
        text(&actor.id),
        text(&actor.name),
        actor.email.clone(),
        text(&actor.role),
        text(entry.via.as_str()),
        text(entry.status.as_str()),
        entry.before.clone(),
        entry.after.clone(),
        entry.request_id.clone(),
        entry.address.clone(),
        Some(entry.calls.to_string()),
    ];
    let mut digest = Sha256::new();
    digest.update(b"kanat audit link 1");
    digest.update(former);
    digest.update(sequence.to_be_bytes());
    for field in &fields {
        // No field has this length: it tells absent ones from empty ones.
        let length = field.as_ref().map_or(u64::MAX, |text| text.len() as u64);
        digest.update(length.to_be_bytes());
        digest.update(field.as_deref().unwrap_or_default());
    }
    digest.finalize().into()
}
