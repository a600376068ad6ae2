//! The public API as tonic services: thin methods that turn messages into use-cases and back. A
//! resource has its methods in `grpc/<resource>.rs` and its conversions in
//! `grpc/<resource>/convert.rs`.

mod account;
mod adapter;
mod api_key;
mod batch_job;
mod clear;
mod connector;
mod consumer_key;
mod environment;
mod flow;
mod lookup_table;
mod message;
mod node;
pub mod page;
mod policy;
mod published_api;
mod schedule;
mod secret;
pub mod status;

use std::sync::Arc;

use kanat_model::Error;
use kanat_proto::{FILE_DESCRIPTOR_SET, v1};
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::app::{App, Caller, ChangeResult, IfMatch};
use crate::push::Rollout;

/// Bytes of a request.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// Bytes of an answer: one message with the largest payload and the largest output fits; lists have
/// pages of less.
const MAX_ANSWER_BYTES: usize = 192 << 20;

/// The state of each service.
#[derive(Clone)]
pub struct Api {
    pub app: Arc<App>,
}

/// All services of the public API, with reflection and health.
pub(crate) async fn routes(app: &Arc<App>) -> Result<Routes, crate::Error> {
    let api = Api {
        app: Arc::clone(app),
    };
    let (health, health_service) = tonic_health::server::health_reporter();
    let mut routes = Routes::builder();
    let mut served = vec![
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    ];
    macro_rules! serve {
        ($($module:ident::$server:ident),* $(,)?) => {$(
            health.set_serving::<v1::$module::$server<Api>>().await;
            served.push(<v1::$module::$server<Api> as NamedService>::NAME);
            routes.add_service(
                v1::$module::$server::new(api.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_ANSWER_BYTES),
            );
        )*};
    }
    serve!(
        account_service_server::AccountServiceServer,
        adapter_service_server::AdapterServiceServer,
        api_key_service_server::ApiKeyServiceServer,
        batch_job_service_server::BatchJobServiceServer,
        connector_service_server::ConnectorServiceServer,
        consumer_key_service_server::ConsumerKeyServiceServer,
        environment_service_server::EnvironmentServiceServer,
        flow_service_server::FlowServiceServer,
        lookup_table_service_server::LookupTableServiceServer,
        message_service_server::MessageServiceServer,
        node_service_server::NodeServiceServer,
        policy_service_server::PolicyServiceServer,
        published_api_service_server::PublishedApiServiceServer,
        schedule_service_server::ScheduleServiceServer,
        secret_service_server::SecretServiceServer,
    );
    let reflection = || {
        let described = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
        // The set describes what nodes are served too, which is not for the public.
        served.iter().fold(described, |builder, service| {
            builder.with_service_name(*service)
        })
    };
    let failed =
        |error: tonic_reflection::server::Error| crate::Error::Descriptors(error.to_string());
    routes.add_service(health_service);
    routes.add_service(reflection().build_v1().map_err(failed)?);
    routes.add_service(reflection().build_v1alpha().map_err(failed)?);
    Ok(routes.routes())
}

/// Returns the caller, as authentication found it.
pub fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Status::unauthenticated("the call carries no credential"))
}

/// The revision that the caller means to change.
pub fn if_match<T>(request: &Request<T>) -> IfMatch {
    IfMatch(
        request
            .metadata()
            .get("if-match")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    )
}

/// Returns the caller's trace context: its `traceparent`, and behind a space the `tracestate` where
/// there is one.
pub fn trace_context<T>(request: &Request<T>) -> Option<String> {
    /// Bytes of a `tracestate` that are handed on; a longer one is left out.
    const MAX_STATE_BYTES: usize = 1024;
    let text = |name| {
        request
            .metadata()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let parent = text("traceparent")?;
    match text("tracestate").filter(|state| (1..=MAX_STATE_BYTES).contains(&state.len())) {
        Some(state) => Some(format!("{parent} {state}")),
        None => Some(parent.to_owned()),
    }
}

/// Answers a call with the result of its use-case.
pub fn respond<M>(result: Result<M, Error>) -> Result<Response<M>, Status> {
    result.map(Response::new).map_err(status::of)
}

/// Answers a change with the message that `convert` makes of its result. The metadata say when not
/// every node runs the change yet.
pub fn respond_changed<T, M>(
    result: Result<ChangeResult<T>, Error>,
    convert: impl FnOnce(T) -> M,
) -> Result<Response<M>, Status> {
    try_respond_changed(result, |value| Ok(convert(value)))
}

/// Answers a change as [`respond_changed`] does, where its result may be unreadable.
pub fn try_respond_changed<T, M>(
    result: Result<ChangeResult<T>, Error>,
    convert: impl FnOnce(T) -> Result<M, Error>,
) -> Result<Response<M>, Status> {
    let ChangeResult { value, applied } = result.map_err(status::of)?;
    let mut response = respond(convert(value))?;
    match applied {
        Rollout::Everywhere => {}
        Rollout::Pending => {
            let pending = MetadataValue::from_static("pending");
            response.metadata_mut().insert("x-config-applied", pending);
        }
    }
    Ok(response)
}
