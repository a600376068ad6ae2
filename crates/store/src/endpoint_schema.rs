//! Schemas of the answers of connector instances' endpoints, derived from the answers received.

use kanat_model::Timestamp;
use kanat_model::id::InstanceId;

use crate::record::record;
use crate::statement::{lists, statements};

record! {
    pub struct EndpointSchema {
        pub instance_id: InstanceId,
        /// Method and path.
        pub endpoint: String,
        /// JSON of what the last check accepted; absent before the first.
        pub accepted: Option<String>,
        /// JSON of what was seen since then.
        pub seen: String,
        /// How many answers it was told from.
        pub samples: u64,
        pub first_seen_at: Timestamp,
        pub last_seen_at: Timestamp,
        pub checked_at: Option<Timestamp>,
    }
}

statements! {
    /// Writes what is known of an endpoint.
    fn put(..schema: &EndpointSchema) =
        "INSERT INTO endpoint_schema ({COLUMNS}) VALUES ({VALUES}) ON CONFLICT (instance_id, \
         endpoint) DO UPDATE SET accepted = excluded.accepted, seen = excluded.seen, samples = \
         excluded.samples, last_seen_at = excluded.last_seen_at, checked_at = excluded.checked_at";

    /// Returns the schema of one endpoint.
    fn get(instance: &InstanceId, endpoint: &str) -> Option<EndpointSchema> =
        "SELECT {COLUMNS} FROM endpoint_schema WHERE instance_id = $1 AND endpoint = $2";
}

lists! {
    /// The endpoints of an instance by name.
    fn list(instance: &InstanceId) -> EndpointSchema =
        "FROM endpoint_schema WHERE instance_id = $1",
        "ORDER BY endpoint LIMIT $2 OFFSET $3";
}
