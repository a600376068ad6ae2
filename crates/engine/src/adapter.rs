//! Adapters of a flow: conversion of the payload before all other parts, and of the body that is
//! sent.

use bytes::Bytes;
use kanat_mapping::{AdapterRef, References, json};
use kanat_model::adapter::Kind;
use kanat_model::message::{ErrorKind, Failure};

use crate::{Input, Program, Resources};

/// Field of the failures of a flow's own adapter: its key in the definition.
const FIELD: &str = "adapter";

impl Program {
    /// Returns whether a run may call adapters, which takes time outside of this process.
    pub fn uses_adapters(&self) -> bool {
        !self.plan().adapter.is_empty() || self.calls_adapters()
    }

    /// Returns whether an expression of the step calls an adapter.
    pub fn calls_adapters(&self) -> bool {
        self.references()
            .any(|references| !references.adapters.is_empty())
    }

    /// Returns the payload that the flow's adapter makes of the inbound payload or of the inbound
    /// body; `None` when the flow has no such adapter. All parts except the keys use that payload.
    pub fn adapt(
        &self,
        input: &Input,
        raw_body: &[u8],
        resources: &dyn Resources,
    ) -> Result<Option<Bytes>, Failure> {
        let Some((adapter, kind)) = self.own_adapter(resources)? else {
            return Ok(None);
        };
        self.check_keys(input, resources)?;
        let text = match kind {
            Kind::Target => return Ok(None),
            Kind::Transform => utf8(input.payload).to_owned(),
            // A body that is no text arrived as an object with its base64.
            Kind::Source => std::str::from_utf8(raw_body)
                .map_or_else(|_| utf8(input.payload).to_owned(), quoted),
        };
        call(adapter, &text, resources).map(|output| Some(Bytes::from(output)))
    }

    /// Returns the output of the flow's adapter for the target: JSON, of which [`body`] is sent.
    /// `None` when the flow has no such adapter.
    pub fn adapt_output(
        &self,
        mapped: &[u8],
        resources: &dyn Resources,
    ) -> Result<Option<String>, Failure> {
        match self.own_adapter(resources)? {
            Some((adapter, Kind::Target)) => call(adapter, utf8(mapped), resources).map(Some),
            Some((_, Kind::Transform | Kind::Source)) | None => Ok(None),
        }
    }

    fn own_adapter(
        &self,
        resources: &dyn Resources,
    ) -> Result<Option<(AdapterRef<'_>, Kind)>, Failure> {
        let id = self.plan().adapter.as_str();
        if id.is_empty() {
            return Ok(None);
        }
        match resources.adapters().kind(AdapterRef::Id(id)) {
            Some(kind) => Ok(Some((AdapterRef::Id(id), kind))),
            None => {
                let message = format!("adapter {id:?} does not exist in this environment");
                Err(failure(ErrorKind::Configuration, message))
            }
        }
    }

    /// Returns the references of each expression.
    pub(crate) fn references(&self) -> impl Iterator<Item = &References> {
        let parts = self.parts();
        let steps = parts.steps.iter().flat_map(|step| {
            let conditions = step.when.iter().chain(&step.success_when);
            let conditions = conditions.map(|condition| condition.references());
            conditions.chain([step.params.references()])
        });
        let target = parts.target.iter().flat_map(|target| {
            let headers = target
                .headers
                .iter()
                .map(|(_, template)| template.references());
            let success_when = target.success_when.iter().map(|when| when.references());
            headers
                .chain(success_when)
                .chain([target.endpoint.references()])
        });
        let mapping = parts.mapping.iter().map(|mapping| mapping.references());
        let expressions = parts
            .when
            .iter()
            .chain(&parts.ordering_key)
            .chain(&parts.idempotency_key);
        expressions
            .map(|expression| expression.references())
            .chain(steps)
            .chain(mapping)
            .chain(target)
    }
}

/// Error of an adapter that returns nothing.
pub const GAVE_UNDEFINED: &str =
    "the adapter gave undefined: it has to return a value, null where there is none";

/// Returns the body for an adapter's output: the text of a string, otherwise the JSON.
pub fn body(output: String) -> Bytes {
    Bytes::from(if output.starts_with('"') {
        json::decode(&output).into_owned()
    } else {
        output
    })
}

fn call(
    adapter: AdapterRef<'_>,
    input: &str,
    resources: &dyn Resources,
) -> Result<String, Failure> {
    let output = resources.adapters().call(adapter, input).map_err(|error| {
        let found: Failure = error.into();
        Failure {
            field: Some(FIELD.to_owned()),
            ..found
        }
    })?;
    let Some(output) = output else {
        return Err(failure(ErrorKind::Adapter, GAVE_UNDEFINED));
    };
    match json::check(output.as_bytes(), json::MAX_DEPTH) {
        Ok(()) => Ok(output),
        Err(error) => Err(failure(
            ErrorKind::Adapter,
            format!("the adapter gave what is no JSON: {error}"),
        )),
    }
}

fn failure(kind: ErrorKind, message: impl Into<String>) -> Failure {
    Failure {
        field: Some(FIELD.to_owned()),
        ..Failure::new(kind, message)
    }
}

fn utf8(document: &[u8]) -> &str {
    std::str::from_utf8(document).unwrap_or("null")
}

fn quoted(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    json::write_string(text, &mut quoted);
    String::from_utf8(quoted).unwrap_or_default()
}
