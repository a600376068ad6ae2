//! Adapters between the wire and the store.

use kanat_model::id::AdapterId;
use kanat_model::{Error, Result};
use kanat_proto::v1 as wire;
use kanat_script::{Failure, Log};
use kanat_store::adapter::Adapter;

use crate::app::adapter::template::Template;
use crate::app::adapter::{NewAdapter, TestResult, Update};
use crate::app::etag;
use crate::carry::carry;
use crate::grpc::clear;

pub fn adapter(adapter: Adapter) -> wire::Adapter {
    carry!(
        wire::Adapter, adapter { name, description, code, version }
        text { id, created_at, updated_at }
        with {
            etag: etag(&adapter),
            r#type: adapter.kind.as_str().to_owned(),
        }
    )
}

pub fn template(template: Template) -> wire::AdapterTemplate {
    wire::AdapterTemplate {
        id: template.id.to_owned(),
        name: template.name.to_owned(),
        description: template.description.to_owned(),
        r#type: template.kind.as_str().to_owned(),
        code: template.code.to_owned(),
        sample_input: Some(wire::Json {
            text: template.sample_input.to_owned(),
        }),
        sample_output: Some(wire::Json {
            text: template.sample_output.to_owned(),
        }),
    }
}

pub fn new(request: wire::CreateAdapterRequest) -> NewAdapter {
    NewAdapter {
        name: request.name,
        description: request.description.unwrap_or_default(),
        kind: request.r#type,
        code: request.code,
    }
}

pub fn update(mut request: wire::UpdateAdapterRequest) -> Result<(AdapterId, Update)> {
    clear::texts(&request.clear, [("description", &mut request.description)])?;
    let update = carry!(
        Update, request { name, description, code }
        with {
            kind: request.r#type,
        }
    );
    Ok((request.id.into(), update))
}

/// The input may be null, and may not be left out.
pub fn test(request: wire::TestAdapterRequest) -> Result<(AdapterId, String)> {
    let input = request
        .input
        .ok_or_else(|| Error::field("input", "is required"))?;
    Ok((request.id.into(), input.text))
}

pub fn tested(tested: TestResult) -> wire::TestAdapterResponse {
    let (output, error) = match tested.called.output {
        Ok(Some(output)) => (Some(output), None),
        Ok(None) => (None, Some(undefined())),
        Err(failure) => (None, Some(self::error(failure))),
    };
    wire::TestAdapterResponse {
        output: output.map(|text| wire::Json { text }),
        logs: tested.called.logs.iter().map(Log::line).collect(),
        error,
        duration_ms: tested.duration_ms,
    }
}

/// Returns the error of a run whose adapter gives undefined where its output is the payload. A pipe
/// of a mapping leaves its field out instead.
fn undefined() -> wire::AdapterError {
    wire::AdapterError {
        message: kanat_engine::GAVE_UNDEFINED.to_owned(),
        line: None,
        column: None,
    }
}

fn error(failure: Failure) -> wire::AdapterError {
    wire::AdapterError {
        message: failure.message,
        line: failure.position.map(|position| position.line),
        column: failure.position.map(|position| position.column),
    }
}
