//! Kanat under measurement, set up through its API as by a user.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::load::{self, Call, Until};
use crate::order;
use crate::process::Server;

pub const KEY: &str = "kanat_ak_bench_0123456789abcdefghijklmnopqrstuvwxyz";

/// Time within which a node takes over its plans.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running `kanat up`.
pub struct Kanat {
    pub server: Server,
    pub metrics: SocketAddr,
}

/// Arguments of a start.
pub struct Start<'a> {
    pub binary: &'a Path,
    /// Folder of its log, with its data in a folder of it.
    pub folder: &'a Path,
    /// URL of the database; messages and configuration are in files when there is none.
    pub database: Option<&'a str>,
}

/// A deployed flow with a webhook.
pub struct Deployment {
    pub id: String,
    /// Path of its webhook.
    pub path: String,
    pub version: u64,
    /// True while a node has yet to run it and to save it.
    pub pending: bool,
}

impl Start<'_> {
    pub fn data(&self) -> PathBuf {
        self.folder.join("kanat-data")
    }

    pub async fn run(&self) -> Result<Kanat> {
        let mut command = Command::new(self.binary);
        command
            .arg("up")
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
            .arg("--data-dir")
            .arg(self.data())
            .env("KANAT_BOOTSTRAP_API_KEY", KEY)
            .current_dir(self.folder);
        if let Some(url) = self.database {
            command.env("KANAT_DATABASE_URL", url);
        }
        let log = self.folder.join("kanat.err");
        let server = Server::start(&mut command, &log).await;
        let server = server.with_context(|| std::fs::read_to_string(&log).unwrap_or_default())?;
        let metrics = metrics_address(&std::fs::read_to_string(&log)?);
        Ok(Kanat {
            server,
            metrics: metrics.context("kanat serves no metrics")?,
        })
    }
}

impl Kanat {
    /// Makes the target's connector instance, and deploys the flow under measurement.
    pub async fn set_up(&self, target_port: u16) -> Result<Deployment> {
        let instance = json!({
            "catalogId": "http", "name": "bench-target",
            "config": { "base_url": format!("http://127.0.0.1:{target_port}"), "auth": "none" },
        });
        self.post("/api/v1/connectors/instances", instance).await?;
        let flow = json!({ "yamlConfig": order::FLOW });
        let flow = self.post("/api/v1/flows", flow).await?;
        self.deploy(flow["id"].as_str().context("the flow has no id")?)
            .await
    }

    /// Deploys the draft of a flow.
    pub async fn deploy(&self, id: &str) -> Result<Deployment> {
        let path = format!("/api/v1/flows/{id}/deploy");
        let (headers, flow) = self.send(Method::POST, &path, Some(json!({}))).await?;
        let url = flow["webhookUrl"].as_str();
        let url = url.context("the flow has no webhook URL")?;
        let at = url.find("/webhooks/");
        let at = at.with_context(|| format!("{url:?} is not a webhook URL"))?;
        Ok(Deployment {
            id: id.to_owned(),
            path: url[at..].to_owned(),
            version: flow["version"].as_u64().unwrap_or_default(),
            pending: headers.contains_key("x-config-applied"),
        })
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        Ok(self.send(Method::POST, path, Some(body)).await?.1)
    }

    /// Sends a request of the management API, or an order to a webhook.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(HeaderMap, Value)> {
        let mut request = client()
            .request(
                method.clone(),
                format!("http://{}{path}", self.server.address),
            )
            .bearer_auth(KEY);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let headers = answer.headers().clone();
        let text = answer.text().await?;
        ensure!(status.is_success(), "{method} {path}: {status}: {text}");
        Ok((headers, serde_json::from_str(&text)?))
    }

    /// Waits until a call is answered: a node answers with an error while it does not have the
    /// plan.
    pub async fn wait_for(&self, call: &Call) -> Result<()> {
        let begun = Instant::now();
        loop {
            let once = Until::Count(1, Arc::default());
            let answered = load::closed(self.server.address, call, 1, once).await;
            if answered.is_ok_and(|outcome| !outcome.acked.is_empty()) {
                return Ok(());
            }
            let is_late = begun.elapsed() > START_TIMEOUT;
            ensure!(!is_late, "{} is not answered", call.path);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Reads the commits of a message log since its start.
pub async fn commits(metrics: SocketAddr) -> Result<f64> {
    let answer = client().get(format!("http://{metrics}/metrics")).send();
    let text = answer.await?.error_for_status()?.text().await?;
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("kanat_log_commits_total "));
    let count = count.context("the metrics have no commits of the log")?;
    Ok(count.trim().parse()?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the address is that of our own process"
)]
fn client() -> reqwest::Client {
    reqwest::Client::new()
}

/// Finds in the log where metrics are served.
fn metrics_address(log: &str) -> Option<SocketAddr> {
    let line = log
        .lines()
        .find(|line| line.contains("metrics are served"))?;
    let event: Value = serde_json::from_str(line).ok()?;
    let url = event.get("url").or_else(|| event.get("fields")?.get("url"));
    let address = url?.as_str()?.rsplit("http://").next()?;
    address.trim_end_matches('/').parse().ok()
}
