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
mod published_api;
mod schedule;
mod secret;
pub mod status;

use std::sync::Arc;

use kanat_proto::FILE_DESCRIPTOR_SET;
use kanat_proto::v1::account_service_server::AccountServiceServer;
use kanat_proto::v1::adapter_service_server::AdapterServiceServer;
use kanat_proto::v1::api_key_service_server::ApiKeyServiceServer;
use kanat_proto::v1::batch_job_service_server::BatchJobServiceServer;
use kanat_proto::v1::connector_service_server::ConnectorServiceServer;
use kanat_proto::v1::consumer_key_service_server::ConsumerKeyServiceServer;
use kanat_proto::v1::environment_service_server::EnvironmentServiceServer;
use kanat_proto::v1::flow_service_server::FlowServiceServer;
use kanat_proto::v1::lookup_table_service_server::LookupTableServiceServer;
use kanat_proto::v1::message_service_server::MessageServiceServer;
use kanat_proto::v1::node_service_server::NodeServiceServer;
use kanat_proto::v1::published_api_service_server::PublishedApiServiceServer;
use kanat_proto::v1::schedule_service_server::ScheduleServiceServer;
use kanat_proto::v1::secret_service_server::SecretServiceServer;
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::app::{App, Caller, Changed, IfMatch};
use crate::push::Rollout;

/// Bytes of a request.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// Bytes of an answer: one message with the largest payload and the largest output fits; lists have
/// pages of less.
const MAX_ANSWER_BYTES: usize = 192 << 20;

/// What each service is made of.
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
        ($($server:ident),* $(,)?) => {$(
            health.set_serving::<$server<Api>>().await;
            served.push(<$server<Api> as NamedService>::NAME);
            routes.add_service(
                $server::new(api.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_ANSWER_BYTES),
            );
        )*};
    }
    serve!(
        AccountServiceServer,
        AdapterServiceServer,
        ApiKeyServiceServer,
        BatchJobServiceServer,
        ConnectorServiceServer,
        ConsumerKeyServiceServer,
        EnvironmentServiceServer,
        FlowServiceServer,
        LookupTableServiceServer,
        MessageServiceServer,
        NodeServiceServer,
        PublishedApiServiceServer,
        ScheduleServiceServer,
        SecretServiceServer
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

/// Who calls, as authentication found it.
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

/// The answer to a change: its metadata says when not every node runs it yet.
pub fn changed<T, M>(changed: Changed<T>, convert: impl FnOnce(T) -> M) -> Response<M> {
    let mut response = Response::new(convert(changed.value));
    match changed.applied {
        Rollout::Everywhere => {}
        Rollout::Pending => {
            response
                .metadata_mut()
                .insert("x-config-applied", MetadataValue::from_static("pending"));
        }
    }
    response
}
