//! One call of the API as JSON over HTTP, beside the same call by gRPC.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http::Method;
use kanat_proto::v1::GetFlowRequest;
use kanat_proto::v1::flow_service_client::FlowServiceClient;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

use crate::figures::{median, plain};
use crate::finding::{Finding, Goal};
use crate::kanat::{KEY, Start};
use crate::load::{self, Call};
use crate::plan::Plan;
use crate::process::Server;
use crate::target::Target;

/// Callers of each kind.
const CALLERS: usize = 16;

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let folder = plan.scratch()?;
    let target = Target::start().await?;
    let kanat = Start {
        binary: &plan.kanat,
        folder: folder.path(),
        database: None,
    }
    .run()
    .await?;
    let flow = kanat.set_up(target.address.port()).await?.id;
    let call = Call {
        method: Method::GET,
        path: format!("/api/v1/flows/{flow}"),
        bearer: Some(KEY.to_owned()),
        body: |_, _| String::new(),
        status: 200,
    };
    let mut json = Vec::new();
    let mut grpc = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("the gateway, round {round} of {}", plan.rounds);
        let before = kanat.server.usage()?.cpu;
        let outcome = load::closed(
            kanat.server.address,
            &call,
            CALLERS,
            plan.length,
            Instant::now(),
        )
        .await?;
        let cpu = cpu_us(&kanat.server, before, outcome.acked.len())?;
        json.push((outcome.per_second(), cpu));
        let before = kanat.server.usage()?.cpu;
        let begun = Instant::now();
        let calls = call_grpc(&kanat.base, &flow, plan.length).await?;
        grpc.push((
            calls as f64 / begun.elapsed().as_secs_f64(),
            cpu_us(&kanat.server, before, calls)?,
        ));
    }
    kanat.server.stop().await?;
    let rate = |calls: &[(f64, f64)]| median(calls.iter().map(|(rate, _)| *rate));
    let cpu = |calls: &[(f64, f64)]| median(calls.iter().map(|(_, cpu)| *cpu));
    Ok(vec![Finding::new(
        "P12",
        format!("`GET /api/v1/flows/{{id}}` a second, {CALLERS} callers, of the same by gRPC"),
        Goal::AtLeast(0.6),
        rate(&json) / rate(&grpc),
        format!(
            "answered: JSON {} /s at {} us, gRPC {} /s at {} us of CPU",
            plain(rate(&json)),
            plain(cpu(&json)),
            plain(rate(&grpc)),
            plain(cpu(&grpc))
        ),
    )])
}

fn cpu_us(server: &Server, before: Duration, calls: usize) -> Result<f64> {
    Ok(server.usage()?.cpu.saturating_sub(before).as_secs_f64() * 1e6 / calls.max(1) as f64)
}

/// Each caller has a connection of its own, as those of JSON have.
async fn call_grpc(base: &str, flow: &str, length: Duration) -> Result<usize> {
    let until = Instant::now() + length;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let channel = Endpoint::from_shared(base.to_owned())?.connect().await?;
        let flow = flow.to_owned();
        callers.spawn(async move {
            let mut client = FlowServiceClient::new(channel);
            let mut calls = 0;
            while Instant::now() < until {
                let mut request = tonic::Request::new(GetFlowRequest { id: flow.clone() });
                request
                    .metadata_mut()
                    .insert("authorization", format!("Bearer {KEY}").parse()?);
                client.get_flow(request).await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        });
    }
    let mut calls = 0;
    while let Some(done) = callers.join_next().await {
        calls += done.context("a caller's task failed")??;
    }
    Ok(calls)
}
