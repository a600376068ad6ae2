//! Results of calls with an idempotency key. A result is written in the transaction that makes it,
//! so that a call that is repeated after a crash finds it, although the first one was never
//! answered.

use kanat_model::Timestamp;

use crate::statement::statements;

statements! {
    /// Returns the id of what the call has made at `since` or later.
    fn made(call: &str, since: Timestamp) -> Option<String> =
        "SELECT made FROM done_call WHERE call = $1 AND created_at >= $2";

    /// Notes what the call has made, in the place of what it made before and is gone.
    fn note(call: &str, made: &str, at: Timestamp) =
        "INSERT INTO done_call (call, made, created_at) VALUES ($1, $2, $3) ON CONFLICT (call) DO \
         UPDATE SET made = excluded.made, created_at = excluded.created_at";

    /// Forgets what was made before `at`, of all credentials.
    fn forget_older(at: Timestamp) = "DELETE FROM done_call WHERE created_at < $1";
}
