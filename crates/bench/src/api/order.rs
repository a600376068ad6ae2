//! The work: an order of twenty members, their strict schema, and the answer that is made of it.

use crate::load::Call;

/// Where every server takes orders.
pub const PATH: &str = "/v1/bench/orders";

/// The schema of the request: twenty members, no others.
pub const SCHEMA: &str = include_str!("../../../../benches/order.schema.json");

/// The flow: it only answers.
pub const FLOW: &str =
    "flow: bench-api\nversion: 1\nsource:\n  trigger: api\nmapping:\n  order_id: source.id\n";

/// What the answer is made of.
pub const MAPPING: &str = r#"{
  "order_id": "source.id | required",
  "sent_at": "source.sent_at",
  "total": "source.amount | decimal(2)",
  "currency": "source.currency | uppercase",
  "customer.name": "source.name",
  "customer.email": "source.email | lowercase",
  "paid": "source.paid"
}"#;

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

pub fn call(bearer: Option<String>) -> Call {
    Call {
        method: http::Method::POST,
        path: PATH.to_owned(),
        bearer,
        body: order,
        status: 200,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_fits_its_schema_of_twenty_members() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let order: serde_json::Value = serde_json::from_str(&order(7, 123)).unwrap();
        assert_eq!(
            schema["properties"].as_object().map(serde_json::Map::len),
            Some(20)
        );
        assert!(
            jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .unwrap()
                .is_valid(&order)
        );
        assert!(serde_json::from_str::<serde_json::Value>(MAPPING).is_ok());
    }
}
