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
use crate::kanat::{KEY, Kanat};
use crate::load::{self, Call, Until};
use crate::plan::Plan;

/// Callers of each kind.
const CALLERS: usize = 16;

/// Figures of one kind of call, one for each round.
#[derive(Default)]
struct Calls {
    per_second: Vec<f64>,
    cpu_us: Vec<f64>,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
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
    let mut json = Calls::default();
    let mut grpc = Calls::default();
    for round in 1..=plan.rounds {
        eprintln!("the gateway, round {round} of {}", plan.rounds);
        let begun = Begin::now(&kanat)?;
        let until = Until::Time(plan.length);
        let outcome = load::closed(kanat.server.address, &call, CALLERS, until).await?;
        json.add(&kanat, &begun, outcome.acked.len())?;
        let begun = Begin::now(&kanat)?;
        let count = call_grpc(&kanat.base, &flow, plan.length).await?;
        grpc.add(&kanat, &begun, count)?;
    }
    kanat.server.stop().await?;
    let [json_rate, grpc_rate] = [json.per_second, grpc.per_second].map(median);
    let [json_cpu, grpc_cpu] = [json.cpu_us, grpc.cpu_us].map(median);
    Ok(vec![Finding::new(
        "P12",
        format!("`GET /api/v1/flows/{{id}}` a second, {CALLERS} callers, of the same by gRPC"),
        Goal::AtLeast(0.6),
        json_rate / grpc_rate,
        format!(
            "answered: JSON {} /s at {} us, gRPC {} /s at {} us of CPU",
            plain(json_rate),
            plain(json_cpu),
            plain(grpc_rate),
            plain(grpc_cpu)
        ),
    )])
}

/// Instant and CPU time at the beginning of a load.
struct Begin {
    at: Instant,
    cpu: Duration,
}

impl Begin {
    fn now(kanat: &Kanat) -> Result<Self> {
        Ok(Self {
            at: Instant::now(),
            cpu: kanat.server.usage()?.cpu,
        })
    }
}

impl Calls {
    fn add(&mut self, kanat: &Kanat, begin: &Begin, count: usize) -> Result<()> {
        let cpu = kanat.server.usage()?.cpu.saturating_sub(begin.cpu);
        let count = count.max(1) as f64;
        self.per_second
            .push(count / begin.at.elapsed().as_secs_f64());
        self.cpu_us.push(cpu.as_secs_f64() * 1e6 / count);
        Ok(())
    }
}

/// Calls over one connection for each caller, and returns the number of calls.
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
                let credential = format!("Bearer {KEY}").parse()?;
                request.metadata_mut().insert("authorization", credential);
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
