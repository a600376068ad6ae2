//! The methods of secrets.

use kanat_proto::v1 as wire;
use kanat_proto::v1::secret_service_server::SecretService;
use tonic::{Request, Response, Status};

use super::{Api, caller, respond};
use crate::app::secret;

#[tonic::async_trait]
impl SecretService for Api {
    async fn rotate_secrets(
        &self,
        request: Request<wire::RotateSecretsRequest>,
    ) -> Result<Response<wire::RotatedSecrets>, Status> {
        let caller = caller(&request)?;
        let rotated = secret::rotate(&self.app, &caller).await;
        respond(rotated.map(|rotated| wire::RotatedSecrets {
            key_id: rotated.key_id,
            new_key: rotated.new_key,
            resealed: rotated.resealed,
            unreadable: rotated.unreadable,
            former_keys: rotated.former_keys,
            former_keys_may_go_at: rotated.former_keys_may_go_at.map(|at| at.to_string()),
        }))
    }
}
