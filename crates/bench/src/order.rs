//! The work: an order of about a kilobyte, and the flow that maps eleven of its fields.

use std::sync::LazyLock;

use anyhow::Result;
use serde_json::{Value, json};

/// An order of about a kilobyte. `benches/peers` maps the same one.
const ORDER: &str = include_str!("../../../benches/peers/src/order.json");

/// Number and instant of that order, between which nothing else stands.
const NUMBERS: &str = r#"0000000007","sent_at":123456789"#;

/// Texts of the order before and after them. They are found once, because making an order counts
/// with what is measured.
static PARTS: LazyLock<(&str, &str)> = LazyLock::new(|| {
    ORDER
        .split_once(NUMBERS)
        .expect("the order has its numbers")
});

/// Makes an order that carries its number and the instant it was sent at, in nanoseconds of the
/// measuring process.
pub fn order(number: u64, sent_at: u64) -> String {
    let (before, after) = *PARTS;
    format!(r#"{before}{number:010}","sent_at":{sent_at}{after}"#)
}

/// The flow under measurement.
pub const FLOW: &str = r#"flow: bench-orders
version: 1
source:
  trigger: webhook
target:
  connector: bench-target
  endpoint: /orders
  method: POST
mapping:
  order_id: source.id | required
  sent_at: source.sent_at
  total: source.amount | decimal(2)
  currency: source.currency | uppercase
  country: source.country | uppercase
  customer.name: source.buyer.full_name
  customer.email: source.buyer.email | lowercase
  customer.city: source.buyer.address.city
  shipping: source.shipping.method
  first_sku: source.items[0].sku | uppercase
  paid: source.payment.authorised
on_error:
  retry: 3x exponential(1s)
  then: dead-letter
"#;

/// Maps an order as the flow does, by a JSON library.
///
/// # Errors
/// The order is not JSON.
pub fn map(order: &[u8]) -> Result<Vec<u8>> {
    let source: Value = serde_json::from_slice(order)?;
    let upper = |value: &Value| value.as_str().unwrap_or_default().to_uppercase();
    let buyer = &source["buyer"];
    let amount = source["amount"].as_f64().unwrap_or_default();
    let mapped = json!({
        "order_id": source["id"],
        "sent_at": source["sent_at"],
        "total": format!("{amount:.2}"),
        "currency": upper(&source["currency"]),
        "country": upper(&source["country"]),
        "customer": {
            "name": buyer["full_name"],
            "email": buyer["email"].as_str().unwrap_or_default().to_lowercase(),
            "city": buyer["address"]["city"],
        },
        "shipping": source["shipping"]["method"],
        "first_sku": upper(&source["items"][0]["sku"]),
        "paid": source["payment"]["authorised"],
    });
    Ok(serde_json::to_vec(&mapped)?)
}

/// Reads the instant that a delivered order was sent at.
pub fn sent_at(delivered: &[u8]) -> Option<u64> {
    digits_after(delivered, br#""sent_at":"#)
}

/// Reads the number of a delivered order.
pub fn number(delivered: &[u8]) -> Option<u64> {
    digits_after(delivered, br#""ord-"#)
}

fn digits_after(text: &[u8], key: &[u8]) -> Option<u64> {
    let start = text.windows(key.len()).position(|window| window == key)? + key.len();
    let rest = &text[start..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_carries_its_number_and_its_instant_through_the_mapping() {
        let mapped = map(order(8, 123).as_bytes()).unwrap();
        assert_eq!(sent_at(&mapped), Some(123));
        assert_eq!(number(&mapped), Some(8));
    }
}
