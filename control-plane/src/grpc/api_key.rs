//! The methods of API keys.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::api_key_service_server::ApiKeyService;
use tonic::{Request, Response, Status};

use super::{Api, caller, page, respond};
use crate::app::api_key;

#[tonic::async_trait]
impl ApiKeyService for Api {
    async fn create_api_key(
        &self,
        request: Request<wire::CreateApiKeyRequest>,
    ) -> Result<Response<wire::ApiKey>, Status> {
        let caller = caller(&request)?;
        let new = convert::new(request.into_inner());
        let made = api_key::create(&self.app, &caller, new).await;
        respond(made.map(|(key, text)| wire::ApiKey {
            key_shown: text.is_none().then_some(false),
            key: text.map(|text| text.expose().clone()),
            ..convert::key(key)
        }))
    }

    async fn list_api_keys(
        &self,
        request: Request<wire::ListApiKeysRequest>,
    ) -> Result<Response<wire::ListApiKeysResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListApiKeysRequest { limit, offset } = request.into_inner();
        let found = api_key::list(&self.app, &caller, page::asked(limit, offset)?).await;
        let (data, pagination) = page::convert(found, convert::key)?;
        Ok(Response::new(wire::ListApiKeysResponse {
            data,
            pagination,
        }))
    }

    async fn delete_api_key(
        &self,
        request: Request<wire::DeleteApiKeyRequest>,
    ) -> Result<Response<wire::DeleteApiKeyResponse>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let deleted = api_key::delete(&self.app, &caller, &id).await;
        respond(deleted.map(|()| wire::DeleteApiKeyResponse {}))
    }
}
