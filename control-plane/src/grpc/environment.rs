//! The methods of environments.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::environment_service_server::EnvironmentService;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, respond_changed, status};
use crate::app::environment;

#[tonic::async_trait]
impl EnvironmentService for Api {
    async fn create_environment(
        &self,
        request: Request<wire::CreateEnvironmentRequest>,
    ) -> Result<Response<wire::Environment>, Status> {
        let caller = caller(&request)?;
        let wire::CreateEnvironmentRequest { name, base_url } = request.into_inner();
        let made = environment::create(&self.app, &caller, &name, base_url.as_deref()).await;
        respond_changed(made, convert::environment)
    }

    async fn list_environments(
        &self,
        request: Request<wire::ListEnvironmentsRequest>,
    ) -> Result<Response<wire::ListEnvironmentsResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListEnvironmentsRequest { limit, offset } = request.into_inner();
        let found = environment::list(&self.app, &caller, page::asked(limit, offset)?).await;
        let (data, pagination) = page::convert(found, convert::environment)?;
        Ok(Response::new(wire::ListEnvironmentsResponse {
            data,
            pagination,
        }))
    }

    async fn get_environment(
        &self,
        request: Request<wire::GetEnvironmentRequest>,
    ) -> Result<Response<wire::Environment>, Status> {
        let caller = caller(&request)?;
        let found = environment::get(&self.app, &caller, &request.into_inner().id).await;
        respond(found.map(convert::environment))
    }

    async fn update_environment(
        &self,
        request: Request<wire::UpdateEnvironmentRequest>,
    ) -> Result<Response<wire::Environment>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, update) = convert::update(request.into_inner()).map_err(status::of)?;
        let updated = environment::update(&self.app, &caller, &id, update, &if_match).await;
        respond_changed(updated, convert::environment)
    }
}
