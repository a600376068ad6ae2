//! Thousands of flows, as large as flows are: a dozen fields, a condition, retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kanat_tests::{Answer, Rest};
use serde_json::json;
use tokio::task::JoinSet;

/// Callers that make flows at the same time.
const CALLERS: usize = 8;

/// A deployed flow.
#[derive(Debug, Clone)]
pub struct Deployed {
    id: String,
}

fn definition(name: &str) -> String {
    format!(
        "flow: {name}
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
  placed_on: source.placed_at | date(YYYY-MM-DD)
  currency: source.currency | uppercase | default(EUR)
  customer.name: source.customer.name | trim
  customer.email: source.customer.email | required | lowercase
  customer.reference: \"{{{{ source.customer.id }}}} of {name}\"
  street: source.ship_to.street | trim
  city: source.ship_to.city | trim
  country: source.ship_to.country | uppercase
  total: source.total | decimal(2)
  express: source.shipping.express | default(false)
on_error:
  retry: 5x exponential(30s)
"
    )
}

/// Makes and deploys this many.
pub async fn deploy(api: &Rest, count: usize) -> Vec<Deployed> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (api, next) = (api.clone(), Arc::clone(&next));
        callers.spawn(async move {
            let mut made = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return made;
                }
                let name = format!("orders-{n}");
                let (id, _) = api.deployed(&definition(&name)).await;
                made.push(Deployed { id });
            }
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

impl Deployed {
    /// Puts the draft into service.
    pub async fn deploy(&self, api: &Rest) -> Answer {
        api.post(&format!("/api/v1/flows/{}/deploy", self.id), &json!({})).await
    }
}
