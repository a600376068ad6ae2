//! By Kanat's own language.

use kanat_mapping::{Expression, FieldValue, Mapping, Scope};

/// As in the flow that `cargo xtask bench` measures.
const FIELDS: [(&str, &str); 11] = [
    ("order_id", "source.id | required"),
    ("sent_at", "source.sent_at"),
    ("total", "source.amount | decimal(2)"),
    ("currency", "source.currency | uppercase"),
    ("country", "source.country | uppercase"),
    ("customer.name", "source.buyer.full_name"),
    ("customer.email", "source.buyer.email | lowercase"),
    ("customer.city", "source.buyer.address.city"),
    ("shipping", "source.shipping.method"),
    ("first_sku", "source.items[0].sku | uppercase"),
    ("paid", "source.payment.authorised"),
];

/// Checks the order and maps it, as the service does with each message.
pub fn mapping() -> impl Fn(&[u8]) -> Vec<u8> {
    let fields = FIELDS.map(|(name, text)| {
        (name.to_owned(), FieldValue::Expression(Expression::parse(text).expect("the expression parses")))
    });
    let mapping = Mapping::new(fields.into()).expect("the fields do not conflict");
    let now = "2026-03-01T09:30:00Z".parse().expect("the instant parses");
    move |order| {
        kanat_mapping::json::check(order).expect("the order is JSON");
        let mut out = Vec::with_capacity(512);
        mapping.write(&Scope::new(order, now), &mut out).expect("the order can be mapped");
        out
    }
}
