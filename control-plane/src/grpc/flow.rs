//! The methods of flows.

mod convert;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_proto::v1 as wire;

use super::page;
use crate::app::flow;

service! {
    flow_service_server::FlowService;

    create_flow(call, request: CreateFlowRequest) -> Flow {
        convert::details(&call, flow::create(&call, convert::new(request)).await?)
    }

    list_flows(call, request: ListFlowsRequest) -> ListFlowsResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = flow::list(&call, &convert::filter(request)?, page).await?;
        let polls = flow::polls(&call.app, &found.items.iter().collect::<Vec<_>>()).await;
        page::try_answer(found, |flow| convert::listed(&call, flow, &polls))
    }

    get_flow(call, request: GetFlowRequest) -> Flow {
        let found = flow::get(&call, &request.id.into()).await?;
        let standing = flow::polls(&call.app, &[&found.flow]).await.remove(&found.flow.id);
        let last_error = standing.as_ref().and_then(convert::last_error);
        let status = found.flow.status;
        let poll = standing.map(|standing| convert::poll(standing, status, Timestamp::now()));
        Ok(wire::Flow {
            poll,
            last_error,
            ..convert::details(&call, found)?
        })
    }

    update_flow(call, request: UpdateFlowRequest) -> Flow {
        let (id, update) = convert::update(request)?;
        let updated = flow::update(&call, &id, update).await?;
        updated.try_map(|flow| convert::details(&call, flow))
    }

    delete_flow(call, request: DeleteFlowRequest) -> DeleteFlowResponse {
        let deleted = flow::delete(&call, &request.id.into()).await?;
        Ok(deleted.map(|()| wire::DeleteFlowResponse {}))
    }

    deploy_flow(call, request: DeployFlowRequest) -> Flow {
        let deploy = flow::Deploy {
            summary: request.change_summary,
            keep_paused: request.keep_paused,
        };
        let deployed = flow::deploy(&call, &request.id.into(), deploy).await?;
        deployed.try_map(|deployed| convert::deployed(&call, deployed))
    }

    pause_flow(call, request: PauseFlowRequest) -> Flow {
        let paused = flow::pause(&call, &request.id.into()).await?;
        paused.try_map(|flow| convert::flow(&call, flow))
    }

    resume_flow(call, request: ResumeFlowRequest) -> Flow {
        let resumed = flow::resume(&call, &request.id.into()).await?;
        resumed.try_map(|flow| convert::flow(&call, flow))
    }

    test_flow(call, request: TestFlowRequest) -> TestFlowResponse {
        let id = FlowId::from(request.id.as_str());
        flow::test(&call, &id, convert::sample(request)).await.map(convert::tested)
    }

    run_flow(call, request: RunFlowRequest) -> RunFlowResponse {
        let payload = request.payload.map(|json| json.text);
        flow::run(&call, &request.id.into(), payload).await.map(convert::started)
    }

    validate_flow(call, request: ValidateFlowRequest) -> ValidateFlowResponse {
        let found = flow::validate(&call, &request.yaml_config).await?;
        Ok(convert::validated(&request.yaml_config, found))
    }

    list_flow_versions(call, request: ListFlowVersionsRequest) -> ListFlowVersionsResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = flow::list_versions(&call, &request.id.into(), page).await?;
        page::try_answer(found, |version| convert::version(&call.app, version))
    }

    get_flow_version(call, request: GetFlowVersionRequest) -> FlowVersion {
        let found = flow::get_version(&call, &request.id.into(), request.version).await?;
        convert::version_alone(&call.app, found)
    }

    diff_flow_versions(call, request: DiffFlowVersionsRequest) -> FlowDiff {
        let (from, to) = convert::editions(&request)?;
        let changes = flow::diff(&call, &request.id.into(), from, to).await?;
        Ok(convert::diff(from, to, changes))
    }

    rollback_flow(call, request: RollbackFlowRequest) -> Flow {
        let rollback = flow::Rollback {
            version: request.version_number,
            discard_draft: request.discard_draft,
        };
        let deployed = flow::rollback(&call, &request.id.into(), rollback).await?;
        deployed.try_map(|deployed| convert::deployed(&call, deployed))
    }

    get_flow_plan(call, request: GetFlowPlanRequest) -> FlowGraph {
        let edition = request.draft.then_some(flow::Edition::Draft);
        let (graph, variables) = flow::plan_graph(&call, &request.id.into(), edition).await?;
        convert::graph(graph, variables, request.format.as_deref())
    }

    rotate_webhook_token(call, request: RotateWebhookTokenRequest) -> Flow {
        let grace = request.grace_period.as_deref();
        let rotated = flow::rotate_webhook_token(&call, &request.id.into(), grace).await?;
        rotated.try_map(|flow| convert::flow(&call, flow))
    }
}
