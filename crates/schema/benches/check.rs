//! How long the check of a flat order of twenty fields takes: `cargo bench -p kanat-schema`.

use divan::Bencher;
use divan::counter::BytesCount;
use kanat_schema::Schema;

const SCHEMA: &str = include_str!("../../../benches/order.schema.json");

const ORDER: &str = concat!(
    r#"{"id":"ord-0000000007","sent_at":1234567,"created_at":"2026-03-01T09:30:00Z","#,
    r#""currency":"eur","amount":149.5,"country":"de","channel":"web","name":"Ada Lovelace","#,
    r#""email":"ada@example.com","phone":"+49 30 901820","street":"Unter den Linden 77","#,
    r#""zip":"10117","city":"Berlin","sku":"ab-1001","quantity":3,"price":4.5,"tax":0.19,"#,
    r#""method":"standard","paid":true,"#,
    r#""notes":"Please leave the parcel with the neighbour on the second floor."}"#
);

fn main() {
    divan::main();
}

#[divan::bench(args = [true, false])]
fn checks_an_order(bencher: Bencher<'_, '_>, fits: bool) {
    let schema = Schema::compile(SCHEMA).expect("the schema is sound");
    let order = if fits {
        ORDER.to_owned()
    } else {
        ORDER.replace("149.5", "-1").replace("eur", "dkk")
    };
    assert_eq!(schema.validate(order.as_bytes()).is_ok(), fits);
    let order = divan::black_box(order.as_bytes());
    bencher
        .counter(BytesCount::new(order.len()))
        .bench(|| schema.validate(order));
}
