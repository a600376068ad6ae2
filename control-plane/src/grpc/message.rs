//! The methods of messages.

pub(super) mod convert;

pub use convert::trace_entry;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kanat_model::id::MessageId;
use kanat_proto::v1 as wire;
use tonic::{Request, Response, Status};

use super::{header, status};
use crate::app::message;

service! {
    message_service_server::MessageService
    impl {
        type StreamMessagesStream =
            BoxStream<'static, Result<wire::StreamMessagesResponse, Status>>;

        async fn stream_messages(
            &self,
            request: Request<wire::StreamMessagesRequest>,
        ) -> Result<Response<Self::StreamMessagesStream>, Status> {
            let last_event_id = header(&request, "last-event-id").filter(|id| !id.is_empty());
            let last_event_id = last_event_id.map(str::to_owned);
            let (call, request) = self.accept(request)?;
            let follow = convert::follow(request, last_event_id);
            let events = message::follow(&call, follow).await.map_err(status::of)?;
            let stopping = self.app.tasks.stopping().clone();
            let events = events.map_ok(convert::event).map_err(status::of);
            Ok(Response::new(
                events.take_until(stopping.cancelled_owned()).boxed(),
            ))
        }
    };

    list_messages(call, request: ListMessagesRequest) -> ListMessagesResponse {
        let (query, part) = convert::list(request)?;
        let found = message::list(&call, query, &part).await;
        found.map(|found| convert::page(found, part.page))
    }

    get_message(call, request: GetMessageRequest) -> Message {
        let found = message::get(&call, &request.id.into()).await?;
        Ok(convert::traced(found))
    }

    retry_message(call, request: RetryMessageRequest) -> RetryMessageResponse {
        let id = MessageId::from(request.id);
        message::retry(&call, &id).await?;
        Ok(wire::RetryMessageResponse { message_id: id.into_string() })
    }

    replay_message(call, request: ReplayMessageRequest) -> ReplayMessageResponse {
        let id = MessageId::from(request.id);
        let replay = message::replay(&call, &id).await?;
        Ok(wire::ReplayMessageResponse {
            message_id: replay.into_string(),
            replay_of: id.into_string(),
        })
    }

    discard_message(call, request: DiscardMessageRequest) -> Message {
        let found = message::discard(&call, &request.id.into()).await?;
        Ok(convert::traced(found))
    }

    retry_messages(call, request: BulkMessagesRequest) -> BulkMessagesResponse {
        message::retry_all(&call, convert::bulk(request)).await.map(convert::taken_up)
    }

    replay_messages(call, request: BulkMessagesRequest) -> BulkMessagesResponse {
        message::replay_all(&call, convert::bulk(request)).await.map(convert::taken_up)
    }
}

#[cfg(test)]
mod tests;
