//! A published API under measurement: with a key, both limits, a strict schema of twenty members,
//! and an answer mapped from the request.

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::kanat::Kanat;
use crate::load::Call;

/// Path of the calls.
const PATH: &str = "/v1/bench/orders";

/// The schema of the request: twenty members, no others.
pub const SCHEMA: &str = include_str!("../../../benches/order.schema.json");

/// The flow: it only answers.
const FLOW: &str = "\
flow: bench-api
version: 1
source:
  trigger: api
mapping:
  order_id: source.id
";

/// An order that fits the schema.
fn order(number: u64, sent_at: u64) -> String {
    format!(
        concat!(
            r#"{{"id":"ord-{:010}","sent_at":{},"created_at":"2026-03-01T09:30:00Z","#,
            r#""currency":"eur","amount":149.5,"country":"de","channel":"web","#,
            r#""name":"Ada Lovelace","email":"Ada@example.com","phone":"+49 30 901820","#,
            r#""street":"Unter den Linden 77","zip":"10117","city":"Berlin","#,
            r#""sku":"ab-1001","quantity":3,"price":4.5,"tax":0.19,"method":"standard","#,
            r#""paid":true,"#,
            r#""notes":"Please leave the parcel with the neighbour on the second floor."}}"#
        ),
        number, sent_at
    )
}

/// Makes the call with a consumer's key.
pub fn call(key: &str) -> Call {
    Call {
        method: Method::POST,
        path: PATH.to_owned(),
        bearer: Some(key.to_owned()),
        body: order,
        status: 200,
    }
}

/// Makes flow, API and consumer key, and returns the key once calls are answered. The limits are
/// too wide to be reached.
pub async fn set_up(kanat: &Kanat) -> Result<String> {
    let flow = json!({ "yamlConfig": FLOW });
    let flow = kanat.post("/api/v1/flows", flow).await?;
    let id = flow["id"].as_str().context("the flow has no id")?;
    let deploy = format!("/api/v1/flows/{id}/deploy");
    kanat.post(&deploy, json!({})).await?;
    let api = json!({
        "path": PATH.strip_prefix("/v1/").unwrap_or(PATH),
        "method": "POST",
        "flowName": "bench-api",
        "authType": "api_key",
        "validationMode": "strict",
        "requestSchema": serde_json::from_str::<Value>(SCHEMA)?,
        "responseSchema": { "type": "object", "required": ["order_id"] },
        "responseMapping": {
            "order_id": "source.id | required",
            "sent_at": "source.sent_at",
            "total": "source.amount | decimal(2)",
            "currency": "source.currency | uppercase",
            "customer.name": "source.name",
            "customer.email": "source.email | lowercase",
            "paid": "source.paid"
        },
    });
    let api = kanat.post("/api/v1/published-apis", api).await?;
    let id = api["id"].as_str().context("the API has no id")?;
    let limits = json!({
        "consumer": "bench",
        "rateLimitPerSecond": 1_000_000,
        "dailyLimit": 1_000_000_000,
    });
    let path = format!("/api/v1/published-apis/{id}/keys");
    let key = kanat.post(&path, limits).await?;
    let key = key["key"]
        .as_str()
        .context("the consumer key does not show its secret")?;
    kanat.wait_for(&call(key)).await?;
    Ok(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_fits_its_schema_of_twenty_members() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let order: Value = serde_json::from_str(&order(7, 123)).unwrap();
        let members = schema["properties"].as_object().unwrap();
        assert_eq!(members.len(), 20);
        let schema = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        assert!(schema.is_valid(&order));
    }
}
