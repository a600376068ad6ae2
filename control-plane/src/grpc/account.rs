//! The methods of the account.

use kanat_auth::Permission;
use kanat_proto::v1 as wire;

use crate::app::account;

service! {
    account_service_server::AccountService impl {
        async fn list_identity_providers(
            &self,
            _: tonic::Request<wire::ListIdentityProvidersRequest>,
        ) -> Result<tonic::Response<wire::ListIdentityProvidersResponse>, tonic::Status> {
            let providers = self.app.identities.all().iter().filter_map(|issuer| {
                Some(wire::IdentityProvider {
                    issuer: issuer.issuer.clone(),
                    client_id: issuer.client_id.clone()?,
                    scopes: issuer.scopes.clone(),
                })
            });
            let providers = providers.collect();
            Ok(tonic::Response::new(wire::ListIdentityProvidersResponse { providers }))
        }
    };

    get_me(call, _request: GetMeRequest) -> Me {
        let account::Place { account, environment } = account::place(&call).await?;
        let caller = call.caller;
        let principal = caller.principal();
        let allowed = Permission::ALL
            .into_iter()
            .filter(|permission| caller.role.allows(*permission));
        Ok(wire::Me {
            r#type: principal.kind.as_str().to_owned(),
            id: principal.id,
            name: principal.name,
            email: principal.email,
            role: principal.role,
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
        })
    }
}
