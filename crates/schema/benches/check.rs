//! How long the check of a flat order of twenty fields takes: `cargo bench -p kanat-schema`.

use divan::Bencher;
use divan::counter::BytesCount;
use kanat_schema::Schema;

const SCHEMA: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["id", "sent_at", "created_at", "currency", "amount", "name", "email", "sku", "quantity"],
  "properties": {
    "id": { "type": "string", "pattern": "^ord-[0-9]{10,}$" },
    "sent_at": { "type": "integer", "minimum": 0 },
    "created_at": { "type": "string", "format": "date-time" },
    "currency": { "enum": ["eur", "usd", "gbp", "chf"] },
    "amount": { "type": "number", "minimum": 0, "maximum": 100000 },
    "country": { "type": "string", "pattern": "^[a-z]{2}$" },
    "channel": { "enum": ["web", "shop", "phone"] },
    "name": { "type": "string", "minLength": 1, "maxLength": 100 },
    "email": { "type": "string", "format": "email" },
    "phone": { "type": "string", "maxLength": 30 },
    "street": { "type": "string", "minLength": 1 },
    "zip": { "type": "string", "minLength": 3, "maxLength": 10 },
    "city": { "type": "string", "minLength": 1 },
    "sku": { "type": "string", "pattern": "^[a-z]{2}-[0-9]{4}$" },
    "quantity": { "type": "integer", "minimum": 1, "maximum": 1000 },
    "price": { "type": "number", "exclusiveMinimum": 0 },
    "tax": { "type": "number", "minimum": 0, "maximum": 1 },
    "method": { "enum": ["standard", "express"] },
    "paid": { "type": "boolean" },
    "notes": { "type": ["string", "null"], "maxLength": 500 }
  }
}"#;

const ORDER: &str = r#"{"id":"ord-0000000007","sent_at":1234567,"created_at":"2026-03-01T09:30:00Z","currency":"eur","amount":149.5,"country":"de","channel":"web","name":"Ada Lovelace","email":"ada@example.com","phone":"+49 30 901820","street":"Unter den Linden 77","zip":"10117","city":"Berlin","sku":"ab-1001","quantity":3,"price":4.5,"tax":0.19,"method":"standard","paid":true,"notes":"Please leave the parcel with the neighbour on the second floor."}"#;

fn main() {
    divan::main();
}

#[divan::bench(args = [true, false])]
fn checks_an_order(bencher: Bencher<'_, '_>, fits: bool) {
    let schema = Schema::compile(SCHEMA).expect("the schema is sound");
    let order = if fits { ORDER.to_owned() } else { ORDER.replace("149.5", "-1").replace("eur", "dkk") };
    assert_eq!(schema.validate(order.as_bytes()).is_ok(), fits);
    let order = divan::black_box(order.as_bytes());
    bencher.counter(BytesCount::new(order.len())).bench(|| schema.validate(order));
}
