//! The methods of governance policies.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::policy_service_server::PolicyService;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, status};
use crate::app::policy;

#[tonic::async_trait]
impl PolicyService for Api {
    async fn create_policy(
        &self,
        request: Request<wire::CreatePolicyRequest>,
    ) -> Result<Response<wire::Policy>, Status> {
        let caller = caller(&request)?;
        let fields = convert::new(request.into_inner());
        let made = policy::create(&self.app, &caller, fields).await;
        respond(made.map(convert::policy))
    }

    async fn list_policies(
        &self,
        request: Request<wire::ListPoliciesRequest>,
    ) -> Result<Response<wire::ListPoliciesResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListPoliciesRequest {
            search,
            limit,
            offset,
        } = request.into_inner();
        let page = page::asked(limit, offset)?;
        let found = policy::list(&self.app, &caller, &search.unwrap_or_default(), page).await;
        let (data, pagination) = page::convert(found, convert::policy)?;
        Ok(Response::new(wire::ListPoliciesResponse {
            data,
            pagination,
        }))
    }

    async fn get_policy(
        &self,
        request: Request<wire::GetPolicyRequest>,
    ) -> Result<Response<wire::Policy>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = policy::get(&self.app, &caller, &id).await;
        respond(found.map(convert::policy))
    }

    async fn update_policy(
        &self,
        request: Request<wire::UpdatePolicyRequest>,
    ) -> Result<Response<wire::Policy>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, fields) = convert::update(request.into_inner()).map_err(status::of)?;
        let updated = policy::update(&self.app, &caller, &id, fields, &if_match).await;
        respond(updated.map(convert::policy))
    }

    async fn delete_policy(
        &self,
        request: Request<wire::DeletePolicyRequest>,
    ) -> Result<Response<wire::DeletePolicyResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let deleted = policy::delete(&self.app, &caller, &id, &if_match).await;
        respond(deleted.map(|()| wire::DeletePolicyResponse {}))
    }
}
