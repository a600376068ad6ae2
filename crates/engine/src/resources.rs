//! Resources of an environment that programs use: lookup tables, connector instances, adapters.

use kanat_catalog::Instance;
use kanat_catalog::instance::AccessToken;
use kanat_mapping::json;
use kanat_mapping::{Adapters, Effort, Lookup, NoAdapters, Scope, Tables, Template};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_proto::plan::v1::ConnectorInstance;

/// Resources of an environment at the beginning of a run.
pub trait Resources: Tables {
    /// Returns a connector instance by its id.
    fn instance(&self, id: &str) -> Option<&Instance>;

    /// Returns the variables of the environment, a JSON object of texts; empty where there are
    /// none.
    fn variables(&self) -> &[u8];

    /// Returns the adapters that expressions may call.
    fn adapters(&self) -> &dyn Adapters {
        &NoAdapters
    }
}

/// Builds a connector instance from its plan, with its access token or the reason why it has none.
///
/// # Errors
/// The config does not fit; the text says why, without any of its values.
pub fn instance(plan: ConnectorInstance) -> Result<Instance, String> {
    let instance = Instance::new(plan.id, plan.name, &plan.catalog_id, &plan.config)?;
    if !plan.access_token.is_empty() {
        return instance.with_access_token(AccessToken {
            text: plan.access_token,
            ends_at: Some(plan.access_token_ends_at)
                .filter(|at| *at > 0)
                .map(Timestamp::from_millis),
            renewable: plan.access_token_renewable,
        });
    }
    Ok(match plan.access_token_refusal {
        refusal if refusal.is_empty() => instance,
        refusal => instance.with_refusal(refusal),
    })
}

/// An environment whose adapters can be called.
pub struct Calling<'r> {
    resources: &'r dyn Resources,
    adapters: &'r dyn Adapters,
}

impl<'r> Calling<'r> {
    pub fn new(resources: &'r dyn Resources, adapters: &'r dyn Adapters) -> Self {
        Self {
            resources,
            adapters,
        }
    }
}

impl Tables for Calling<'_> {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        self.resources.lookup(table, key)
    }
}

impl Resources for Calling<'_> {
    fn instance(&self, id: &str) -> Option<&Instance> {
        self.resources.instance(id)
    }

    fn variables(&self) -> &[u8] {
        self.resources.variables()
    }

    fn adapters(&self) -> &dyn Adapters {
        self.adapters
    }
}

/// An environment without resources.
pub struct NoResources;

impl Tables for NoResources {
    fn lookup<'t>(&'t self, _table: &str, _key: &str) -> Lookup<'t> {
        Lookup::NoTable
    }
}

impl Resources for NoResources {
    fn instance(&self, _id: &str) -> Option<&Instance> {
        None
    }

    fn variables(&self) -> &[u8] {
        b""
    }
}

/// Renders a text that may be a template over `instance` and the variables of the environment, such
/// as the secret of a webhook.
///
/// # Errors
/// The template is invalid, or a part of it renders to nothing: a secret must be neither empty nor
/// incomplete.
pub fn render_instance_template(
    text: &str,
    instance: Option<&Instance>,
    variables: &[u8],
    now: Timestamp,
) -> Result<String, Failure> {
    let template = Template::parse(text).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        configuration(text, &errors.join("; "))
    })?;
    let config = instance.map_or(&b""[..], Instance::config_json);
    let effort = Effort::default();
    let scope = Scope {
        instance: config,
        variables,
        ..Scope::new(b"", now, &effort)
    };
    let values = &template.references().instance_values;
    let has_all = values.iter().all(|value| has_value(config, &value.names));
    let rendered = template.render_complete(&scope)?;
    rendered.filter(|_| has_all).ok_or_else(|| {
        configuration(
            text,
            "the connector instance lacks a field, or holds it empty",
        )
    })
}

/// Returns whether the value that `names` lead to is there and not empty.
fn has_value(config: &[u8], names: &[String]) -> bool {
    let config = std::str::from_utf8(config).unwrap_or_default();
    let value = names
        .iter()
        .try_fold(config, |object, name| json::member(object, name));
    value.is_some_and(|value| !matches!(value, "null" | "\"\"" | ""))
}

fn configuration(text: &str, message: &str) -> Failure {
    Failure {
        expression: Some(text.to_owned()),
        ..Failure::new(ErrorKind::Configuration, format!("{message}, in `{text}`"))
    }
}
