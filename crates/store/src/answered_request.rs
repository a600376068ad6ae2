//! Requests that came with an idempotency key: which request it was, and its sealed answer once
//! there is one.

use kanat_model::Timestamp;
use kanat_model::id::BootId;

use crate::record::record;
use crate::statement::statements;

record! {
    /// A request that was begun under a key.
    pub struct AnsweredRequest {
        /// SHA-256 of all that makes it this request.
        pub request: [u8; 32],
        /// Sealed; absent while it runs.
        pub answer: Option<Vec<u8>>,
        /// The boot of the control plane that runs it, or ran it; empty when that was not written
        /// down.
        pub begun_by: BootId,
        pub created_at: Timestamp,
    }
}

statements! {
    /// Returns the request of a credential under the idempotency key `name`.
    fn get(credential: &str, name: &str) -> Option<AnsweredRequest> =
        "SELECT {COLUMNS} FROM kept_answer WHERE key_id = $1 AND name = $2";

    /// Notes that a control plane runs a request; what was known under the key is forgotten.
    fn begin(
        credential: &str,
        name: &str,
        request: &[u8; 32],
        begun_by: &BootId,
        at: Timestamp,
    ) =
        "INSERT INTO kept_answer (key_id, name, request, answer, begun_by, created_at) VALUES \
         ($1, $2, $3, NULL, $4, $5) ON CONFLICT (key_id, name) DO UPDATE SET request = \
         excluded.request, answer = NULL, begun_by = excluded.begun_by, created_at = \
         excluded.created_at";

    /// Keeps the sealed answer, and which request it was, which may not have been known at its
    /// begin.
    fn answer(credential: &str, name: &str, request: &[u8; 32], sealed: &[u8]) =
        "UPDATE kept_answer SET request = $3, answer = $4 WHERE key_id = $1 AND name = $2";

    /// Forgets the requests that have no answer, for a process that is alone with the database and
    /// has just begun: they died with the one before.
    fn forget_unanswered() = "DELETE FROM kept_answer WHERE answer IS NULL";

    /// Makes the key free again.
    fn forget(credential: &str, name: &str) =
        "DELETE FROM kept_answer WHERE key_id = $1 AND name = $2";

    /// Forgets what was begun before `at`, of all accounts.
    fn forget_older(at: Timestamp) = "DELETE FROM kept_answer WHERE created_at < $1";
}
