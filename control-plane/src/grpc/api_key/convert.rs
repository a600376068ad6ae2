//! API keys between the wire and the store.

use kanat_proto::v1 as wire;
use kanat_store::api_key::ApiKey;

use crate::app::api_key::NewApiKey;
use crate::carry::carry;

pub fn new(request: wire::CreateApiKeyRequest) -> NewApiKey {
    NewApiKey {
        name: request.name,
        role: request.role,
        environment: request.environment_id,
        expires_at: request.expires_at,
    }
}

/// A key without its text.
pub fn key(key: ApiKey) -> wire::ApiKey {
    let maker = key.created_by_type.zip(key.created_by_id);
    let created_by = maker.map(|(kind, id)| wire::Creator {
        r#type: kind.as_str().to_owned(),
        id: Some(id),
        name: key.created_by_name.unwrap_or_default(),
    });
    carry!(
        wire::ApiKey, key { name, role, prefix }
        text { id, created_at }
        optional { environment_id, expires_at, last_used_at }
        with {
            key_shown: None,
            key: None,
            created_by,
        }
    )
}
