//! The methods of secrets.

use kanat_proto::v1 as wire;

use crate::app::secret;
use crate::carry::carry;

service! {
    secret_service_server::SecretService;

    rotate_secrets(call, _request: RotateSecretsRequest) -> RotatedSecrets {
        let rotated = secret::rotate(call).await?;
        Ok(carry!(
            wire::RotatedSecrets, rotated { key_id, new_key, resealed, unreadable, former_keys }
            optional { former_keys_may_go_at }
        ))
    }
}
