//! Kanat, set up through its API like any user's: a flow that only answers, a published API with a
//! strict schema, and a consumer key with both limits, wide enough not to be reached.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::order;
use crate::kanat::{Kanat, Start, post};
use crate::process::Server;

/// Starts it, and gives the consumer's key.
pub async fn start(binary: &Path, folder: &Path) -> Result<(Server, String)> {
    let kanat = Start {
        binary,
        folder,
        database: None,
    }
    .run()
    .await?;
    let key = set_up(&kanat).await?;
    Ok((kanat.server, key))
}

/// Makes flow, API and consumer key, and gives the key when calls are answered.
pub async fn set_up(kanat: &Kanat) -> Result<String> {
    let base = &kanat.base;
    let flow = post(base, "/api/v1/flows", &json!({ "yamlConfig": order::FLOW })).await?;
    let id = flow["id"].as_str().context("the flow has no id")?;
    post(base, &format!("/api/v1/flows/{id}/deploy"), &json!({})).await?;
    let api = json!({
        "path": order::PATH.strip_prefix("/v1/").unwrap_or(order::PATH),
        "method": "POST",
        "flowName": "bench-api",
        "authType": "api_key",
        "validationMode": "strict",
        "requestSchema": serde_json::from_str::<Value>(order::SCHEMA)?,
        "responseSchema": { "type": "object", "required": ["order_id"] },
        "responseMapping": serde_json::from_str::<Value>(order::MAPPING)?,
    });
    let api = post(base, "/api/v1/published-apis", &api).await?;
    let id = api["id"].as_str().context("the API has no id")?;
    let limits = json!({
        "consumer": "bench",
        "rateLimitPerSecond": 1_000_000,
        "dailyLimit": 1_000_000_000,
    });
    let key = post(base, &format!("/api/v1/published-apis/{id}/keys"), &limits).await?;
    let key = key["key"]
        .as_str()
        .context("the consumer key does not show its secret")?
        .to_owned();
    wait_until_live(&kanat.server, &key).await?;
    Ok(key)
}

/// A change is live within a second; the measurement begins after that.
async fn wait_until_live(server: &Server, key: &str) -> Result<()> {
    let call = order::call(Some(key.to_owned()));
    let mut last = Ok(());
    for _ in 0..200 {
        let brief = std::time::Duration::from_millis(20);
        let outcome =
            crate::load::closed(server.address, &call, 1, brief, std::time::Instant::now()).await;
        match outcome {
            Ok(_) => return Ok(()),
            Err(error) => last = Err(error),
        }
        tokio::time::sleep(brief).await;
    }
    last.context("the published API does not come to life")
}
