//! The methods of schedules.

mod convert;

use kanat_model::id::{FlowId, MessageId};
use kanat_proto::v1 as wire;

use super::page;
use crate::app::schedule;

service! {
    schedule_service_server::ScheduleService;

    list_schedules(call, request: ListSchedulesRequest) -> ListSchedulesResponse {
        let flow = request.flow_id.map(FlowId::from);
        let page = page::asked(request.limit, request.offset)?;
        let found = schedule::list(&call, flow.as_ref(), page).await?;
        Ok(page::answer(found, convert::schedule))
    }

    get_schedule(call, request: GetScheduleRequest) -> Schedule {
        schedule::get(&call, &request.id.into()).await.map(convert::details)
    }

    update_schedule(call, request: UpdateScheduleRequest) -> Schedule {
        let (id, update) = convert::update(request);
        schedule::update(&call, &id, update).await.map(convert::details)
    }

    trigger_schedule(call, request: TriggerScheduleRequest) -> TriggerScheduleResponse {
        let message = schedule::trigger(&call, &request.id.into()).await;
        let message_id = message.map(MessageId::into_string)?;
        Ok(wire::TriggerScheduleResponse { message_id })
    }

    preview_schedule(_call, request: PreviewScheduleRequest) -> PreviewScheduleResponse {
        let times = schedule::preview(&convert::preview(request))?;
        Ok(wire::PreviewScheduleResponse { times: convert::texts(&times) })
    }
}
