//! Rotation of the master key: everything at rest is sealed anew under the first key, and the
//! former ones may go.

pub mod active_calls;
mod reseal;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use kanat_auth::{KeyFile, Role};
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_store::{control_plane, sealed};
use tokio::sync::{Mutex, oneshot};

use crate::app::audit::{self, Entity};
use crate::app::{App, Call};
use crate::master_key;
pub use active_calls::ActiveCalls;

/// Longest time that calls which began under the former key are waited for.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Most passes over all sealed values. Each one finds what calls wrote that were under way during
/// the one before.
const MAX_PASSES: u32 = 8;

/// Seals what the process keeps outside of the store, and gives the number of files that it wrote
/// anew.
pub type Elsewhere = Arc<dyn Fn() -> BoxFuture<'static, std::io::Result<u32>> + Send + Sync>;

/// Master keys of the process, as far as they can be exchanged.
#[derive(Default)]
pub struct MasterKeys {
    /// File that the keys come from, where no other process has the folder and the store; `None`
    /// where settings give the keys, or other processes need them too.
    file: Option<KeyFile>,
    /// Held while everything is sealed anew.
    turn: Mutex<()>,
    elsewhere: OnceLock<Elsewhere>,
    /// Calls that may write what they sealed or read before.
    pub calls: ActiveCalls,
}

impl MasterKeys {
    /// Takes the keys of a file that is this process's alone, or none.
    pub fn of(file: Option<KeyFile>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// Has what is kept outside of the store sealed anew too.
    pub fn seal_elsewhere(&self, elsewhere: Elsewhere) {
        // It is told once, at the start.
        let _ = self.elsewhere.set(elsewhere);
    }
}

/// Result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    pub key_id: String,
    /// True when this call made the key.
    pub new_key: bool,
    pub resealed: u32,
    /// Number of values that no key at hand opens.
    pub unreadable: u32,
    /// Ids of keys that nothing is sealed under any more.
    pub former_keys: Vec<String>,
    /// When the former keys may be taken out of the settings; none where there are none.
    pub former_keys_may_go_at: Option<Timestamp>,
}

/// Makes a new master key, where that is this process's to make and no former rotation is
/// unfinished, and seals everything under the first key. It goes on when the caller stops waiting.
///
/// # Errors
/// The caller is no owner of the whole account; another rotation is under way; there is no second
/// key, and this process cannot make one; another control plane seals under another key; the store
/// or the disk fails. What is sealed anew by then stays so, every key that is needed is kept, and
/// the next call goes on.
pub async fn rotate(call: Call) -> Result<Rotation> {
    if call.caller.role != Role::Owner || call.caller.bound_to.is_some() {
        let message =
            "only a key of role owner that is bound to no environment may rotate the master key";
        return Err(Error::new(Code::PermissionDenied, message));
    }
    let (answer, rotated) = oneshot::channel();
    let tasks = call.app.tasks.clone();
    tasks.run_to_completion(async move {
        // Nobody may be left to hear it.
        let _ = answer.send(rotate_once(&call).await);
    });
    rotated
        .await
        .unwrap_or_else(|_| Err(Error::unavailable("the service stops")))
}

async fn rotate_once(call: &Call) -> Result<Rotation> {
    let keys = &call.app.master_keys;
    let Ok(_turn) = keys.turn.try_lock() else {
        return Err(Error::new(
            Code::Aborted,
            "the master key is being rotated already",
        ));
    };
    let new_key = begin(call).await?;
    if !new_key {
        audit::record_before_work(call, entity(call), None).await?;
    }
    refuse_other_keys(&call.app).await?;
    let mut all = reseal::Count::default();
    for _ in 0..MAX_PASSES {
        if !keys.calls.ended(DRAIN_TIMEOUT).await {
            return Err(unfinished("calls that began before are still under way"));
        }
        let found = reseal::all(&call.app).await?;
        all.resealed += found.resealed;
        all.unreadable = found.unreadable;
        if found.resealed == 0 {
            kanat_failpoint::hit("secrets.resealed");
            return finish(&call.app, new_key, all).await;
        }
    }
    Err(unfinished(
        "values are written under a former key all the time",
    ))
}

/// Returns what the audit log tells a rotation to be about.
fn entity(call: &Call) -> Entity {
    Entity {
        id: Some(call.caller.account_id.to_string()),
        ..Entity::default()
    }
}

/// Puts a new key in front where that is to be done here; gives whether it did.
async fn begin(call: &Call) -> Result<bool> {
    let ids = call.app.sealer.key_ids();
    let Some(file) = call.app.master_keys.file.as_ref() else {
        return if ids.len() > 1 {
            Ok(false)
        } else {
            Err(no_second_key())
        };
    };
    let mut tx = call.write().await?;
    // A former rotation is finished before there is another one.
    if ids.len() > 1 || call.caller.repeats(&mut tx, &ids[0]).await? {
        return Ok(false);
    }
    let file = file.clone();
    let sealer = Arc::clone(&call.app.sealer);
    let put = tokio::task::spawn_blocking(move || file.put_new_key_in_front(&sealer));
    let put = put
        .await
        .map_err(|_| Error::unavailable("the service stops"))?;
    put.map_err(|error| {
        tracing::error!(%error, "a new master key cannot be written");
        Error::unavailable("the new master key cannot be written")
    })?;
    kanat_failpoint::hit("secrets.new_key");
    audit::record(call, &mut tx, entity(call), None, None).await?;
    tx.commit().await?;
    tracing::info!("a new master key seals from now on");
    Ok(true)
}

/// Drops the former keys where they are this process's to drop.
async fn finish(app: &App, new_key: bool, count: reseal::Count) -> Result<Rotation> {
    // One may have started meanwhile.
    refuse_other_keys(app).await?;
    master_key::renew(&app.store, &app.sealer).await?;
    if let Some(elsewhere) = app.master_keys.elsewhere.get() {
        elsewhere().await.map_err(|error| {
            tracing::error!(%error, "saved plans cannot be sealed under another master key");
            unfinished("the saved plans cannot be written")
        })?;
    }
    if let Some(file) = app.master_keys.file.clone() {
        let sealer = Arc::clone(&app.sealer);
        let dropped = tokio::task::spawn_blocking(move || file.drop_former_keys(&sealer)).await;
        dropped
            .map_err(|_| Error::unavailable("the service stops"))?
            .map_err(|error| {
                tracing::error!(%error, "the former master keys cannot be taken out of their file");
                unfinished("the key file cannot be written")
            })?;
    }
    let mut ids = app.sealer.key_ids();
    let former_keys = ids.split_off(1);
    let now = Timestamp::now();
    let last_start = sealed::last_start_ends_at(&mut *app.store.read().await?, now).await?;
    let reseal::Count {
        resealed,
        unreadable,
    } = count;
    tracing::info!(
        resealed,
        unreadable,
        "everything is sealed under the master key in use"
    );
    Ok(Rotation {
        key_id: ids.concat(),
        new_key,
        resealed,
        unreadable,
        former_keys_may_go_at: (!former_keys.is_empty()).then(|| last_start.unwrap_or(now)),
        former_keys,
    })
}

/// Errors when another control plane of the database lives that seals under another key: what it
/// writes would need that key.
async fn refuse_other_keys(app: &App) -> Result<()> {
    if !app.store.is_shared() {
        return Ok(());
    }
    let key_id = &app.sealer.key_ids()[0];
    match control_plane::under_other_keys(&mut *app.store.read().await?, key_id).await? {
        0 => Ok(()),
        planes => Err(Error::precondition(format!(
            "{planes} control planes of this database seal under another master key than this one \
             ({key_id}): give all of them the same key in front, restart them, and call this \
             again; one that died counts for 20 s"
        ))),
    }
}

fn no_second_key() -> Error {
    Error::precondition(
        "the master key is given to this service, which therefore makes no new one: give every \
         control plane the new key in front of the former one, KANAT_MASTER_KEY=<new>,<former> \
         (or two lines of master.key), restart them, and call this again; `openssl rand -base64 \
         32` makes a key",
    )
}

fn unfinished(why: &str) -> Error {
    Error::unavailable(format!(
        "the rotation of the master key is not finished, {why}: all keys are kept; call this again"
    ))
}
