//! Kanat, set up through its API like any user's.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::load::Until;
use crate::order;
use crate::process::Server;

pub const KEY: &str = "kanat_ak_bench_0123456789abcdefghijklmnopqrstuvwxyz";

/// A running `kanat up`.
pub struct Kanat {
    pub server: Server,
    pub base: String,
    metrics: SocketAddr,
}

/// What it is started with.
pub struct Start<'a> {
    pub binary: &'a Path,
    /// Its log goes here, and its data into a folder in it.
    pub folder: &'a Path,
    /// Messages and configuration are in files when there is none.
    pub database: Option<&'a str>,
}

/// A deployed flow with a webhook.
pub struct Deployed {
    pub id: String,
    /// Of its webhook.
    pub path: String,
    pub version: u64,
    /// A node has yet to run it, and to have it on its disk.
    pub pending: bool,
}

impl Start<'_> {
    pub fn data(&self) -> PathBuf {
        self.folder.join("kanat-data")
    }

    pub async fn run(&self) -> Result<Kanat> {
        let mut command = Command::new(self.binary);
        command.args([
            "up",
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "127.0.0.1:0",
            "--data-dir",
        ]);
        command
            .arg(self.data())
            .env("KANAT_BOOTSTRAP_API_KEY", KEY)
            .current_dir(self.folder);
        if let Some(url) = self.database {
            command.env("KANAT_DATABASE_URL", url);
        }
        let log = self.folder.join("kanat.err");
        let server = Server::start(&mut command, &log).await;
        let server = server.with_context(|| std::fs::read_to_string(&log).unwrap_or_default())?;
        let metrics =
            metrics_address(&std::fs::read_to_string(&log)?).context("kanat serves no metrics")?;
        Ok(Kanat {
            base: format!("http://{}", server.address),
            server,
            metrics,
        })
    }
}

impl Kanat {
    /// Makes the target's connector instance, and deploys the flow under measurement.
    pub async fn set_up(&self, target_port: u16) -> Result<Deployed> {
        let instance = json!({
            "catalogId": "http", "name": "bench-target",
            "config": { "base_url": format!("http://127.0.0.1:{target_port}"), "auth": "none" },
        });
        post(&self.base, "/api/v1/connectors/instances", &instance).await?;
        let flow = post(
            &self.base,
            "/api/v1/flows",
            &json!({ "yamlConfig": order::FLOW }),
        )
        .await?;
        self.deploy(flow["id"].as_str().context("the flow has no id")?)
            .await
    }

    /// Puts the draft of a flow into service.
    pub async fn deploy(&self, id: &str) -> Result<Deployed> {
        let what = format!("/api/v1/flows/{id}/deploy");
        let answer = client()
            .post(format!("{}{what}", self.base))
            .bearer_auth(KEY)
            .json(&json!({}))
            .send()
            .await?;
        let pending = answer.headers().contains_key("x-config-applied");
        let deployed = read(answer, &what).await?;
        let url = deployed["webhookUrl"]
            .as_str()
            .context("the flow has no webhook URL")?;
        let path = url.find("/webhooks/").map(|at| url[at..].to_owned());
        let path = path.with_context(|| format!("{url:?} is not a webhook URL"))?;
        let version = deployed["version"].as_u64().unwrap_or_default();
        Ok(Deployed {
            id: id.to_owned(),
            path,
            version,
            pending,
        })
    }

    /// Transactions of the message log since the start.
    pub async fn commits(&self) -> Result<f64> {
        let text = get(&format!("http://{}/metrics", self.metrics)).await?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("kanat_log_commits_total "));
        line.and_then(|value| value.trim().parse().ok())
            .context("no metric tells the commits of the log")
    }

    /// Waits until a webhook takes an order: 503 says that the node has no plans yet.
    pub async fn takes(&self, path: &str) -> Result<()> {
        let begun = Instant::now();
        let call = crate::load::Call::webhook(path);
        loop {
            let one = Until::Count(1, Arc::default());
            let answered = crate::load::until(self.server.address, &call, 1, one, begun).await;
            if answered.is_ok_and(|outcome| !outcome.acked.is_empty()) {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(120),
                "the webhook {path} takes no order"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the address is that of our own process"
)]
fn client() -> reqwest::Client {
    reqwest::Client::new()
}

pub async fn post(base: &str, path: &str, body: &Value) -> Result<Value> {
    let answer = client()
        .post(format!("{base}{path}"))
        .bearer_auth(KEY)
        .json(body)
        .send()
        .await?;
    read(answer, &format!("POST {path}")).await
}

pub async fn put(base: &str, path: &str, body: &Value) -> Result<Value> {
    let answer = client()
        .put(format!("{base}{path}"))
        .bearer_auth(KEY)
        .json(body)
        .send()
        .await?;
    read(answer, &format!("PUT {path}")).await
}

/// To a webhook.
pub async fn post_text(url: &str, body: String) -> Result<String> {
    let request = client()
        .post(url)
        .header("content-type", "application/json")
        .body(body);
    Ok(request.send().await?.error_for_status()?.text().await?)
}

pub async fn get(url: &str) -> Result<String> {
    let answer = client()
        .get(url)
        .bearer_auth(KEY)
        .send()
        .await?
        .error_for_status()?;
    Ok(answer.text().await?)
}

async fn read(answer: reqwest::Response, what: &str) -> Result<Value> {
    let status = answer.status();
    let text = answer.text().await?;
    if !status.is_success() {
        bail!("{what}: {status}: {text}");
    }
    Ok(serde_json::from_str(&text)?)
}

/// The log says where metrics are served.
fn metrics_address(log: &str) -> Option<SocketAddr> {
    let line = log
        .lines()
        .find(|line| line.contains("metrics are served"))?;
    let event: Value = serde_json::from_str(line).ok()?;
    let url = event
        .get("url")
        .or_else(|| event.get("fields")?.get("url"))?
        .as_str()?;
    url.rsplit("http://")
        .next()?
        .trim_end_matches('/')
        .parse()
        .ok()
}
