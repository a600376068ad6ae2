//! The work: an order of about a kilobyte, and the flow that maps eleven of its fields.

use anyhow::Result;
use serde_json::{Value, json};

/// Makes an order that carries its number and the instant it was sent at, in nanoseconds of the
/// measuring process.
pub fn order(number: u64, sent_at: u64) -> String {
    format!(
        concat!(
            r#"{{"id":"ord-{:010}","sent_at":{},"created_at":"2026-03-01T09:30:00Z","#,
            r#""currency":"eur","amount":149.5,"country":"de","channel":"web","#,
            r#""buyer":{{"id":90071992547409931,"full_name":"Ada Lovelace","#,
            r#""email":"ada@example.com","phone":"+49 30 901820","#,
            r#""address":{{"street":"Unter den Linden 77","zip":"10117","city":"Berlin","#,
            r#""country":"de"}}}},"#,
            r#""items":["#,
            r#"{{"sku":"ab-1001","name":"Notebook, squared, A5","qty":3,"price":4.5,"tax":0.19}},"#,
            r#"{{"sku":"ab-2040","name":"Fountain pen, medium nib","qty":1,"price":89.0,"#,
            r#""tax":0.19}},"#,
            r#"{{"sku":"zx-0007","name":"Ink cartridge, royal blue, box of 38","qty":2,"#,
            r#""price":23.5,"tax":0.19}}],"#,
            r#""shipping":{{"method":"standard","price":4.9,"eta_days":3,"carrier":"post"}},"#,
            r#""payment":{{"method":"card","brand":"visa","last4":"4242","authorised":true}},"#,
            r#""notes":"Please leave the parcel with the neighbour on the second floor if nobody "#,
            r#"answers the door.","tags":["returning","newsletter","spring-sale"]}}"#
        ),
        number, sent_at
    )
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
    let digits = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    std::str::from_utf8(&text[start..start + digits])
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_json_of_about_a_kilobyte_with_its_number_and_instant() {
        let text = order(7, 123_456_789);
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        assert!((900..1_200).contains(&text.len()), "{}", text.len());
        assert_eq!(sent_at(text.as_bytes()), Some(123_456_789));
        assert_eq!(sent_at(&map(text.as_bytes()).unwrap()), Some(123_456_789));
        assert_eq!(number(&map(text.as_bytes()).unwrap()), Some(7));
    }
}
