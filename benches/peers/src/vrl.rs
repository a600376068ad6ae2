//! The mapping in VRL, the language of Vector.

use std::cell::RefCell;
use std::collections::BTreeMap;

use vrl::compiler::runtime::Runtime;
use vrl::compiler::{TargetValue, TimeZone, compile};
use vrl::value::{Secrets, Value};

const PROGRAM: &str = r#". = {
  "order_id": .id, "sent_at": .sent_at,
  "total": format_number!(.amount, scale: 2),
  "currency": upcase!(.currency), "country": upcase!(.country),
  "customer": {
    "name": .buyer.full_name, "email": downcase!(.buyer.email), "city": .buyer.address.city
  },
  "shipping": .shipping.method, "first_sku": upcase!(.items[0].sku), "paid": .payment.authorised
}"#;

pub fn mapping() -> impl Fn(&[u8]) -> Vec<u8> {
    let compiled =
        compile(PROGRAM, &vrl::stdlib::all()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let runtime = RefCell::new(Runtime::default());
    move |order| {
        let value: Value = serde_json::from_slice(order).expect("the order is JSON");
        let metadata = Value::Object(BTreeMap::new());
        let mut target = TargetValue {
            value,
            metadata,
            secrets: Secrets::default(),
        };
        let mut runtime = runtime.borrow_mut();
        runtime
            .resolve(&mut target, &compiled.program, &TimeZone::default())
            .expect("the order can be mapped");
        runtime.clear();
        serde_json::to_vec(&target.value).expect("a value can be written")
    }
}
