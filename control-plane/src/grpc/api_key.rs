//! The methods of API keys.

mod convert;

use kanat_proto::v1 as wire;

use super::page;
use crate::app::api_key;

service! {
    api_key_service_server::ApiKeyService;

    create_api_key(call, request: CreateApiKeyRequest) -> ApiKey {
        let (key, text) = api_key::create(&call, convert::new(request)).await?;
        Ok(wire::ApiKey {
            key_shown: text.is_none().then_some(false),
            key: text.map(|text| text.expose().clone()),
            ..convert::key(key)
        })
    }

    list_api_keys(call, request: ListApiKeysRequest) -> ListApiKeysResponse {
        let page = page::asked(request.limit, request.offset)?;
        Ok(page::answer(api_key::list(&call, page).await?, convert::key))
    }

    delete_api_key(call, request: DeleteApiKeyRequest) -> DeleteApiKeyResponse {
        api_key::delete(&call, &request.id.into()).await?;
        Ok(wire::DeleteApiKeyResponse {})
    }
}
