//! Environments from the store to the wire.

use kanat_proto::v1 as wire;
use kanat_store::environment::Environment;

pub fn environment(environment: Environment) -> wire::Environment {
    wire::Environment {
        id: environment.id.into_string(),
        name: environment.name,
        created_at: environment.created_at.to_string(),
        is_default: environment.is_default,
    }
}
