//! The methods of environments.

mod convert;

use kanat_model::page::Page;
use kanat_proto::v1 as wire;
use kanat_proto::v1::environment_service_server::EnvironmentService;
use tonic::{Request, Response, Status};

use super::{Api, caller, page, status};
use crate::app::environment;

#[tonic::async_trait]
impl EnvironmentService for Api {
    async fn list_environments(
        &self,
        request: Request<wire::ListEnvironmentsRequest>,
    ) -> Result<Response<wire::ListEnvironmentsResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListEnvironmentsRequest { limit, offset } = request.into_inner();
        let found = environment::list(&self.app, &caller, Page::new(limit, offset)).await.map_err(status::of)?;
        let (data, pagination) = page::convert(found, convert::environment);
        Ok(Response::new(wire::ListEnvironmentsResponse { data, pagination }))
    }
}
