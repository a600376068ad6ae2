//! The methods of secrets.

use kanat_proto::v1 as wire;
use kanat_proto::v1::secret_service_server::SecretService;
use tonic::{Request, Response, Status};

use super::{Api, caller, status};
use crate::app::secret::{self, Rotated};

#[tonic::async_trait]
impl SecretService for Api {
    async fn rotate_secrets(
        &self,
        request: Request<wire::RotateSecretsRequest>,
    ) -> Result<Response<wire::RotatedSecrets>, Status> {
        let caller = caller(&request)?;
        let rotated = secret::rotate(&self.app, &caller)
            .await
            .map_err(status::of)?;
        let Rotated {
            key_id,
            new_key,
            resealed,
            unreadable,
            former_keys,
            former_keys_may_go_at,
        } = rotated;
        let former_keys_may_go_at = former_keys_may_go_at.map(|at| at.to_string());
        Ok(Response::new(wire::RotatedSecrets {
            key_id,
            new_key,
            resealed,
            unreadable,
            former_keys,
            former_keys_may_go_at,
        }))
    }
}
