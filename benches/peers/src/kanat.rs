//! The mapping in Kanat's own language.

use kanat_mapping::{Effort, Expression, FieldValue, Mapping, Scope};
use kanat_model::Timestamp;

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
        (
            name.to_owned(),
            FieldValue::Expression(Expression::parse(text).expect("the expression parses")),
        )
    });
    let mapping = Mapping::new(fields.into()).expect("the fields do not conflict");
    let now = Timestamp::from_millis(1_772_357_400_000);
    move |order| {
        kanat_mapping::json::check(order, kanat_mapping::json::MAX_DEPTH)
            .expect("the order is JSON");
        let mut out = Vec::with_capacity(512);
        mapping
            .write(&Scope::new(order, now, &Effort::default()), &mut out)
            .expect("the order can be mapped");
        out
    }
}
