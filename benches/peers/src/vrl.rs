//! The tasks in VRL, the language of Vector.

use std::cell::RefCell;
use std::collections::BTreeMap;

use vrl::compiler::runtime::Runtime;
use vrl::compiler::{TargetValue, TimeZone, compile};
use vrl::value::{Secrets, Value};

pub const MAPPING: &str = r#". = {
  "order_id": .id, "sent_at": .sent_at,
  "total": format_number!(.amount, scale: 2),
  "currency": upcase!(.currency), "country": upcase!(.country),
  "customer": {
    "name": .buyer.full_name, "email": downcase!(.buyer.email), "city": .buyer.address.city
  },
  "shipping": .shipping.method, "first_sku": upcase!(.items[0].sku), "paid": .payment.authorised
}"#;

pub const TOTALS: &str = r#"
totals = {}
for_each(array!(.items)) -> |_index, item| {
  qty = to_float!(item.qty)
  if qty > 0.0 {
    category = [string!(item.category)]
    before = to_float(get!(totals, category)) ?? 0.0
    totals = set!(totals, category, before + to_float!(item.price) * qty)
  }
}
result = []
for_each(object!(totals)) -> |category, total| {
  result = push(result, { "category": category, "total": total })
}
. = { "totals": result }
"#;

/// Compiles a program that replaces one document by another.
pub fn program(text: &'static str) -> impl Fn(&[u8]) -> Vec<u8> {
    let compiled =
        compile(text, &vrl::stdlib::all()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let runtime = RefCell::new(Runtime::default());
    move |document| {
        let value: Value = serde_json::from_slice(document).expect("the document is JSON");
        let metadata = Value::Object(BTreeMap::new());
        let mut target = TargetValue {
            value,
            metadata,
            secrets: Secrets::default(),
        };
        let mut runtime = runtime.borrow_mut();
        runtime
            .resolve(&mut target, &compiled.program, &TimeZone::default())
            .expect("the program has no error");
        runtime.clear();
        serde_json::to_vec(&target.value).expect("a value can be written")
    }
}
