//! The permission that each method needs, and whether its request and answer are streams, read from
//! the descriptors.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use kanat_auth::Permission;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, MessageDescriptor,
    MethodDescriptor, Value,
};

/// Package of the methods that say what they need.
const PACKAGE: &str = "kanat.v1";

/// The service that anybody may ask.
const HEALTH: &str = "grpc.health.v1.Health";
/// Its method whose answers last as long as their callers like.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Bytes of a request for health: the name of a service.
const HEALTH_BYTES: usize = 1 << 10;
/// Bytes of another request that needs no credential: what fits into a URL.
const PUBLIC_BYTES: usize = 64 << 10;

/// Services that tell what services there are. Their answers last as long as their callers like.
const REFLECTION: &[&str] = &[
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// Services of gRPC itself, for every role.
const OF_GRPC: &[&str] = &[HEALTH, REFLECTION[0], REFLECTION[1]];

/// The rules of the methods.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Requirements by method.
    needs: HashMap<String, Need>,
    /// Methods that work with messages, and change no configuration.
    running: HashSet<String>,
    client_streaming: HashSet<String>,
    server_streaming: HashSet<String>,
    /// Answers with a value that shows in the first of them alone, by method.
    showing: HashMap<String, MessageDescriptor>,
}

/// Requirement of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A credential whose role has the permission.
    Role(Permission),
    /// A verified token of a person, who may be no member.
    Identity,
    /// No credential.
    Nothing,
}

impl Rules {
    /// Reads what the methods of `descriptors` need.
    ///
    /// # Errors
    ///
    /// A method without a permission.
    pub fn read(descriptors: &DescriptorPool) -> Result<Self, String> {
        let option = descriptors.get_extension_by_name("kanat.v1.permission");
        let option = option.ok_or("there is no option kanat.v1.permission")?;
        let runs = descriptors.get_extension_by_name("kanat.v1.runs");
        let runs = runs.ok_or("there is no option kanat.v1.runs")?;
        let methods = descriptors
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>());
        let path = |method: &MethodDescriptor| {
            format!("/{}/{}", method.parent_service().full_name(), method.name())
        };
        let methods: Vec<_> = methods.collect();
        let own = methods
            .iter()
            .filter(|method| method.parent_file().package_name() == PACKAGE);
        let needs = own.map(|method| {
            let need = need(&option, method);
            let need = need.ok_or_else(|| format!("{} has no permission", path(method)))?;
            Ok((path(method), need))
        });
        let needs = needs.collect::<Result<_, String>>()?;
        let running = methods.iter().filter(|method| {
            let options = method.options();
            options.get_extension(&runs).as_bool() == Some(true)
        });
        let client_streaming = methods.iter().filter(|method| method.is_client_streaming());
        let server_streaming = methods.iter().filter(|method| method.is_server_streaming());
        let showing = methods
            .iter()
            .filter(|method| shown_once(&method.output()).next().is_some());
        Ok(Self {
            showing: showing
                .map(|method| (path(method), method.output()))
                .collect(),
            needs,
            running: running.map(path).collect(),
            client_streaming: client_streaming.map(path).collect(),
            server_streaming: server_streaming.map(path).collect(),
        })
    }

    /// Returns whether the request of the method at `path` is a stream of messages, which is read
    /// while the method runs.
    pub fn is_client_streaming(&self, path: &str) -> bool {
        self.client_streaming.contains(path) || REFLECTION.contains(&split(path).0)
    }

    /// Returns an answer of the method at `path`, one gRPC frame, as it is kept and given again:
    /// without what shows in the first answer alone. `None` where it cannot be read.
    pub fn without_shown_once(&self, path: &str, answer: &Bytes) -> Option<Bytes> {
        const HEADER_BYTES: usize = 5;
        let Some(output) = self.showing.get(path) else {
            return Some(answer.clone());
        };
        let (header, message) = answer.split_at_checked(HEADER_BYTES)?;
        if header[0] != 0 {
            return None;
        }
        let mut message = DynamicMessage::decode(output.clone(), message).ok()?;
        for (value, shown) in shown_once(output) {
            if message.has_field(&value) {
                message.clear_field(&value);
                message.set_field(&shown, Value::Bool(false));
            }
        }
        let encoded = message.encode_to_vec();
        let length = u32::try_from(encoded.len()).ok()?.to_be_bytes();
        Some([&[0][..], &length, &encoded].concat().into())
    }

    /// Returns whether the answer of the method at `path` is a stream of messages, which lasts as
    /// long as its caller likes.
    pub fn is_server_streaming(&self, path: &str) -> bool {
        path == WATCH || self.server_streaming.contains(path) || REFLECTION.contains(&split(path).0)
    }

    /// Returns the name of the method at `path` for metrics; one that does not exist has no name of
    /// its own.
    pub fn name<'p>(&self, path: &'p str) -> &'p str {
        if self.needs.contains_key(path) {
            path.trim_start_matches('/')
        } else {
            "other"
        }
    }

    /// Returns how many bytes a request of the method at `path`, such as
    /// `/kanat.v1.FlowService/GetFlow`, may have where it needs no credential.
    pub fn public_request_limit(&self, path: &str) -> Option<usize> {
        if split(path).0 == HEALTH {
            return Some(HEALTH_BYTES);
        }
        (self.needs.get(path) == Some(&Need::Nothing)).then_some(PUBLIC_BYTES)
    }

    /// Returns whether the method at `path` is called as a person, who may be no member.
    pub fn needs_identity(&self, path: &str) -> bool {
        self.needs.get(path) == Some(&Need::Identity)
    }

    /// Returns the permission that a caller of the method at `path` needs. An unknown method
    /// needs [`Permission::Write`], so that viewers cannot probe for methods.
    pub fn permission(&self, path: &str) -> Permission {
        match self.needs.get(path) {
            Some(Need::Role(permission)) => *permission,
            None if !OF_GRPC.contains(&split(path).0) => Permission::Write,
            Some(Need::Identity | Need::Nothing) | None => Permission::Read,
        }
    }

    /// Returns the permission that a caller of the method at `path` needs in a protected
    /// environment.
    pub fn permission_where_protected(&self, path: &str) -> Permission {
        match self.permission(path) {
            Permission::Write if !self.running.contains(path) => Permission::Admin,
            other => other,
        }
    }
}

fn split(path: &str) -> (&str, &str) {
    path.trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path, ""))
}

/// Returns the fields that show in the first answer alone, each with the one that says whether it
/// shows.
fn shown_once(
    message: &MessageDescriptor,
) -> impl Iterator<Item = (FieldDescriptor, FieldDescriptor)> {
    let shown = message.fields().filter_map(|shown| {
        let value = shown.name().strip_suffix("_shown")?;
        Some((shown.parent_message().get_field_by_name(value)?, shown))
    });
    shown.collect::<Vec<_>>().into_iter()
}

/// Returns what the option of a method says; none without one.
fn need(option: &ExtensionDescriptor, method: &MethodDescriptor) -> Option<Need> {
    let kind = option.kind();
    let options = method.options();
    let number = options.get_extension(option).as_enum_number()?;
    let value = kind.as_enum()?.get_value(number)?;
    match value.name() {
        "PERMISSION_READ" => Some(Need::Role(Permission::Read)),
        "PERMISSION_WRITE" => Some(Need::Role(Permission::Write)),
        "PERMISSION_ADMIN" => Some(Need::Role(Permission::Admin)),
        "PERMISSION_BILLING" => Some(Need::Role(Permission::Billing)),
        "PERMISSION_IDENTITY" => Some(Need::Identity),
        "PERMISSION_PUBLIC" => Some(Need::Nothing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_say_what_their_callers_need() {
        let rules = Rules::read(&kanat_proto::DESCRIPTORS).unwrap();
        for (path, permission) in [
            ("/kanat.v1.FlowService/GetFlow", Permission::Read),
            ("/kanat.v1.FlowService/ListFlows", Permission::Read),
            ("/kanat.v1.FlowService/TestFlow", Permission::Read),
            ("/kanat.v1.FlowService/ValidateFlow", Permission::Read),
            ("/kanat.v1.MessageService/StreamMessages", Permission::Read),
            ("/kanat.v1.FlowService/CreateFlow", Permission::Write),
            ("/kanat.v1.FlowService/RunFlow", Permission::Write),
            ("/kanat.v1.FlowService/Getaway", Permission::Write),
            (
                "/kanat.v1.ConnectorService/TestConnectorInstance",
                Permission::Write,
            ),
            (
                "/kanat.v1.ConnectorService/CheckEndpointSchemas",
                Permission::Write,
            ),
            ("/kanat.v1.ApiKeyService/ListApiKeys", Permission::Admin),
            ("/kanat.v1.SecretService/RotateSecrets", Permission::Billing),
            (
                "/kanat.v1.EnvironmentService/ListEnvironments",
                Permission::Read,
            ),
            (
                "/kanat.v1.EnvironmentService/UpdateEnvironment",
                Permission::Admin,
            ),
            (
                "/kanat.v1.ConsumerKeyService/RevokeConsumerKey",
                Permission::Write,
            ),
            ("", Permission::Write),
        ] {
            assert_eq!(rules.permission(path), permission, "{path}");
            assert_eq!(rules.public_request_limit(path), None, "{path}");
        }
    }

    #[test]
    fn running_is_all_that_editors_may_do_in_a_protected_environment() {
        let rules = Rules::read(&kanat_proto::DESCRIPTORS).unwrap();
        for (path, permission) in [
            ("/kanat.v1.FlowService/GetFlow", Permission::Read),
            ("/kanat.v1.FlowService/TestFlow", Permission::Read),
            ("/kanat.v1.FlowService/RunFlow", Permission::Write),
            ("/kanat.v1.MessageService/ReplayMessages", Permission::Write),
            (
                "/kanat.v1.ScheduleService/TriggerSchedule",
                Permission::Write,
            ),
            ("/kanat.v1.FlowService/DeployFlow", Permission::Admin),
            (
                "/kanat.v1.ScheduleService/UpdateSchedule",
                Permission::Admin,
            ),
            (
                "/kanat.v1.ConsumerKeyService/RevokeConsumerKey",
                Permission::Admin,
            ),
            ("/kanat.v1.SecretService/RotateSecrets", Permission::Billing),
            ("/kanat.v1.FlowService/Getaway", Permission::Admin),
        ] {
            assert_eq!(rules.permission_where_protected(path), permission, "{path}");
        }
    }

    #[test]
    fn health_is_public_and_reflection_for_all_who_have_a_key() {
        let rules = Rules::default();
        for method in ["Check", "Watch"] {
            let path = format!("/grpc.health.v1.Health/{method}");
            assert_eq!(rules.public_request_limit(&path), Some(1024));
            assert_eq!(rules.permission(&path), Permission::Read);
            assert_eq!(rules.is_server_streaming(&path), method == "Watch");
            assert!(!rules.is_client_streaming(&path));
        }
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            assert_eq!(rules.public_request_limit(&path), None);
            assert_eq!(rules.permission(&path), Permission::Read);
            assert!(rules.is_server_streaming(&path) && rules.is_client_streaming(&path));
        }
    }
}
