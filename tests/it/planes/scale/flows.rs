//! Thousands of flows, as large as flows are: a dozen fields, a condition, retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kanat_tests::rest::text;
use kanat_tests::{Answer, Rest};
use serde_json::json;
use tokio::task::JoinSet;

/// Callers that make flows at the same time.
const CALLERS: usize = 8;

/// A deployed flow.
#[derive(Debug, Clone)]
pub struct FlowDeployment {
    pub id: String,
    pub webhook: String,
    name: String,
}

/// The definition of a flow, which says how often it was changed.
pub fn definition(name: &str, changes: usize) -> String {
    format!(
        r#"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /customers/{{{{ source.customer.id }}}}/orders
  method: POST
when: source.total > 0
mapping:
  order_id: source.id | required
  revision: "{changes}"
  placed_on: source.placed_at | date(YYYY-MM-DD)
  currency: source.currency | uppercase | default(EUR)
  customer.name: source.customer.name | trim
  customer.email: source.customer.email | required | lowercase
  customer.reference: "{{{{ source.customer.id }}}} of {name}"
  street: source.ship_to.street | trim
  city: source.ship_to.city | trim
  country: source.ship_to.country | uppercase
  total: source.total | decimal(2)
  express: source.shipping.express | default(false)
on_error:
  retry: 5x exponential(30s)
"#
    )
}

/// Order that the webhook takes.
pub fn order() -> serde_json::Value {
    json!({
        "id": "SO-1", "placed_at": "2026-10-05T08:15:00Z", "currency": "eur", "total": 149.5,
        "customer": { "id": "C-204", "name": "Anna Vogel", "email": "Anna.Vogel@example.com" },
        "ship_to": { "street": "Lindenweg 4", "city": "Potsdam", "country": "de" }
    })
}

/// Makes and deploys this many.
pub async fn deploy(api: &Rest, count: usize) -> Vec<FlowDeployment> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let api = api.clone();
        let next = Arc::clone(&next);
        callers.spawn(async move {
            let mut made = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return made;
                }
                let name = format!("orders-{n}");
                let (id, webhook) = api.deployed(&definition(&name, 0)).await;
                made.push(FlowDeployment { id, webhook, name });
            }
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

impl FlowDeployment {
    /// Changes the draft.
    pub async fn change(&self, api: &Rest, changes: usize) {
        let body = json!({ "yamlConfig": definition(&self.name, changes) });
        api.put(&format!("/api/v1/flows/{}", self.id), &body)
            .await
            .expect(200);
    }

    /// Puts the draft into service.
    pub async fn deploy(&self, api: &Rest) -> Answer {
        api.post(&format!("/api/v1/flows/{}/deploy", self.id), &json!({}))
            .await
    }
}

/// The version that a message was accepted under.
pub async fn version_of(api: &Rest, message: &str) -> u64 {
    api.message(message).await["flowVersion"]
        .as_u64()
        .expect("a message has the version of its flow")
}

/// The version that a deploy made.
pub fn version(deployed: &serde_json::Value) -> u64 {
    deployed["version"]
        .as_u64()
        .unwrap_or_else(|| panic!("{} has no version", text(&deployed["id"])))
}
