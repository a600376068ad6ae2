//! The methods of published APIs.

mod convert;

use kanat_proto::v1 as wire;

use super::page;
use crate::app::published_api::{self, document, version};

service! {
    published_api_service_server::PublishedApiService;

    create_published_api(call, request: CreatePublishedApiRequest) -> PublishedApi {
        let made = published_api::create(&call, convert::new(request)).await?;
        Ok(made.map(convert::api))
    }

    list_published_apis(call, request: ListPublishedApisRequest) -> ListPublishedApisResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = published_api::list(&call, &request.search.unwrap_or_default(), page).await?;
        Ok(page::answer(found, convert::api))
    }

    get_published_api(call, request: GetPublishedApiRequest) -> PublishedApi {
        published_api::get(&call, &request.id.into()).await.map(convert::api)
    }

    update_published_api(call, request: UpdatePublishedApiRequest) -> PublishedApi {
        let (id, update) = convert::update(request)?;
        Ok(published_api::update(&call, &id, update).await?.map(convert::api))
    }

    delete_published_api(call, request: DeletePublishedApiRequest) -> DeletePublishedApiResponse {
        let deleted = published_api::delete(&call, &request.id.into()).await?;
        Ok(deleted.map(|()| wire::DeletePublishedApiResponse {}))
    }

    get_published_api_document(
        call,
        request: GetPublishedApiDocumentRequest
    ) -> GetPublishedApiDocumentResponse {
        let text = document::write(&published_api::get(&call, &request.id.into()).await?);
        Ok(wire::GetPublishedApiDocumentResponse { document: Some(wire::Json { text }) })
    }

    list_published_api_versions(
        call,
        request: ListPublishedApiVersionsRequest
    ) -> ListPublishedApiVersionsResponse {
        let seen = published_api::get(&call, &request.id.into()).await?;
        let page = page::asked(request.limit, request.offset)?;
        let found = page.cut(seen.versions.clone());
        Ok(page::answer(found, |version| convert::version(&seen, version)))
    }

    create_published_api_version(
        call,
        request: CreatePublishedApiVersionRequest
    ) -> PublishedApiVersion {
        let (id, label, content) = convert::new_version(request);
        let made = version::create(&call, &id, &label, content).await?;
        Ok(made.map(convert::seen_version))
    }

    deprecate_published_api_version(
        call,
        request: DeprecatePublishedApiVersionRequest
    ) -> PublishedApiVersion {
        let wire::DeprecatePublishedApiVersionRequest { id, version, sunset_date } = request;
        let done = version::deprecate(&call, &id.into(), &version, &sunset_date).await?;
        Ok(done.map(convert::seen_version))
    }

    retire_published_api_version(
        call,
        request: RetirePublishedApiVersionRequest
    ) -> PublishedApiVersion {
        let (id, label, when) = convert::retire(request);
        let done = version::retire(&call, &id, &label, when).await?;
        Ok(done.map(convert::seen_version))
    }
}
