//! The methods of flows.

mod convert;

use kanat_model::id::FlowId;
use kanat_proto::v1 as wire;
use kanat_proto::v1::flow_service_server::FlowService;
use tonic::{Request, Response, Status};

use super::{
    Api, caller, if_match, page, respond, respond_changed, status, trace_context,
    try_respond_changed,
};
use crate::app::flow;

#[tonic::async_trait]
impl FlowService for Api {
    async fn create_flow(
        &self,
        request: Request<wire::CreateFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let made = flow::create(&self.app, &caller, convert::new(request.into_inner())).await;
        respond(made.and_then(|made| convert::details(&self.app, &caller, made)))
    }

    async fn list_flows(
        &self,
        request: Request<wire::ListFlowsRequest>,
    ) -> Result<Response<wire::ListFlowsResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let page = page::asked(request.limit, request.offset)?;
        let filter = convert::filter(request).map_err(status::of)?;
        let found = flow::list(&self.app, &caller, &filter, page)
            .await
            .map_err(status::of)?;
        let polls = flow::polls(&self.app, &found.items.iter().collect::<Vec<_>>()).await;
        let (data, pagination) = page::try_convert(Ok(found), |flow| {
            convert::listed(&self.app, &caller, flow, &polls)
        })?;
        Ok(Response::new(wire::ListFlowsResponse { data, pagination }))
    }

    async fn get_flow(
        &self,
        request: Request<wire::GetFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = flow::get(&self.app, &caller, &id)
            .await
            .map_err(status::of)?;
        let standing = flow::polls(&self.app, &[&found.flow])
            .await
            .remove(&found.flow.id);
        let last_error = standing.as_ref().and_then(convert::last_error);
        let paused = found.flow.status == kanat_model::flow::Status::Paused;
        let poll = standing.map(|standing| convert::poll(standing, paused));
        let shown = convert::details(&self.app, &caller, found);
        respond(shown.map(|shown| wire::Flow {
            poll,
            last_error,
            ..shown
        }))
    }

    async fn update_flow(
        &self,
        request: Request<wire::UpdateFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, update) = convert::update(request.into_inner()).map_err(status::of)?;
        let updated = flow::update(&self.app, &caller, &id, update, &if_match).await;
        try_respond_changed(updated, |flow| convert::details(&self.app, &caller, flow))
    }

    async fn delete_flow(
        &self,
        request: Request<wire::DeleteFlowRequest>,
    ) -> Result<Response<wire::DeleteFlowResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let deleted = flow::delete(&self.app, &caller, &id, &if_match).await;
        respond_changed(deleted, |()| wire::DeleteFlowResponse {})
    }

    async fn deploy_flow(
        &self,
        request: Request<wire::DeployFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::DeployFlowRequest {
            id,
            change_summary: summary,
            keep_paused,
        } = request.into_inner();
        let deploy = flow::Deploy {
            summary,
            keep_paused,
        };
        let deployed = flow::deploy(&self.app, &caller, &id.into(), deploy, &if_match).await;
        try_respond_changed(deployed, |deployed| {
            convert::deployed(&self.app, &caller, deployed)
        })
    }

    async fn pause_flow(
        &self,
        request: Request<wire::PauseFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let paused = flow::pause(&self.app, &caller, &id, &if_match).await;
        try_respond_changed(paused, |flow| convert::flow(&self.app, &caller, flow))
    }

    async fn resume_flow(
        &self,
        request: Request<wire::ResumeFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let resumed = flow::resume(&self.app, &caller, &id, &if_match).await;
        try_respond_changed(resumed, |flow| convert::flow(&self.app, &caller, flow))
    }

    async fn test_flow(
        &self,
        request: Request<wire::TestFlowRequest>,
    ) -> Result<Response<wire::TestFlowResponse>, Status> {
        let caller = caller(&request)?;
        let mut request = request.into_inner();
        let id = FlowId::from(std::mem::take(&mut request.id));
        let sample = convert::sample(request).map_err(status::of)?;
        let tested = flow::test(&self.app, &caller, &id, sample).await;
        respond(tested.map(convert::tested))
    }

    async fn run_flow(
        &self,
        request: Request<wire::RunFlowRequest>,
    ) -> Result<Response<wire::RunFlowResponse>, Status> {
        let caller = caller(&request)?;
        let traceparent = trace_context(&request);
        let wire::RunFlowRequest { id, payload } = request.into_inner();
        let payload = payload.map(|json| json.text);
        let started = flow::run(&self.app, &caller, &id.into(), payload, traceparent).await;
        respond(started.map(convert::started))
    }

    async fn validate_flow(
        &self,
        request: Request<wire::ValidateFlowRequest>,
    ) -> Result<Response<wire::ValidateFlowResponse>, Status> {
        let caller = caller(&request)?;
        let yaml_config = request.into_inner().yaml_config;
        let found = flow::validate(&self.app, &caller, &yaml_config).await;
        respond(found.map(convert::validated))
    }

    async fn list_flow_versions(
        &self,
        request: Request<wire::ListFlowVersionsRequest>,
    ) -> Result<Response<wire::ListFlowVersionsResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListFlowVersionsRequest { id, limit, offset } = request.into_inner();
        let found =
            flow::list_versions(&self.app, &caller, &id.into(), page::asked(limit, offset)?).await;
        let (data, pagination) =
            page::try_convert(found, |version| convert::version(&self.app, version))?;
        Ok(Response::new(wire::ListFlowVersionsResponse {
            data,
            pagination,
        }))
    }

    async fn get_flow_version(
        &self,
        request: Request<wire::GetFlowVersionRequest>,
    ) -> Result<Response<wire::FlowVersion>, Status> {
        let caller = caller(&request)?;
        let wire::GetFlowVersionRequest { id, version } = request.into_inner();
        let found = flow::get_version(&self.app, &caller, &id.into(), version).await;
        respond(found.and_then(|found| convert::version(&self.app, found)))
    }

    async fn diff_flow_versions(
        &self,
        request: Request<wire::DiffFlowVersionsRequest>,
    ) -> Result<Response<wire::FlowDiff>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let (from, to) = convert::editions(&request).map_err(status::of)?;
        let changes = flow::diff(&self.app, &caller, &request.id.into(), from, to).await;
        respond(changes.map(|changes| convert::diff(from, to, changes)))
    }

    async fn rollback_flow(
        &self,
        request: Request<wire::RollbackFlowRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::RollbackFlowRequest {
            id,
            version_number: version,
            discard_draft,
        } = request.into_inner();
        let rollback = flow::Rollback {
            version,
            discard_draft,
        };
        let deployed = flow::rollback(&self.app, &caller, &id.into(), rollback, &if_match).await;
        try_respond_changed(deployed, |deployed| {
            convert::deployed(&self.app, &caller, deployed)
        })
    }

    async fn get_flow_plan(
        &self,
        request: Request<wire::GetFlowPlanRequest>,
    ) -> Result<Response<wire::FlowGraph>, Status> {
        let caller = caller(&request)?;
        let wire::GetFlowPlanRequest { id, format, draft } = request.into_inner();
        let edition = draft.then_some(flow::Edition::Draft);
        let graph = flow::plan_graph(&self.app, &caller, &id.into(), edition).await;
        respond(graph.and_then(|graph| convert::graph(graph, format.as_deref())))
    }

    async fn rotate_webhook_token(
        &self,
        request: Request<wire::RotateWebhookTokenRequest>,
    ) -> Result<Response<wire::Flow>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::RotateWebhookTokenRequest { id, grace_period } = request.into_inner();
        let id = FlowId::from(id);
        let rotated =
            flow::rotate_webhook_token(&self.app, &caller, &id, grace_period.as_deref(), &if_match)
                .await;
        try_respond_changed(rotated, |flow| convert::flow(&self.app, &caller, flow))
    }
}
