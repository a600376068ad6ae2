//! How connector instances do, and every change of it.

use kanat_model::Timestamp;
use kanat_model::id::{HealthChangeId, InstanceId};

use crate::record::record;
use crate::statement::{lists, statements};

record! {
    /// How an instance does.
    pub struct ConnectorHealth {
        pub instance_id: InstanceId,
        pub status: String,
        /// Observation that the status follows from.
        pub reason: String,
        pub since: Timestamp,
        pub updated_at: Timestamp,
    }
}

record! {
    /// One change of it.
    pub struct HealthChange in "connector_health_change" {
        pub id: HealthChangeId,
        pub instance_id: InstanceId,
        pub previous: String,
        pub status: String,
        pub reason: String,
        pub at: Timestamp,
    }
}

statements! {
    /// Writes how an instance does.
    fn put(..health: &ConnectorHealth) =
        "INSERT INTO connector_health ({COLUMNS}) VALUES ({VALUES}) ON CONFLICT (instance_id) DO \
         UPDATE SET status = excluded.status, reason = excluded.reason, since = excluded.since, \
         updated_at = excluded.updated_at";

    /// How an instance does; none while nothing is known.
    fn get(instance: &InstanceId) -> Option<ConnectorHealth> =
        "SELECT {COLUMNS} FROM connector_health WHERE instance_id = $1";

    /// Drops all but the newest changes of an instance.
    fn keep_changes(instance: &InstanceId, newest: u32) =
        "DELETE FROM connector_health_change WHERE instance_id = $1 AND id NOT IN (SELECT id FROM \
         connector_health_change WHERE instance_id = $1 ORDER BY id DESC LIMIT $2)";

    /// Adds a change to the history.
    fn insert_change(..change: &HealthChange);
}

lists! {
    /// The changes of an instance, newest first.
    fn list_changes(instance: &InstanceId) -> HealthChange =
        "FROM connector_health_change WHERE instance_id = $1",
        "ORDER BY id DESC LIMIT $2 OFFSET $3";
}
