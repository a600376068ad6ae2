//! The methods of adapters.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::adapter_service_server::AdapterService;
use kanat_store::adapter::Filter;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, respond_changed, status};
use crate::app::adapter::{self, template};

#[tonic::async_trait]
impl AdapterService for Api {
    async fn create_adapter(
        &self,
        request: Request<wire::CreateAdapterRequest>,
    ) -> Result<Response<wire::Adapter>, Status> {
        let caller = caller(&request)?;
        let new = convert::new(request.into_inner());
        let made = adapter::create(&self.app, &caller, new).await;
        respond_changed(made, convert::adapter)
    }

    async fn list_adapters(
        &self,
        request: Request<wire::ListAdaptersRequest>,
    ) -> Result<Response<wire::ListAdaptersResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListAdaptersRequest {
            search,
            r#type,
            limit,
            offset,
        } = request.into_inner();
        let filter = Filter {
            search: search.unwrap_or_default(),
            kind: r#type.unwrap_or_default(),
        };
        let found = adapter::list(&self.app, &caller, &filter, page::asked(limit, offset)?).await;
        let (data, pagination) = page::convert(found, convert::adapter)?;
        Ok(Response::new(wire::ListAdaptersResponse {
            data,
            pagination,
        }))
    }

    async fn list_adapter_templates(
        &self,
        request: Request<wire::ListAdapterTemplatesRequest>,
    ) -> Result<Response<wire::ListAdapterTemplatesResponse>, Status> {
        caller(&request)?;
        let wire::ListAdapterTemplatesRequest { limit, offset } = request.into_inner();
        let found = page::cut(template::ALL.to_vec(), page::asked(limit, offset)?);
        let (data, pagination) = page::convert(Ok(found), convert::template)?;
        Ok(Response::new(wire::ListAdapterTemplatesResponse {
            data,
            pagination,
        }))
    }

    async fn get_adapter(
        &self,
        request: Request<wire::GetAdapterRequest>,
    ) -> Result<Response<wire::Adapter>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = adapter::get(&self.app, &caller, &id).await;
        respond(found.map(convert::adapter))
    }

    async fn update_adapter(
        &self,
        request: Request<wire::UpdateAdapterRequest>,
    ) -> Result<Response<wire::Adapter>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, update) = convert::update(request.into_inner()).map_err(status::of)?;
        let updated = adapter::update(&self.app, &caller, &id, update, &if_match).await;
        respond_changed(updated, convert::adapter)
    }

    async fn delete_adapter(
        &self,
        request: Request<wire::DeleteAdapterRequest>,
    ) -> Result<Response<wire::DeleteAdapterResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let deleted = adapter::delete(&self.app, &caller, &id, &if_match).await;
        respond_changed(deleted, |()| wire::DeleteAdapterResponse {})
    }

    async fn test_adapter(
        &self,
        request: Request<wire::TestAdapterRequest>,
    ) -> Result<Response<wire::TestAdapterResponse>, Status> {
        let caller = caller(&request)?;
        let (id, input) = convert::test(request.into_inner()).map_err(status::of)?;
        let tested = adapter::test(&self.app, &caller, &id, &input).await;
        respond(tested.map(convert::tested))
    }
}
