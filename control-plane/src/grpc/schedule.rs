//! The methods of schedules.

mod convert;

use kanat_model::id::FlowId;
use kanat_proto::v1 as wire;
use kanat_proto::v1::schedule_service_server::ScheduleService;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, trace_context};
use crate::app::schedule;

#[tonic::async_trait]
impl ScheduleService for Api {
    async fn list_schedules(
        &self,
        request: Request<wire::ListSchedulesRequest>,
    ) -> Result<Response<wire::ListSchedulesResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListSchedulesRequest {
            flow_id,
            limit,
            offset,
        } = request.into_inner();
        let flow = flow_id.map(FlowId::from);
        let found = schedule::list(
            &self.app,
            &caller,
            flow.as_ref(),
            page::asked(limit, offset)?,
        )
        .await;
        let (data, pagination) = page::convert(found, convert::schedule)?;
        Ok(Response::new(wire::ListSchedulesResponse {
            data,
            pagination,
        }))
    }

    async fn get_schedule(
        &self,
        request: Request<wire::GetScheduleRequest>,
    ) -> Result<Response<wire::Schedule>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = schedule::get(&self.app, &caller, &id).await;
        respond(found.map(convert::details))
    }

    async fn update_schedule(
        &self,
        request: Request<wire::UpdateScheduleRequest>,
    ) -> Result<Response<wire::Schedule>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, update) = convert::update(request.into_inner());
        let updated = schedule::update(&self.app, &caller, &id, update, &if_match).await;
        respond(updated.map(convert::details))
    }

    async fn trigger_schedule(
        &self,
        request: Request<wire::TriggerScheduleRequest>,
    ) -> Result<Response<wire::TriggerScheduleResponse>, Status> {
        let caller = caller(&request)?;
        let traceparent = trace_context(&request);
        let id = request.into_inner().id.into();
        let message = schedule::trigger(&self.app, &caller, &id, traceparent).await;
        respond(message.map(|message| wire::TriggerScheduleResponse {
            message_id: message.into_string(),
        }))
    }

    async fn preview_schedule(
        &self,
        request: Request<wire::PreviewScheduleRequest>,
    ) -> Result<Response<wire::PreviewScheduleResponse>, Status> {
        let preview = convert::preview(request.into_inner());
        let times = schedule::preview(&preview);
        respond(times.map(|times| wire::PreviewScheduleResponse {
            times: convert::texts(&times),
        }))
    }
}
