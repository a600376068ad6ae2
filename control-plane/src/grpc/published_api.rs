//! The methods of published APIs.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::published_api_service_server::PublishedApiService;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, respond_changed, status};
use crate::app::published_api::{self, document, version};

#[tonic::async_trait]
impl PublishedApiService for Api {
    async fn create_published_api(
        &self,
        request: Request<wire::CreatePublishedApiRequest>,
    ) -> Result<Response<wire::PublishedApi>, Status> {
        let caller = caller(&request)?;
        let new = convert::new(request.into_inner());
        let made = published_api::create(&self.app, &caller, new).await;
        respond_changed(made, convert::api)
    }

    async fn list_published_apis(
        &self,
        request: Request<wire::ListPublishedApisRequest>,
    ) -> Result<Response<wire::ListPublishedApisResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListPublishedApisRequest {
            search,
            limit,
            offset,
        } = request.into_inner();
        let search = search.unwrap_or_default();
        let found =
            published_api::list(&self.app, &caller, &search, page::asked(limit, offset)?).await;
        let (data, pagination) = page::convert(found, convert::api)?;
        Ok(Response::new(wire::ListPublishedApisResponse {
            data,
            pagination,
        }))
    }

    async fn get_published_api(
        &self,
        request: Request<wire::GetPublishedApiRequest>,
    ) -> Result<Response<wire::PublishedApi>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = published_api::get(&self.app, &caller, &id).await;
        respond(found.map(convert::api))
    }

    async fn update_published_api(
        &self,
        request: Request<wire::UpdatePublishedApiRequest>,
    ) -> Result<Response<wire::PublishedApi>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, update) = convert::update(request.into_inner()).map_err(status::of)?;
        let updated = published_api::update(&self.app, &caller, &id, update, &if_match).await;
        respond_changed(updated, convert::api)
    }

    async fn delete_published_api(
        &self,
        request: Request<wire::DeletePublishedApiRequest>,
    ) -> Result<Response<wire::DeletePublishedApiResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let deleted = published_api::delete(&self.app, &caller, &id, &if_match).await;
        respond_changed(deleted, |()| wire::DeletePublishedApiResponse {})
    }

    async fn get_published_api_document(
        &self,
        request: Request<wire::GetPublishedApiDocumentRequest>,
    ) -> Result<Response<wire::GetPublishedApiDocumentResponse>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = published_api::get(&self.app, &caller, &id).await;
        respond(found.map(|found| wire::GetPublishedApiDocumentResponse {
            document: Some(wire::Json {
                text: document::write(&found),
            }),
        }))
    }

    async fn list_published_api_versions(
        &self,
        request: Request<wire::ListPublishedApiVersionsRequest>,
    ) -> Result<Response<wire::ListPublishedApiVersionsResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListPublishedApiVersionsRequest { id, limit, offset } = request.into_inner();
        let seen = version::list(&self.app, &caller, &id.into())
            .await
            .map_err(status::of)?;
        let found = page::cut(seen.versions.clone(), page::asked(limit, offset)?);
        let (data, pagination) =
            page::convert(Ok(found), |version| convert::version(&seen, version))?;
        Ok(Response::new(wire::ListPublishedApiVersionsResponse {
            data,
            pagination,
        }))
    }

    async fn create_published_api_version(
        &self,
        request: Request<wire::CreatePublishedApiVersionRequest>,
    ) -> Result<Response<wire::PublishedApiVersion>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, label, content) = convert::new_version(request.into_inner());
        let made = version::create(&self.app, &caller, &id, &label, content, &if_match).await;
        respond_changed(made, convert::seen_version)
    }

    async fn deprecate_published_api_version(
        &self,
        request: Request<wire::DeprecatePublishedApiVersionRequest>,
    ) -> Result<Response<wire::PublishedApiVersion>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::DeprecatePublishedApiVersionRequest {
            id,
            version,
            sunset_date,
        } = request.into_inner();
        let done = version::deprecate(
            &self.app,
            &caller,
            &id.into(),
            &version,
            &sunset_date,
            &if_match,
        )
        .await;
        respond_changed(done, convert::seen_version)
    }

    async fn retire_published_api_version(
        &self,
        request: Request<wire::RetirePublishedApiVersionRequest>,
    ) -> Result<Response<wire::PublishedApiVersion>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, label, when) = convert::retire(request.into_inner());
        let done = version::retire(&self.app, &caller, &id, &label, when, &if_match).await;
        respond_changed(done, convert::seen_version)
    }
}
