//! The totals in JSONata, run by jsonata-core: of the crates, the one that passes the whole test
//! suite of the reference implementation.

use jsonata_core::Expression;
use jsonata_core::value::JValue;

const TOTALS: &str = r#"{"totals": [
  $each(items[qty > 0]{category: $sum($.(price * qty))}, function($total, $category) {
    {"category": $category, "total": $total}
  })
]}"#;

pub fn totals() -> impl Fn(&[u8]) -> Vec<u8> {
    let expression = Expression::compile(TOTALS).expect("the expression parses");
    move |lines| {
        let lines = std::str::from_utf8(lines).expect("the lines are text");
        let input = JValue::from_json_str(lines).expect("the lines are JSON");
        let totals = expression.evaluate(&input);
        let totals = totals.expect("the lines can be summed");
        totals
            .to_json_string()
            .expect("a value can be written")
            .into_bytes()
    }
}
