//! How long a mapping of an order takes, and what goes before it: `cargo bench -p kanat-mapping`.

use divan::Bencher;
use divan::counter::BytesCount;
use kanat_mapping::json::{self, MAX_DEPTH};
use kanat_mapping::{Effort, Expression, FieldValue, Mapping, Scope};
use kanat_model::Timestamp;

const ORDER: &str = concat!(
    r#"{"id":"ord-0000000007","sent_at":1234567,"currency":"eur","amount":149.5,"country":"de","#,
    r#""buyer":{"id":90071992547409931,"name":"Ada Lovelace","email":"Ada@example.com","#,
    r#""address":{"street":"Unter den Linden 77","zip":"10117","city":"Berlin"}},"#,
    r#""items":[{"sku":"ab-1001","name":"Notebook, squared, A5","qty":3,"price":4.5,"tax":0.19},"#,
    r#"{"sku":"ab-2040","name":"Fountain pen, medium nib","qty":1,"price":89.0,"tax":0.19}],"#,
    r#""paid":true,"notes":"Please leave the parcel with the neighbour on the second floor."}"#
);

const FIELDS: [(&str, &str); 8] = [
    ("order_id", "source.id | required"),
    ("sent_at", "source.sent_at"),
    ("total", "source.amount | decimal(2)"),
    ("currency", "source.currency | uppercase"),
    ("customer.name", "source.buyer.name"),
    ("customer.email", "source.buyer.email | lowercase"),
    ("first_sku", "source.items[0].sku | uppercase"),
    ("paid", "source.paid"),
];

fn main() {
    divan::main();
}

#[divan::bench]
fn checks_an_order(bencher: Bencher<'_, '_>) {
    let order = divan::black_box(ORDER.as_bytes());
    bencher
        .counter(BytesCount::new(order.len()))
        .bench(|| json::check(order, MAX_DEPTH));
}

#[divan::bench]
fn maps_an_order(bencher: Bencher<'_, '_>) {
    let field = |(name, text): (&str, &str)| {
        let expression = Expression::parse(text).expect("the expression is sound");
        (name.to_owned(), FieldValue::Expression(expression))
    };
    let mapping = Mapping::new(FIELDS.map(field).into()).expect("no two fields conflict");
    let order = divan::black_box(ORDER.as_bytes());
    let mut out = Vec::with_capacity(order.len());
    bencher
        .counter(BytesCount::new(order.len()))
        .bench_local(|| {
            out.clear();
            let effort = Effort::default();
            let now = Timestamp::from_millis(0);
            mapping.write(&Scope::new(order, now, &effort), &mut out)
        });
}
