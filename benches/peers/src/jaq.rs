//! The tasks in jq, run by the jaq crates.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

/// The mapping. jq has no way to write two decimals but by arithmetic.
pub const MAPPING: &str = r#"{
  order_id: .id, sent_at: .sent_at,
  total: ((.amount * 100 | round) as $cents
    | "\($cents / 100 | floor).\(($cents % 100 + 100 | tostring)[1:])"),
  currency: .currency | ascii_upcase, country: .country | ascii_upcase,
  customer: {
    name: .buyer.full_name, email: .buyer.email | ascii_downcase, city: .buyer.address.city
  },
  shipping: .shipping.method, first_sku: .items[0].sku | ascii_upcase, paid: .payment.authorised
}"#;

pub const TOTALS: &str = r#"{
  totals: [
    .items | map(select(.qty > 0)) | group_by(.category)[]
    | { category: .[0].category, total: (map(.price * .qty) | add) }
  ]
}"#;

/// Compiles a filter that gives one document for another.
pub fn filter(code: &'static str) -> impl Fn(&[u8]) -> Vec<u8> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(
            &arena,
            File {
                code,
                path: (),
            },
        )
        .expect("the filter parses");
    let filter = Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .expect("the filter compiles");
    move |document| {
        let input = read::parse_single(document).expect("the document is JSON");
        let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
        let mapped = filter
            .id
            .run((context, input))
            .map(unwrap_valr)
            .next()
            .expect("the filter gives something");
        mapped
            .expect("the filter has no error")
            .to_string()
            .into_bytes()
    }
}
