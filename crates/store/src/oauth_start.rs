//! Authorizations that were sent to a provider and have not come back; verifiers are sealed.
//! A row is found by the hash of its state and taken once.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, InstanceId};

use crate::record::record;
use crate::statement::statements;

record! {
    pub struct OauthStart in "oauth_start" {
        pub state_sha256: [u8; 32],
        pub account_id: AccountId,
        pub environment_id: EnvironmentId,
        pub instance_id: InstanceId,
        pub redirect_uri: String,
        /// Sealed.
        pub verifier: Vec<u8>,
        pub expires_at: Timestamp,
    }
}

statements! {
    fn insert(..start: &OauthStart);

    /// Takes the row out: nobody else gets it. None when there is none that has not expired.
    fn take(state_sha256: &[u8; 32], now: Timestamp) -> Option<OauthStart> =
        "DELETE FROM oauth_start WHERE state_sha256 = $1 AND expires_at > $2 RETURNING {COLUMNS}";

    fn delete_expired(now: Timestamp) = "DELETE FROM oauth_start WHERE expires_at <= $1";

    /// Ends all that was started for an instance.
    fn delete_of(instance: &InstanceId) = "DELETE FROM oauth_start WHERE instance_id = $1";
}
