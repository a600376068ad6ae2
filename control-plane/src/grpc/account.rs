//! The methods of the account.

use kanat_auth::Permission;
use kanat_proto::v1 as wire;
use kanat_proto::v1::account_service_server::AccountService;
use tonic::{Request, Response, Status};

use super::{Api, caller, status};
use crate::app::account;

#[tonic::async_trait]
impl AccountService for Api {
    async fn get_me(
        &self,
        request: Request<wire::GetMeRequest>,
    ) -> Result<Response<wire::Me>, Status> {
        let caller = caller(&request)?;
        let account::Place {
            account,
            environment,
        } = account::place(&self.app, &caller)
            .await
            .map_err(status::of)?;
        let allowed = Permission::ALL
            .into_iter()
            .filter(|permission| caller.role.allows(*permission));
        Ok(Response::new(wire::Me {
            r#type: "api_key".to_owned(),
            id: caller.key_id.to_string(),
            name: caller.name.clone(),
            email: None,
            role: caller.role.as_str().to_owned(),
            account: Some(wire::Reference {
                id: account.id.into_string(),
                name: account.name,
            }),
            environment: Some(wire::Reference {
                id: environment.id.into_string(),
                name: environment.name,
            }),
            permissions: allowed
                .map(|permission| permission.as_str().to_owned())
                .collect(),
        }))
    }
}
