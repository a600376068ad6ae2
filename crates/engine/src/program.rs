//! Compiled plans, as nodes and tests run them.

use bytes::Bytes;
use http::{HeaderValue, header};
use kanat_catalog::Instance;
use kanat_catalog::instance::SHORTEST_MASKED;
use kanat_mapping::{Effort, Expression, Scope, json};
use kanat_model::Timestamp;
use kanat_model::message::Failure;
use kanat_proto::plan::v1::FlowPlan;

use crate::compile::{self, Parts};
use crate::fault::within;
use crate::trigger::leads_to_credential;
use crate::{CompileError, Mask, Request, Resources, Step, key, request};

/// A compiled plan, shared by all messages of its flow version.
pub struct Program {
    plan: FlowPlan,
    parts: Parts,
    reads_credentials: bool,
}

/// Parts of a message that expressions see. Each is checked JSON; an empty slice is absent.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub payload: &'a [u8],
    /// An object with `headers` (lower-case names), `query`, `method`, `path_params`,
    /// `received_at`.
    pub trigger: &'a [u8],
    /// An object of `{output, status}` by step name.
    pub steps: &'a [u8],
    pub now: Timestamp,
    /// Mask of the secrets in failures.
    pub mask: &'a Mask,
    /// Remaining evaluation budget of the message.
    pub effort: &'a Effort,
}

/// Keys of a message: one orders it, the other identifies its repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    pub ordering: Option<String>,
    pub idempotency: Option<String>,
}

/// Answer of a flow's condition to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The condition is false.
    Filtered {
        /// Sentence on a comparison in it that is false because of the types of its sides.
        reason: Option<String>,
    },
    /// The message is run.
    Admitted {
        /// `ordering_key`, `idempotency_key`: those of the flow that are undefined, null or empty
        /// for the message.
        missing_keys: Vec<&'static str>,
    },
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The flow's condition was false.
    Filtered,
    /// Body for the target; the payload when the flow has no mapping.
    Mapped(Bytes),
}

impl Program {
    /// Compiles a plan.
    ///
    /// # Errors
    /// The first part of the plan that cannot run.
    pub fn compile(plan: FlowPlan) -> Result<Self, CompileError> {
        let parts = compile::compile(&plan)?;
        let mut program = Self {
            plan,
            parts,
            reads_credentials: false,
        };
        program.reads_credentials = program.uses_adapters()
            || program
                .references()
                .flat_map(|names| &names.trigger_values)
                .any(|names| leads_to_credential(names));
        Ok(program)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &FlowPlan {
        &self.plan
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns whether messages may have keys. Most flows have none, and need no evaluation then.
    pub fn has_keys(&self) -> bool {
        self.parts.ordering_key.is_some() || self.parts.idempotency_key.is_some()
    }

    /// Returns the keys of a message before it is stored. An expression that fails gives no key
    /// here; the run reports the failure.
    pub fn keys(&self, input: &Input, resources: &dyn Resources) -> Keys {
        let scope = self.scope(input, self.source_instance(resources), resources);
        let key =
            |expression: &Option<Expression>| key::of(&expression.as_ref()?.evaluate(&scope).ok()?);
        Keys {
            ordering: key(&self.parts.ordering_key),
            idempotency: key(&self.parts.idempotency_key),
        }
    }

    /// Evaluates the condition and the mapping: a run without its calls.
    pub fn run(&self, input: &Input, resources: &dyn Resources) -> Result<Outcome, Failure> {
        match self.admit(input, resources)? {
            Admission::Admitted { .. } => self.map(input, resources).map(Outcome::Mapped),
            Admission::Filtered { .. } => Ok(Outcome::Filtered),
        }
    }

    /// Evaluates the flow's condition for a message, and its keys unless an adapter reshapes the
    /// payload.
    ///
    /// # Errors
    /// A failure is final; its field is `when`, `ordering_key` or `idempotency_key`.
    pub fn admit(&self, input: &Input, resources: &dyn Resources) -> Result<Admission, Failure> {
        let scope = self.scope(input, self.source_instance(resources), resources);
        if let Some(when) = &self.parts.when
            && !when
                .evaluate(&scope)
                .map_err(|error| within("when", error))?
                .truthy()
        {
            let reason = when.mismatch(&scope);
            return Ok(Admission::Filtered { reason });
        }
        let missing_keys = if self.plan.adapter.is_empty() {
            self.check_keys(input, resources)?
        } else {
            Vec::new()
        };
        Ok(Admission::Admitted { missing_keys })
    }

    /// Returns a sentence on a comparison in the flow's condition whose sides differ in type.
    pub fn condition_mismatch(&self, input: &Input, resources: &dyn Resources) -> Option<String> {
        let scope = self.scope(input, self.source_instance(resources), resources);
        self.parts.when.as_ref()?.mismatch(&scope)
    }

    /// Returns the fields of the mapping that compare a text with a number, and those whose
    /// template has a part that renders to nothing, each with a sentence on it. Calls no adapter.
    pub fn mapping_remarks(
        &self,
        input: &Input,
        resources: &dyn Resources,
    ) -> Vec<(String, String)> {
        let scope = self.scope(input, self.target_instance(resources), resources);
        let mapping = self.parts.mapping.as_ref();
        mapping.map_or_else(Vec::new, |mapping| mapping.remarks(&scope))
    }

    /// Returns the params of a step whose template has a part that renders to nothing, each with a
    /// sentence on it. Calls no adapter.
    pub fn step_remarks(
        &self,
        step: &Step,
        input: &Input,
        resources: &dyn Resources,
    ) -> Vec<(String, String)> {
        let scope = self.scope(input, resources.instance(&step.instance), resources);
        let found = step.params.missing_parts(&scope).into_iter();
        let placed = found.map(|(param, sentence)| (format!("params.{param}"), sentence));
        placed.collect()
    }

    /// Returns the endpoint and the headers of the target whose template has a part that renders to
    /// nothing, each with a sentence on it. Calls no adapter.
    pub fn target_remarks(
        &self,
        input: &Input,
        resources: &dyn Resources,
    ) -> Vec<(String, String)> {
        let Some(target) = &self.parts.target else {
            return Vec::new();
        };
        let scope = self.scope(input, self.target_instance(resources), resources);
        let endpoint = ("target.endpoint".to_owned(), &target.endpoint);
        let headers = target.headers.iter();
        let headers = headers.map(|(name, template)| (format!("target.headers.{name}"), template));
        let templates = std::iter::once(endpoint).chain(headers);
        templates
            .filter_map(|(place, template)| Some((place, template.missing_part(&scope)?)))
            .collect()
    }

    /// Evaluates the keys on the inbound payload. Returns the fields of the definition whose
    /// expressions give no key.
    pub(crate) fn check_keys(
        &self,
        input: &Input,
        resources: &dyn Resources,
    ) -> Result<Vec<&'static str>, Failure> {
        let mut missing = Vec::new();
        let scope = self.scope(input, self.source_instance(resources), resources);
        for (field, expression) in [
            ("ordering_key", &self.parts.ordering_key),
            ("idempotency_key", &self.parts.idempotency_key),
        ] {
            if let Some(expression) = expression {
                let value = expression
                    .evaluate(&scope)
                    .map_err(|error| within(field, error))?;
                if key::of(&value).is_none() {
                    missing.push(field);
                }
            }
        }
        Ok(missing)
    }

    /// Returns the secret texts of the definition that are long enough to be masked.
    pub fn literal_secrets(&self) -> impl Iterator<Item = &String> {
        self.plan
            .literal_secrets
            .iter()
            .filter(|secret| secret.len() >= SHORTEST_MASKED)
    }

    /// Returns whether a run may read credentials of its request. Adapters get the entire request.
    pub fn reads_credentials(&self) -> bool {
        self.reads_credentials
    }

    /// Returns the steps in their order.
    pub fn steps(&self) -> &[Step] {
        &self.parts.steps
    }

    /// Returns the request of a step; `None` when its condition is false.
    ///
    /// # Errors
    /// A final failure whose field begins with `steps.<name>`.
    pub fn step_request(
        &self,
        step: &Step,
        input: &Input,
        resources: &dyn Resources,
    ) -> Result<Option<Request>, Failure> {
        let instance = resources
            .instance(&step.instance)
            .ok_or_else(|| request::gone(&step.instance))?;
        let scope = self.scope(input, Some(instance), resources);
        if !step.applies(&scope)? {
            return Ok(None);
        }
        step.request(instance, &scope)
            .map(Some)
            .map_err(|failure| self.with_param(step, failure))
    }

    /// Adds the template of the param that is at fault to a failure without an expression.
    fn with_param(&self, step: &Step, failure: Failure) -> Failure {
        if failure.expression.is_some() {
            return failure;
        }
        let place = format!("{}.params.", step.place());
        let field = failure.field.as_deref();
        let param = field.and_then(|field| field.strip_prefix(&place));
        let mut steps = self.plan.steps.iter();
        let planned = steps.find(|planned| planned.name == step.name());
        let value = planned
            .zip(param)
            .and_then(|(planned, param)| json::member(planned.params.trim(), param))
            .filter(|value| value.starts_with('"'));
        match value.map(json::decode) {
            Some(template) if template.contains("{{") => Failure {
                message: format!("{}, in `{template}`", failure.message),
                expression: Some(template.into_owned()),
                ..failure
            },
            Some(_) | None => failure,
        }
    }

    /// Returns the body for the target; the payload when the flow has no mapping.
    ///
    /// # Errors
    /// A final failure that names the target field.
    pub fn map(&self, input: &Input, resources: &dyn Resources) -> Result<Bytes, Failure> {
        let Some(mapping) = &self.parts.mapping else {
            return Ok(Bytes::copy_from_slice(input.payload));
        };
        let scope = self.scope(input, self.target_instance(resources), resources);
        let mut output = Vec::with_capacity(input.payload.len());
        mapping.write(&scope, &mut output)?;
        Ok(output.into())
    }

    /// Returns the request that delivers a mapped body; `None` for a flow without a target.
    pub fn request(
        &self,
        input: &Input,
        body: Bytes,
        resources: &dyn Resources,
    ) -> Result<Option<Request>, Failure> {
        let Some(target) = &self.parts.target else {
            return Ok(None);
        };
        let instance = resources
            .instance(&target.instance)
            .ok_or_else(|| request::gone(&target.instance))?;
        let scope = self.scope(input, Some(instance), resources);
        request::build(target, instance, &scope, body).map(Some)
    }

    /// Sets the content type of a request whose body is the inbound body, unless the flow sets
    /// another. A request without a body has no type.
    pub fn type_content(&self, request: &mut Request, declared: impl FnOnce() -> HeaderValue) {
        let mut headers = self.parts.target.iter().flat_map(|target| &target.headers);
        let is_set = headers.any(|(name, _)| *name == header::CONTENT_TYPE);
        if self.passes_through() && !is_set {
            request.headers.insert(header::CONTENT_TYPE, declared());
        }
        if request.body.is_empty() {
            request.headers.remove(header::CONTENT_TYPE);
        }
    }

    /// Returns whether the inbound body is sent unchanged.
    pub fn passes_through(&self) -> bool {
        self.plan.mapping.is_none() && self.plan.adapter.is_empty()
    }

    fn source_instance<'r>(&self, resources: &'r dyn Resources) -> Option<&'r Instance> {
        resources.instance(&self.plan.source_instance)
    }

    fn target_instance<'r>(&self, resources: &'r dyn Resources) -> Option<&'r Instance> {
        resources.instance(&self.parts.target.as_ref()?.instance)
    }

    /// Returns the scope of the expressions for `instance`.
    pub(crate) fn scope<'s>(
        &self,
        input: &Input<'s>,
        instance: Option<&'s Instance>,
        resources: &'s dyn Resources,
    ) -> Scope<'s> {
        Scope {
            trigger: input.trigger,
            steps: input.steps,
            variables: resources.variables(),
            instance: instance.map_or(b"", Instance::config_json),
            tables: resources,
            adapters: resources.adapters(),
            mask: input.mask,
            ..Scope::new(input.payload, input.now, input.effort)
        }
    }
}
