//! Environments between the wire and the use-cases.

use kanat_proto::v1 as wire;
use kanat_store::environment::Environment;

use crate::app::environment::Update;
use crate::app::etag;

pub fn environment(environment: Environment) -> wire::Environment {
    wire::Environment {
        id: environment.id.into_string(),
        name: environment.name,
        created_at: environment.created_at.to_string(),
        is_default: environment.is_default,
        base_url: environment.base_url,
        updated_at: environment.updated_at.to_string(),
        etag: etag(environment.revision),
    }
}

/// The id or name of the environment, and what changes.
pub fn update(request: wire::UpdateEnvironmentRequest) -> (String, Update) {
    let wire::UpdateEnvironmentRequest { id, name, base_url } = request;
    (id, Update { name, base_url })
}
