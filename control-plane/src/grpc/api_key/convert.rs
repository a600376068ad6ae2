//! API keys between the wire and the store.

use kanat_model::id::EnvironmentId;
use kanat_proto::v1 as wire;
use kanat_store::api_key::ApiKey;

use crate::app::api_key::NewApiKey;

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
    wire::ApiKey {
        key_shown: None,
        id: key.id.into_string(),
        name: key.name,
        role: key.role,
        environment_id: key.environment_id.map(EnvironmentId::into_string),
        expires_at: key.expires_at.map(|at| at.to_string()),
        created_at: key.created_at.to_string(),
        last_used_at: key.last_used_at.map(|at| at.to_string()),
        prefix: key.prefix,
        key: None,
    }
}
