//! Actions of the audit log, which follow from the names of methods: `DeployFlow` of `FlowService`
//! is `flow.deploy`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use kanat_auth::Permission;
use kanat_proto::DESCRIPTORS;

/// Method that changes nothing that the log tells, although it needs more than reading.
const UNAUDITED: &[&str] = &[
    "CheckEndpointSchemas",
    "StartOAuth",
    "TestConnectorInstance",
];

/// Methods whose verb is not the first word of their name.
const VERBS: &[(&str, &str)] = &[
    ("CompleteOAuth", "callback"),
    ("DeleteApiKey", "revoke"),
    ("DeleteLookupEntry", "update"),
    ("ReceiveOAuthCallback", "callback"),
    ("SetLookupEntry", "update"),
    ("UpsertLookupEntries", "update"),
];

/// Services whose type of entities is not their name.
const TYPES: &[(&str, &str)] = &[("Audit", "audit_log"), ("Secret", "account")];

/// Types of entities that belong to the account, and to no environment.
const OF_ACCOUNT: &[&str] = &[
    "account",
    "api_key",
    "audit_log",
    "environment",
    "member",
    "policy",
    "promotion",
];

/// Acts of the service itself that are no method.
const OF_SYSTEM: &[(&str, &str)] = &[
    ("account", "create"),
    ("api_key", "reset"),
    ("member", "create"),
];

/// All actions by their texts.
static KNOWN: LazyLock<BTreeMap<String, Action>> = LazyLock::new(|| {
    let methods = DESCRIPTORS.services().flat_map(|service| {
        let path = |method: &str| format!("/{}/{method}", service.full_name());
        let actions = service
            .methods()
            .map(|method| Action::of_method(&path(method.name())));
        actions.flatten().collect::<Vec<_>>()
    });
    let of_system = OF_SYSTEM
        .iter()
        .map(|(entity_type, verb)| Action::new(entity_type, verb));
    let all = methods.chain(of_system);
    all.map(|action| (action.to_string(), action)).collect()
});

/// Kind of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub entity_type: String,
    pub verb: String,
}

impl Action {
    pub fn new(entity_type: &str, verb: &str) -> Self {
        Self {
            entity_type: entity_type.to_owned(),
            verb: verb.to_owned(),
        }
    }

    /// Returns the action of the method at a path such as `/kanat.v1.FlowService/DeployFlow`;
    /// `None` for services of gRPC itself.
    pub fn of_method(path: &str) -> Option<Self> {
        let path = path.strip_prefix("/kanat.v1.")?;
        let (service, method) = path.split_once('/')?;
        let service = service.strip_suffix("Service")?;
        let entity_type = if method.ends_with("PublishedApiVersion") {
            "api_version".to_owned()
        } else {
            found(TYPES, service).map_or_else(|| snake_case(service), str::to_owned)
        };
        let words = snake_case(method);
        let first = words.split('_').next().unwrap_or_default();
        let verb = found(VERBS, method).unwrap_or(first);
        Some(Self::new(&entity_type, verb))
    }

    /// Returns whether what it is about belongs to an environment.
    pub fn is_of_environment(&self) -> bool {
        !OF_ACCOUNT.contains(&self.entity_type.as_str())
    }

    /// Returns whether a success has an entry: changes and exports.
    pub fn is_audited(&self, path: &str, permission: Permission) -> bool {
        let method = path.rsplit('/').next().unwrap_or_default();
        match self.verb.as_str() {
            "export" => true,
            "get" | "list" | "verify" => false,
            _ => permission != Permission::Read && !UNAUDITED.contains(&method),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.entity_type, self.verb)
    }
}

/// Returns the texts of all actions that an entry of this build can have.
pub fn known() -> impl Iterator<Item = &'static str> + Clone {
    KNOWN.keys().map(String::as_str)
}

/// Returns the types of entities of all actions; one that has several actions is repeated.
pub fn entity_types() -> impl Iterator<Item = &'static str> + Clone {
    KNOWN.values().map(|action| action.entity_type.as_str())
}

fn found(list: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map(|(_, word)| *word)
}

fn snake_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for (n, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && n > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_the_type_and_the_verb_of_a_method() {
        for (path, action) in [
            ("FlowService/DeployFlow", "flow.deploy"),
            ("FlowService/RotateWebhookToken", "flow.rotate"),
            ("LookupTableService/SetLookupEntry", "lookup_table.update"),
            (
                "LookupTableService/ImportLookupTable",
                "lookup_table.import",
            ),
            (
                "ConnectorService/CreateConnectorInstance",
                "connector.create",
            ),
            (
                "PublishedApiService/DeprecatePublishedApiVersion",
                "api_version.deprecate",
            ),
            (
                "PublishedApiService/CreatePublishedApi",
                "published_api.create",
            ),
            (
                "ConsumerKeyService/RevokeConsumerKey",
                "consumer_key.revoke",
            ),
            ("MessageService/ReplayMessages", "message.replay"),
            ("BatchJobService/CancelBatchJob", "batch_job.cancel"),
            ("ApiKeyService/DeleteApiKey", "api_key.revoke"),
            ("SecretService/RotateSecrets", "account.rotate"),
            ("AuditService/ListAuditEntries", "audit_log.list"),
        ] {
            let found = Action::of_method(&format!("/kanat.v1.{path}")).unwrap();
            assert_eq!(found.to_string(), action);
        }
        assert_eq!(Action::of_method("/grpc.health.v1.Health/Check"), None);
    }

    #[test]
    fn actions_of_methods_and_of_the_service_itself_are_known() {
        for action in [
            "flow.deploy",
            "flow.list",
            "account.create",
            "api_key.reset",
        ] {
            assert!(known().any(|known| known == action), "{action}");
        }
        assert!(!known().any(|known| known == "flow.reset"));
        assert!(entity_types().any(|known| known == "api_version"));
        assert!(!entity_types().any(|known| known == "secret"));
    }

    #[test]
    fn changes_and_exports_have_entries() {
        for (path, permission, is_audited) in [
            ("/kanat.v1.FlowService/CreateFlow", Permission::Write, true),
            ("/kanat.v1.FlowService/TestFlow", Permission::Read, false),
            (
                "/kanat.v1.ApiKeyService/ListApiKeys",
                Permission::Admin,
                false,
            ),
            (
                "/kanat.v1.LookupTableService/ExportLookupTable",
                Permission::Read,
                true,
            ),
            (
                "/kanat.v1.ConnectorService/TestConnectorInstance",
                Permission::Write,
                false,
            ),
        ] {
            let action = Action::of_method(path).unwrap();
            assert_eq!(action.is_audited(path, permission), is_audited, "{path}");
        }
    }
}
