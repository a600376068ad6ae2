//! The public API as tonic services: thin methods that turn messages into use-cases and back. A
//! resource has its methods in `grpc/<resource>.rs` and its conversions in
//! `grpc/<resource>/convert.rs`.

/// Implements a service. A method is written as `method(call, request: Request) -> Answer`, and its
/// body gives the answer, or a [`ChangeResult`] with it, or the error of the use-case. Methods that
/// take or give a stream, or need no caller, stand in a block `impl` behind the name.
macro_rules! service {
    (
        $module:ident::$service:ident $(impl { $($others:tt)* })?;
        $($method:ident($call:ident, $request:ident: $Request:ident) -> $Answer:ident $body:block)*
    ) => {
        #[tonic::async_trait]
        impl kanat_proto::v1::$module::$service for $crate::grpc::Api {
            $(async fn $method(
                &self,
                request: tonic::Request<kanat_proto::v1::$Request>,
            ) -> Result<tonic::Response<kanat_proto::v1::$Answer>, tonic::Status> {
                let ($call, $request) = self.accept(request)?;
                let audited = $call.audited();
                let answer: Result<_, kanat_model::Error> = async { $body }.await;
                audited.check(&answer);
                $crate::grpc::respond(answer)
            })*
            $($($others)*)?
        }
    };
}

mod account;
mod adapter;
mod api_key;
mod audit;
mod batch_job;
mod clear;
mod connector;
mod consumer_key;
mod environment;
mod flow;
mod language;
mod lookup_table;
mod member;
mod message;
mod node;
pub mod page;
mod policy;
mod published_api;
mod schedule;
mod search;
mod secret;
pub mod status;

use std::sync::Arc;

use kanat_model::Error;
use kanat_proto::{FILE_DESCRIPTOR_SET, v1};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::app::audit::AuditContext;
use crate::app::{App, Call, Caller, ChangeResult, IfMatch};
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
        audit_service_server::AuditServiceServer,
        batch_job_service_server::BatchJobServiceServer,
        connector_service_server::ConnectorServiceServer,
        consumer_key_service_server::ConsumerKeyServiceServer,
        environment_service_server::EnvironmentServiceServer,
        flow_service_server::FlowServiceServer,
        language_service_server::LanguageServiceServer,
        lookup_table_service_server::LookupTableServiceServer,
        member_service_server::MemberServiceServer,
        message_service_server::MessageServiceServer,
        node_service_server::NodeServiceServer,
        policy_service_server::PolicyServiceServer,
        published_api_service_server::PublishedApiServiceServer,
        schedule_service_server::ScheduleServiceServer,
        search_service_server::SearchServiceServer,
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

impl Api {
    /// Takes a request as a call and its message.
    ///
    /// # Errors
    /// Authentication has found no caller.
    fn accept<M>(&self, request: Request<M>) -> Result<(Call, M), Status> {
        let caller = request.extensions().get::<Caller>().cloned();
        let call = Call {
            app: Arc::clone(&self.app),
            caller: caller
                .ok_or_else(|| Status::unauthenticated("the call carries no credential"))?,
            if_match: IfMatch(header(&request, "if-match").map(str::to_owned)),
            trace_context: trace_context(&request),
            audit_context: request
                .extensions()
                .get::<AuditContext>()
                .cloned()
                .unwrap_or_default(),
        };
        Ok((call, request.into_inner()))
    }
}

fn header<'r, M>(request: &'r Request<M>, name: &str) -> Option<&'r str> {
    request.metadata().get(name)?.to_str().ok()
}

/// Returns the caller's trace context: its `traceparent`, and behind a space the `tracestate` where
/// there is one.
fn trace_context<M>(request: &Request<M>) -> Option<String> {
    /// Bytes of a `tracestate` that are handed on; a longer one is left out.
    const MAX_STATE_BYTES: usize = 1024;
    let parent = header(request, "traceparent")?;
    let state = header(request, "tracestate");
    match state.filter(|state| (1..=MAX_STATE_BYTES).contains(&state.len())) {
        Some(state) => Some(format!("{parent} {state}")),
        None => Some(parent.to_owned()),
    }
}

/// Result of a use-case as an answer: a message, alone or as the value of a change.
trait Answer<M> {
    fn into_response(self) -> Response<M>;
}

impl<M: Message> Answer<M> for M {
    fn into_response(self) -> Response<M> {
        Response::new(self)
    }
}

impl<M> Answer<M> for ChangeResult<M> {
    /// Says in the metadata when not every node runs the change yet.
    fn into_response(self) -> Response<M> {
        let mut response = Response::new(self.value);
        match self.applied {
            Rollout::Everywhere => {}
            Rollout::Pending => {
                let pending = MetadataValue::from_static("pending");
                response.metadata_mut().insert("x-config-applied", pending);
            }
        }
        response
    }
}

/// Answers a call with the result of its use-case.
fn respond<M>(result: Result<impl Answer<M>, Error>) -> Result<Response<M>, Status> {
    result.map(Answer::into_response).map_err(status::of)
}
