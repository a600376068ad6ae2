//! The methods of messages.

mod convert;

pub use convert::trace_entry;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kanat_model::id::MessageId;
use kanat_proto::v1 as wire;
use kanat_proto::v1::message_service_server::MessageService;
use tonic::{Request, Response, Status};

use super::{Api, caller, respond, status, trace_context};
use crate::app::message;

#[tonic::async_trait]
impl MessageService for Api {
    type StreamMessagesStream = BoxStream<'static, Result<wire::StreamMessagesResponse, Status>>;

    async fn list_messages(
        &self,
        request: Request<wire::ListMessagesRequest>,
    ) -> Result<Response<wire::ListMessagesResponse>, Status> {
        let caller = caller(&request)?;
        let (query, part) = convert::list(request.into_inner())?;
        let found = message::list(&self.app, &caller, query, &part).await;
        respond(found.map(|found| convert::page(found, part.page)))
    }

    async fn get_message(
        &self,
        request: Request<wire::GetMessageRequest>,
    ) -> Result<Response<wire::Message>, Status> {
        let caller = caller(&request)?;
        let id = MessageId::from(request.into_inner().id);
        let found = message::get(&self.app, &caller, &id).await;
        respond(found.map(|(found, trace)| convert::traced(found, trace)))
    }

    async fn retry_message(
        &self,
        request: Request<wire::RetryMessageRequest>,
    ) -> Result<Response<wire::RetryMessageResponse>, Status> {
        let caller = caller(&request)?;
        let id = MessageId::from(request.into_inner().id);
        let retried = message::retry(&self.app, &caller, &id).await;
        respond(retried.map(|()| wire::RetryMessageResponse {
            message_id: id.into_string(),
        }))
    }

    async fn replay_message(
        &self,
        request: Request<wire::ReplayMessageRequest>,
    ) -> Result<Response<wire::ReplayMessageResponse>, Status> {
        let caller = caller(&request)?;
        let traceparent = trace_context(&request);
        let id = MessageId::from(request.into_inner().id);
        let replay = message::replay(&self.app, &caller, &id, traceparent).await;
        respond(replay.map(|replay| wire::ReplayMessageResponse {
            message_id: replay.into_string(),
            replay_of: id.into_string(),
        }))
    }

    async fn discard_message(
        &self,
        request: Request<wire::DiscardMessageRequest>,
    ) -> Result<Response<wire::Message>, Status> {
        let caller = caller(&request)?;
        let id = MessageId::from(request.into_inner().id);
        let found = message::discard(&self.app, &caller, &id).await;
        respond(found.map(|(found, trace)| convert::traced(found, trace)))
    }

    async fn retry_messages(
        &self,
        request: Request<wire::BulkMessagesRequest>,
    ) -> Result<Response<wire::BulkMessagesResponse>, Status> {
        let caller = caller(&request)?;
        let query = convert::bulk(request.into_inner());
        let taken_up = message::retry_all(&self.app, &caller, query).await;
        respond(taken_up.map(convert::taken_up))
    }

    async fn replay_messages(
        &self,
        request: Request<wire::BulkMessagesRequest>,
    ) -> Result<Response<wire::BulkMessagesResponse>, Status> {
        let caller = caller(&request)?;
        let query = convert::bulk(request.into_inner());
        let taken_up = message::replay_all(&self.app, &caller, query).await;
        respond(taken_up.map(convert::taken_up))
    }

    async fn stream_messages(
        &self,
        request: Request<wire::StreamMessagesRequest>,
    ) -> Result<Response<Self::StreamMessagesStream>, Status> {
        let caller = caller(&request)?;
        let last_event_id = header(&request, "last-event-id").filter(|id| !id.is_empty());
        let follow = convert::follow(request.into_inner(), last_event_id);
        let events = message::follow(&self.app, &caller, follow)
            .await
            .map_err(status::of)?;
        let stopping = self.app.tasks.stopping().clone();
        let events = events.map_ok(convert::event).map_err(status::of);
        Ok(Response::new(
            events.take_until(stopping.cancelled_owned()).boxed(),
        ))
    }
}

fn header<T>(request: &Request<T>, name: &str) -> Option<String> {
    request
        .metadata()
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
