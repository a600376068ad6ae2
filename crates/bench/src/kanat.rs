//! Kanat under the same load: set up through its API like any user's, then measured from outside.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::process::Server;
use crate::report::{Delivery, Grouping, Row};
use crate::target::Target;
use crate::{load, order};

pub const KEY: &str = "kanat_ak_bench_0123456789abcdefghijklmnopqrstuvwxyz";

pub async fn measure(binary: &Path, folder: &Path, connections: usize, length: Duration) -> Result<Row> {
    let start = Instant::now();
    let target = Target::start(start).await?;
    let data = folder.join("kanat-data");
    let log = folder.join("kanat.err");
    let mut command = Command::new(binary);
    command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data).env("KANAT_BOOTSTRAP_API_KEY", KEY);
    let server = Server::start(&mut command, &log).await?;
    let webhook = set_up(&format!("http://{}", server.address), target.address.port()).await?;

    let before = server.usage()?;
    let begun = Instant::now();
    let outcome = load::run(server.address, &webhook, connections, length, start).await?;
    let delivery = Delivery::of(target.wait_for(outcome.acked).await, &outcome, begun)?;
    let after = server.usage()?;
    server.stop().await?;
    let mut row = Row { delivery: Some(delivery), ..Row::new("kanat", connections, &outcome, before, after) };
    row.grouping = grouping(&std::fs::read_to_string(&log)?);
    std::fs::remove_dir_all(&data).context("cannot remove the data folder")?;
    Ok(row)
}

/// Deploys the flow and gives the path of its webhook.
async fn set_up(base: &str, target_port: u16) -> Result<String> {
    let instance = json!({
        "catalogId": "http", "name": "bench-target",
        "config": { "base_url": format!("http://127.0.0.1:{target_port}"), "auth": "none" },
    });
    post(base, "/api/v1/connectors/instances", &instance).await?;
    let flow = post(base, "/api/v1/flows", &json!({ "yamlConfig": order::FLOW })).await?;
    let id = flow["id"].as_str().context("the flow has no id")?;
    let deployed = post(base, &format!("/api/v1/flows/{id}/deploy"), &json!({})).await?;
    let url = deployed["webhookUrl"].as_str().context("the flow has no webhook URL")?;
    let path = url.find("/webhooks/").map(|at| url[at..].to_owned());
    path.with_context(|| format!("{url:?} is not a webhook URL"))
}

#[expect(clippy::disallowed_methods, reason = "the address is that of our own process")]
pub async fn post(base: &str, path: &str, body: &Value) -> Result<Value> {
    let answer = reqwest::Client::new().post(format!("{base}{path}")).bearer_auth(KEY).json(body).send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    if !status.is_success() {
        bail!("POST {path}: {status}: {text}");
    }
    Ok(serde_json::from_str(&text)?)
}

/// The message log says at its end what it wrote in how many commits; those that only settle count too.
fn grouping(log: &str) -> Option<Grouping> {
    log.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|event| {
        let count = |name: &str| event.get(name)?.as_f64();
        let commits = count("log.commits").filter(|commits| *commits > 0.0)?;
        Some(Grouping {
            messages_per_commit: count("log.appended")? / commits,
            writes_per_commit: count("log.operations")? / commits,
        })
    })
}
