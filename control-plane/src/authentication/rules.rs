//! Which method needs which permission, told from its name and its annotations.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use kanat_auth::Permission;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor, Value,
};

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

/// Services whose every method, reading too, is about who may do what.
const ADMIN_SERVICES: &[&str] = &["kanat.v1.ApiKeyService"];

/// Services that are about what no key is bound to: the account, and what the service itself holds.
const OWNER_SERVICES: &[&str] = &["kanat.v1.SecretService"];

/// Methods of other services that are about where everything else lives.
const ADMIN_METHODS: &[&str] = &[
    "/kanat.v1.EnvironmentService/CreateEnvironment",
    "/kanat.v1.EnvironmentService/UpdateEnvironment",
];

/// Names of methods that change nothing begin so.
const READING: &[&str] = &[
    "Get", "List", "Stream", "Diff", "Validate", "Test", "Export", "Preview", "Search",
];

/// A test of a connection calls out with the instance's credentials, which is more than reading.
const WRITING: &[&str] = &["/kanat.v1.ConnectorService/TestConnectorInstance"];

/// The rules of one descriptor set.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    methods: HashSet<String>,
    public_methods: HashSet<String>,
    streams: HashSet<String>,
    lasting: HashSet<String>,
    /// Answers with a value that shows in the first of them alone, by method.
    showing: HashMap<String, MessageDescriptor>,
}

impl Rules {
    /// Reads which methods are annotated as public. Errors when the set cannot be read.
    pub fn read(descriptor_set: &[u8]) -> Result<Self, prost_reflect::DescriptorError> {
        let pool = DescriptorPool::decode(descriptor_set)?;
        let methods = pool
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>());
        let path = |method: &MethodDescriptor| {
            format!("/{}/{}", method.parent_service().full_name(), method.name())
        };
        let methods: Vec<_> = methods.collect();
        let public = methods
            .iter()
            .filter(|method| is_annotated_public(&pool, method));
        let streams = methods.iter().filter(|method| method.is_client_streaming());
        let lasting = methods.iter().filter(|method| method.is_server_streaming());
        let showing = methods
            .iter()
            .filter(|method| shown_once(&method.output()).next().is_some());
        Ok(Self {
            showing: showing
                .map(|method| (path(method), method.output()))
                .collect(),
            public_methods: public.map(path).collect(),
            streams: streams.map(path).collect(),
            lasting: lasting.map(path).collect(),
            methods: methods.iter().map(path).collect(),
        })
    }

    /// Whether the request of the method at `path` is a stream of messages, which is read while the
    /// method runs.
    pub fn streams(&self, path: &str) -> bool {
        self.streams.contains(path) || REFLECTION.contains(&split(path).0)
    }

    /// Returns an answer of the method at `path`, one gRPC frame, as it is kept and given again:
    /// without what shows in the first answer alone. `None` where it cannot be read.
    pub fn kept(&self, path: &str, answer: &Bytes) -> Option<Bytes> {
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

    /// Whether the answer of the method at `path` is a stream of messages, which lasts as long as
    /// its caller likes.
    pub fn lasts(&self, path: &str) -> bool {
        path == WATCH || self.lasting.contains(path) || REFLECTION.contains(&split(path).0)
    }

    /// The method at `path` for those who count; one that does not exist has no name of its own.
    pub fn name<'p>(&self, path: &'p str) -> &'p str {
        if self.methods.contains(path) {
            path.trim_start_matches('/')
        } else {
            "other"
        }
    }

    /// Returns how many bytes a request of the method at `path`, such as
    /// `/kanat.v1.FlowService/GetFlow`, may have where it needs no credential.
    pub fn public(&self, path: &str) -> Option<usize> {
        if split(path).0 == HEALTH {
            return Some(HEALTH_BYTES);
        }
        self.public_methods.contains(path).then_some(PUBLIC_BYTES)
    }

    /// What the method at `path` needs.
    pub fn permission(&self, path: &str) -> Permission {
        let (service, method) = split(path);
        if OWNER_SERVICES.contains(&service) {
            Permission::Billing
        } else if ADMIN_SERVICES.contains(&service) || ADMIN_METHODS.contains(&path) {
            Permission::Admin
        } else if service == HEALTH
            || REFLECTION.contains(&service)
            || !WRITING.contains(&path) && READING.iter().any(|word| begins_with_word(method, word))
        {
            Permission::Read
        } else {
            Permission::Write
        }
    }
}

fn split(path: &str) -> (&str, &str) {
    path.trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path, ""))
}

/// `List` begins `ListFlows`, and not `Listen`.
fn begins_with_word(name: &str, word: &str) -> bool {
    name.strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
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

fn is_annotated_public(pool: &DescriptorPool, method: &MethodDescriptor) -> bool {
    let Some(extension) = pool.get_extension_by_name("kanat.v1.rest") else {
        return false;
    };
    let options = method.options();
    let rest = options.get_extension(&extension);
    rest.as_message()
        .and_then(|rest| {
            rest.get_field_by_name("public")
                .map(|v| *v == Value::Bool(true))
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_method_says_what_it_needs() {
        let rules = Rules::read(kanat_proto::FILE_DESCRIPTOR_SET).unwrap();
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
            assert_eq!(rules.public(path), None, "{path}");
        }
    }

    #[test]
    fn health_is_public_and_reflection_for_all_who_have_a_key() {
        let rules = Rules::default();
        for method in ["Check", "Watch"] {
            let path = format!("/grpc.health.v1.Health/{method}");
            assert_eq!(rules.public(&path), Some(1024));
            assert_eq!(rules.permission(&path), Permission::Read);
            assert_eq!(rules.lasts(&path), method == "Watch");
            assert!(!rules.streams(&path));
        }
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            assert_eq!(rules.public(&path), None);
            assert_eq!(rules.permission(&path), Permission::Read);
            assert!(rules.lasts(&path) && rules.streams(&path));
        }
    }
}
