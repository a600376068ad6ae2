//! P12: one call of the API as JSON over HTTP, beside the same call by gRPC.

use std::time::{Duration, Instant};

use anyhow::Result;
use http::Method;
use kanat_proto::v1::GetFlowRequest;
use kanat_proto::v1::flow_service_client::FlowServiceClient;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

use crate::figures::{median, plain};
use crate::kanat::KEY;
use crate::load::{Ack, Call, Outcome, nanos};
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Report};
use crate::subject::{Run, Subject};

/// Callers of each kind.
const CALLERS: usize = 16;

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let folder = plan.scratch()?;
    let kanat = plan.start(folder.path()).run().await?;
    let flow = kanat.set_up(9).await?.id;
    let call = Call {
        method: Method::GET,
        path: format!("/api/v1/flows/{flow}"),
        bearer: Some(KEY.to_owned()),
        body: |_, _| String::new(),
        status: 200,
    };
    let base = format!("http://{}", kanat.server.address);
    let subject = Subject::of(kanat, call, None);
    let mut json = Vec::new();
    let mut grpc = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("the gateway, round {round} of {}", plan.rounds);
        json.push(subject.closed(CALLERS, plan.length).await?);
        call_grpc(&base, &flow, plan.length / 10).await?;
        grpc.push(
            subject
                .measure(call_grpc(&base, &flow, plan.length))
                .await?,
        );
    }
    subject.server.stop().await?;
    let figure = |runs: &[Run], figure: fn(&Run) -> f64| median(runs.iter().map(figure));
    let [json_rate, grpc_rate] = [&json, &grpc].map(|runs| figure(runs, |run| run.per_second));
    let [json_cpu, grpc_cpu] = [&json, &grpc].map(|runs| plain(figure(runs, |run| run.cpu_us)));
    report.add(Finding::new(
        Measure::P12,
        format!("`GET /api/v1/flows/{{id}}` a second, {CALLERS} callers, of the same by gRPC"),
        Goal::AtLeast(0.6),
        json_rate / grpc_rate,
        "",
        format!(
            "answered: JSON {} /s at {json_cpu} us, gRPC {} /s at {grpc_cpu} us of CPU",
            plain(json_rate),
            plain(grpc_rate)
        ),
    ));
    Ok(())
}

/// Calls over one connection for each caller.
async fn call_grpc(base: &str, flow: &str, length: Duration) -> Result<Outcome> {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let channel = Endpoint::from_shared(base.to_owned())?.connect().await?;
        let flow = flow.to_owned();
        callers.spawn(async move {
            let mut client = FlowServiceClient::new(channel);
            let mut acked = Vec::new();
            while begun.elapsed() < length {
                let sent = Instant::now();
                let mut request = tonic::Request::new(GetFlowRequest { id: flow.clone() });
                let credential = format!("Bearer {KEY}").parse()?;
                request.metadata_mut().insert("authorization", credential);
                client.get_flow(request).await?;
                acked.push(Ack {
                    number: 0,
                    nanos: nanos(sent.elapsed()),
                });
            }
            Ok(acked)
        });
    }
    Outcome::gather(callers, begun).await
}
