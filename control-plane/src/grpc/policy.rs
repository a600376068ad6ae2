//! The methods of governance policies.

mod convert;

use kanat_model::id::PolicyId;
use kanat_proto::v1 as wire;

use super::page;
use crate::app::policy;

service! {
    policy_service_server::PolicyService;

    create_policy(call, request: CreatePolicyRequest) -> Policy {
        policy::create(&call, convert::new(request)).await.map(convert::policy)
    }

    list_policies(call, request: ListPoliciesRequest) -> ListPoliciesResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = policy::list(&call, &request.search.unwrap_or_default(), page).await?;
        Ok(page::answer(found, convert::policy))
    }

    get_policy(call, request: GetPolicyRequest) -> Policy {
        call.get(&PolicyId::from(request.id)).await.map(convert::policy)
    }

    update_policy(call, request: UpdatePolicyRequest) -> Policy {
        let (id, fields) = convert::update(request)?;
        policy::update(&call, &id, fields).await.map(convert::policy)
    }

    delete_policy(call, request: DeletePolicyRequest) -> DeletePolicyResponse {
        policy::delete(&call, &request.id.into()).await?;
        Ok(wire::DeletePolicyResponse {})
    }
}
