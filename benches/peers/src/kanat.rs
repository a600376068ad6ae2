//! The tasks in Kanat's own language.

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

pub fn mapping() -> impl Fn(&[u8]) -> Vec<u8> {
    run(fields(&FIELDS))
}

pub fn totals() -> impl Fn(&[u8]) -> Vec<u8> {
    let list = "source.items | where(item.qty > 0) | group_by(item.category)";
    let map = fields(&[
        ("category", "item.key"),
        ("total", "item.items | sum(item.price * item.qty)"),
    ]);
    let each = FieldValue::Each {
        list: parse(list),
        filter: None,
        map: Box::new(map),
    };
    let mapping = Mapping::new(vec![("totals".to_owned(), each)]);
    run(mapping.expect("the fields do not conflict"))
}

fn fields(fields: &[(&str, &str)]) -> Mapping {
    let fields = fields
        .iter()
        .map(|(name, text)| ((*name).to_owned(), FieldValue::Expression(parse(text))));
    Mapping::new(fields.collect()).expect("the fields do not conflict")
}

fn parse(text: &str) -> Expression {
    Expression::parse(text).expect("the expression parses")
}

/// Checks a document and maps it, as the service does with each message.
fn run(mapping: Mapping) -> impl Fn(&[u8]) -> Vec<u8> {
    let now = Timestamp::from_millis(1_772_357_400_000);
    move |document| {
        kanat_mapping::json::check(document, kanat_mapping::json::MAX_DEPTH)
            .expect("the document is JSON");
        let mut out = Vec::with_capacity(512);
        mapping
            .write(&Scope::new(document, now, &Effort::default()), &mut out)
            .expect("the document can be mapped");
        out
    }
}
