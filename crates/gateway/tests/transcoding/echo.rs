//! Services that answer with what they were asked, and a caller that speaks to them through the
//! gateway.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::{HeaderMap, Request as HttpRequest, StatusCode};
use http_body_util::{BodyExt, Full};
use kanat_gateway::{Gateway, Options};
use kanat_net::budget::Budget;
use kanat_proto::v1::batch_job_service_server::{BatchJobService, BatchJobServiceServer};
use kanat_proto::v1::flow_service_server::{FlowService, FlowServiceServer};
use kanat_proto::v1::lookup_table_service_server::{LookupTableService, LookupTableServiceServer};
use kanat_proto::v1::message_service_server::{MessageService, MessageServiceServer};
use kanat_proto::v1::*;
use serde_json::Value;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::ServiceExt;

#[derive(Clone)]
pub struct Echo;

pub type GuardedService = tower::util::BoxCloneSyncService<
    HttpRequest<tonic::body::Body>,
    http::Response<tonic::body::Body>,
    std::convert::Infallible,
>;

/// Bytes for the bodies of one gateway.
pub const MEMORY: usize = 1 << 20;

pub fn gateway() -> Gateway<Routes> {
    gateway_with(&Budget::new(MEMORY))
}

pub fn gateway_with(memory: &Arc<Budget>) -> Gateway<Routes> {
    let options = Options {
        memory: Arc::clone(memory),
        ..options()
    };
    Gateway::new(&kanat_proto::DESCRIPTORS, routes())
        .unwrap()
        .with_options(options)
}

/// Returns a gateway of the services that `admit` guards by the credential.
pub fn guarded_gateway(admit: fn(&str) -> Result<(), Status>) -> Gateway<GuardedService> {
    let guard = move |request: HttpRequest<tonic::body::Body>| async move {
        let key = request.headers()["authorization"].to_str().unwrap();
        match admit(key) {
            Ok(()) => routes().oneshot(request).await,
            Err(status) => Ok(status.into_http()),
        }
    };
    let guarded = tower::util::BoxCloneSyncService::new(tower::service_fn(guard));
    Gateway::new(&kanat_proto::DESCRIPTORS, guarded)
        .unwrap()
        .with_options(options())
}

fn routes() -> Routes {
    Routes::new(FlowServiceServer::new(Echo))
        .add_service(BatchJobServiceServer::new(Echo))
        .add_service(LookupTableServiceServer::new(Echo))
        .add_service(MessageServiceServer::new(Echo))
}

fn options() -> Options {
    Options {
        body_limit: 4096,
        upload_limit: 8192,
        stream_limit: 65536,
        heartbeat: Duration::from_millis(5),
        memory: Budget::new(MEMORY),
    }
}

/// An answer read to its end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {:?}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|v| v.to_str().unwrap())
            .unwrap_or_default()
    }

    /// The field and message of every detail of an error with this status.
    pub fn faults(&self, status: u16) -> Vec<(String, String)> {
        assert_eq!(self.status, status, "{}", self.text);
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let body = self.json();
        let details = body["details"].as_array().unwrap();
        details
            .iter()
            .map(|d| (text(&d["field"]), text(&d["message"])))
            .collect()
    }
}

/// Calls with a credential and, when there is a body, as JSON; `headers` come on top and may
/// replace those.
pub async fn call(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let body = body.into();
    let mut request = HttpRequest::builder()
        .method(method)
        .uri(path)
        .body(Full::new(body.clone()))
        .unwrap();
    request
        .headers_mut()
        .insert("authorization", "Bearer key".parse().unwrap());
    if !body.is_empty() {
        request
            .headers_mut()
            .insert("content-type", "application/json".parse().unwrap());
    }
    for (name, value) in headers {
        request.headers_mut().insert(
            http::HeaderName::try_from(*name).unwrap(),
            value.parse().unwrap(),
        );
    }
    send(request).await
}

pub async fn get(path: &str) -> Answer {
    call("GET", path, &[], "").await
}

pub async fn send(request: HttpRequest<Full<Bytes>>) -> Answer {
    send_to(&gateway(), request).await
}

pub async fn send_to<S, B>(gateway: &Gateway<S>, request: HttpRequest<B>) -> Answer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<kanat_net::body::BoxError>,
    S: tower::Service<
            HttpRequest<tonic::body::Body>,
            Response = http::Response<tonic::body::Body>,
            Error = std::convert::Infallible,
            Future: Send,
        > + Clone
        + Send
        + 'static,
{
    let (parts, body) = gateway.handle(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

macro_rules! service {
    ($service:ident {
        $($method:ident($request:ty) -> $response:ty = $body:expr;)*
        $(@ $more:item)*
    }) => {
        #[tonic::async_trait]
        impl $service for Echo {
            $(async fn $method(
                &self,
                request: Request<$request>,
            ) -> Result<Response<$response>, Status> {
                let answer: fn(Request<$request>) -> Result<$response, Status> = $body;
                answer(request).map(Response::new)
            })*
            $($more)*
        }
    };
}

fn unheard<T, U>(_: Request<T>) -> Result<U, Status> {
    Err(Status::unimplemented("this service cannot do that"))
}

service!(LookupTableService {
    create_lookup_table(CreateLookupTableRequest) -> LookupTable = |request| {
        let request = request.into_inner();
        match request.name.as_str() {
            "" => Err(Status::with_error_details(
                tonic::Code::InvalidArgument,
                "name: must not be empty",
                ErrorDetails::with_bad_request_violation("name", "must not be empty"),
            )),
            "inside" => Err(Status::internal("password=hunter2 at /etc/kanat")),
            "busy" => Err(Status::with_error_details(
                tonic::Code::ResourceExhausted,
                "too many tables",
                ErrorDetails::with_retry_info(Some(Duration::from_millis(1500))),
            )),
            name => match name
                .strip_prefix("code ")
                .map(|n| n.parse::<i32>().unwrap())
            {
                Some(code) => Err(Status::new(tonic::Code::from_i32(code), "as asked")),
                None => Ok(LookupTable {
                    id: "lt_1".to_owned(),
                    name: name.to_owned(),
                    description: request.description.unwrap_or("none".to_owned()),
                    version: 1,
                    created_at: "2026-01-31T08:15:00.123Z".to_owned(),
                    ..LookupTable::default()
                }),
            },
        }
    };
    list_lookup_tables(ListLookupTablesRequest) -> ListLookupTablesResponse = |request| {
        let request = request.into_inner();
        let pagination = Pagination {
            total: 0,
            limit: request.limit.unwrap_or(50),
            offset: request.offset.unwrap_or_default(),
            next_cursor: request.search,
            total_is_least: None,
        };
        Ok(ListLookupTablesResponse {
            data: Vec::new(),
            pagination: Some(pagination),
        })
    };
    get_lookup_table(GetLookupTableRequest) -> LookupTable = |request| {
        let text = |v: tonic::metadata::KeyAndValueRef<'_>| match v {
            tonic::metadata::KeyAndValueRef::Ascii(key, value) => LookupEntry {
                key: key.to_string(),
                value: Some(value.to_str().unwrap_or_default().to_owned()),
            },
            tonic::metadata::KeyAndValueRef::Binary(..) => LookupEntry::default(),
        };
        let entries = request.metadata().iter().map(text).collect();
        let request = request.into_inner();
        let etag = "tag-7".to_owned();
        Ok(LookupTable {
            id: request.id,
            name: request.search.unwrap_or_default(),
            entries,
            etag,
            ..Default::default()
        })
    };
    delete_lookup_table(DeleteLookupTableRequest) -> DeleteLookupTableResponse = |_| {
        Ok(DeleteLookupTableResponse {})
    };
    upsert_lookup_entries(UpsertLookupEntriesRequest) -> LookupTableChange = |request| {
        let request = request.into_inner();
        Ok(LookupTableChange {
            id: request.id,
            entries_count: request.entries.len() as u32,
            version: 2,
        })
    };
    set_lookup_entry(SetLookupEntryRequest) -> LookupTableChange = |request| {
        let request = request.into_inner();
        Ok(LookupTableChange {
            id: format!(
                "{}/{}={}",
                request.id,
                request.key,
                request.value.unwrap_or_default()
            ),
            ..Default::default()
        })
    };
    delete_lookup_entry(DeleteLookupEntryRequest) -> DeleteLookupEntryResponse = |request| {
        Err(Status::not_found(format!(
            "no key {}",
            request.into_inner().key
        )))
    };
    import_lookup_table(ImportLookupTableRequest) -> LookupTableChange = |request| {
        let request = request.into_inner();
        let lines = request.csv.lines().count() as u32;
        Ok(LookupTableChange {
            id: request.csv,
            entries_count: lines,
            version: 1,
        })
    };
    export_lookup_table(ExportLookupTableRequest) -> ExportLookupTableResponse = |_| {
        Ok(ExportLookupTableResponse {
            csv: "key,value\nde,Germany\n".to_owned(),
        })
    };
});

service!(BatchJobService {
    list_batch_jobs(ListBatchJobsRequest) -> ListBatchJobsResponse = unheard;
    get_batch_job(GetBatchJobRequest) -> BatchJob = unheard;
    list_batch_job_errors(ListBatchJobErrorsRequest) -> ListBatchJobErrorsResponse = unheard;
    retry_batch_job(RetryBatchJobRequest) -> BatchJob = unheard;
    cancel_batch_job(CancelBatchJobRequest) -> BatchJob = unheard;
    // Tells in its answer what the messages of the stream said.
    @ async fn create_batch_job(
        &self,
        request: Request<tonic::Streaming<CreateBatchJobRequest>>,
    ) -> Result<Response<BatchJob>, Status> {
        let mut stream = request.into_inner();
        let (mut flow_id, mut concurrency, mut records, mut messages) =
            (String::new(), 0, Vec::new(), 0);
        while let Some(message) = stream.message().await? {
            messages += 1;
            flow_id = message.flow_id;
            concurrency = message.concurrency.unwrap_or_default();
            records.extend(message.records.into_iter().map(|record| record.text));
            if records.last().is_some_and(|record| record == "\"stop\"") {
                return Err(Status::not_found("that is enough"));
            }
        }
        let id = records.join(" ");
        Ok(Response::new(BatchJob {
            id,
            flow_id,
            concurrency,
            total: messages,
            ..BatchJob::default()
        }))
    }
});

service!(FlowService {
    create_flow(CreateFlowRequest) -> Flow = |request| {
        let request = request.into_inner();
        let details = ErrorDetails::with_bad_request_violation("yaml_config", "wrong");
        match request.yaml_config.as_str() {
            "" => Err(Status::with_error_details(
                tonic::Code::InvalidArgument,
                "yaml_config: wrong",
                details,
            )),
            yaml => Ok(Flow {
                yaml_config: yaml.to_owned(),
                ..Flow::default()
            }),
        }
    };
    list_flows(ListFlowsRequest) -> ListFlowsResponse = unheard;
    get_flow(GetFlowRequest) -> Flow = |request| {
        Ok(Flow {
            id: request.into_inner().id,
            ..Flow::default()
        })
    };
    update_flow(UpdateFlowRequest) -> Flow = |request| {
        let request = request.into_inner();
        let given = [
            request.name.is_some(),
            request.description.is_some(),
            request.yaml_config.is_some(),
        ];
        Ok(Flow {
            id: request.id,
            change_summary: format!("{given:?}"),
            ..Flow::default()
        })
    };
    delete_flow(DeleteFlowRequest) -> DeleteFlowResponse = unheard;
    deploy_flow(DeployFlowRequest) -> Flow = |request| {
        Ok(Flow {
            id: request.into_inner().id,
            rejected: vec![Rejection::default()],
            deployed_version: Some(7),
            ..Flow::default()
        })
    };
    pause_flow(PauseFlowRequest) -> Flow = unheard;
    resume_flow(ResumeFlowRequest) -> Flow = unheard;
    test_flow(TestFlowRequest) -> TestFlowResponse = |request| {
        Ok(TestFlowResponse {
            output: request.into_inner().sample_data,
            matched: true,
            ..Default::default()
        })
    };
    run_flow(RunFlowRequest) -> RunFlowResponse = unheard;
    validate_flow(ValidateFlowRequest) -> ValidateFlowResponse = unheard;
    list_flow_versions(ListFlowVersionsRequest) -> ListFlowVersionsResponse = unheard;
    get_flow_version(GetFlowVersionRequest) -> FlowVersion = |request| {
        let request = request.into_inner();
        Ok(FlowVersion {
            flow_id: request.id,
            version: request.version,
            ..FlowVersion::default()
        })
    };
    diff_flow_versions(DiffFlowVersionsRequest) -> FlowDiff = unheard;
    rollback_flow(RollbackFlowRequest) -> Flow = unheard;
    get_flow_plan(GetFlowPlanRequest) -> FlowGraph = |request| {
        let text = request.into_inner().format.map(|_| "graph LR".to_owned());
        Ok(FlowGraph {
            text,
            ..FlowGraph::default()
        })
    };
    rotate_webhook_token(RotateWebhookTokenRequest) -> Flow = unheard;
});

service!(MessageService {
    list_messages(ListMessagesRequest) -> ListMessagesResponse = unheard;
    get_message(GetMessageRequest) -> Message = |request| {
        let payload = Json {
            text: "{\n \"b\": 1.10,\n \"a\": [ 9007199254740993, 1e400 ]\n}".to_owned(),
        };
        Ok(Message {
            id: request.into_inner().id,
            payload: Some(payload),
            ..Message::default()
        })
    };
    retry_message(RetryMessageRequest) -> RetryMessageResponse = |request| {
        Ok(RetryMessageResponse {
            message_id: request.into_inner().id,
        })
    };
    replay_message(ReplayMessageRequest) -> ReplayMessageResponse = unheard;
    discard_message(DiscardMessageRequest) -> Message = unheard;
    retry_messages(BulkMessagesRequest) -> BulkMessagesResponse = |request| {
        let ids = request.into_inner().ids;
        Ok(BulkMessagesResponse {
            count: ids.len() as u32,
            message_ids: ids,
        })
    };
    replay_messages(BulkMessagesRequest) -> BulkMessagesResponse = unheard;
    @ type StreamMessagesStream =
        Pin<Box<dyn Stream<Item = Result<StreamMessagesResponse, Status>> + Send>>;
    @ async fn stream_messages(
        &self,
        request: Request<StreamMessagesRequest>,
    ) -> Result<Response<Self::StreamMessagesStream>, Status> {
        let request = request.into_inner();
        if request.status.as_deref() == Some("unknown") {
            return Err(Status::invalid_argument("status: unknown"));
        }
        let after: u64 = request
            .last_event_id
            .unwrap_or_default()
            .parse()
            .unwrap_or_default();
        let event = |id: u64| {
            let payload = Some(Json {
                text: "{\n\"line\": \"a\\nb\"\n}".to_owned(),
            });
            let message = Message {
                id: format!("msg_{id}"),
                payload,
                ..Message::default()
            };
            Ok(StreamMessagesResponse {
                id: id.to_string(),
                event: "message".to_owned(),
                message: Some(message),
                lagged: None,
            })
        };
        let events = futures::stream::iter((after + 1..=3).map(event).collect::<Vec<_>>());
        match request.flow_id.as_deref() {
            Some("breaks") => {
                let broken =
                    futures::stream::iter([Err(Status::internal("disk /dev/sda1 on fire"))]);
                Ok(Response::new(Box::pin(futures::StreamExt::chain(
                    events, broken,
                ))))
            }
            Some("lags") => {
                let lagged = Some(StreamLag {
                    resume_from: "3".to_owned(),
                });
                let last = StreamMessagesResponse {
                    id: "3".to_owned(),
                    event: "lagged".to_owned(),
                    message: None,
                    lagged,
                };
                Ok(Response::new(Box::pin(futures::StreamExt::chain(
                    events,
                    futures::stream::iter([Ok(last)]),
                ))))
            }
            Some("waits") => Ok(Response::new(Box::pin(futures::StreamExt::chain(
                events,
                futures::stream::pending(),
            )))),
            _ => Ok(Response::new(Box::pin(events))),
        }
    }
});
