//! The methods of the account.

use kanat_auth::Permission;
use kanat_proto::v1 as wire;

use crate::app::account;

service! {
    account_service_server::AccountService;

    get_me(call, _request: GetMeRequest) -> Me {
        let account::Place { account, environment } = account::place(&call).await?;
        let caller = call.caller;
        let allowed = Permission::ALL
            .into_iter()
            .filter(|permission| caller.role.allows(*permission));
        Ok(wire::Me {
            r#type: "api_key".to_owned(),
            id: caller.key_id.into_string(),
            name: caller.name,
            email: None,
            role: caller.role.to_string(),
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
