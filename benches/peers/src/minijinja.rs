//! The mapping as a template, rendered with the tree of the order.

use minijinja::{Environment, Value};

const TEMPLATE: &str = concat!(
    r#"{"order_id":{{ id|tojson }},"sent_at":{{ sent_at }},"#,
    r#""total":"{{ "%.2f"|format(amount) }}","currency":{{ currency|upper|tojson }},"#,
    r#""country":{{ country|upper|tojson }},"customer":{"name":{{ buyer.full_name|tojson }},"#,
    r#""email":{{ buyer.email|lower|tojson }},"city":{{ buyer.address.city|tojson }}},"#,
    r#""shipping":{{ shipping.method|tojson }},"first_sku":{{ items[0].sku|upper|tojson }},"#,
    r#""paid":{{ payment.authorised|tojson }}}"#
);

pub fn mapping() -> impl Fn(&[u8]) -> Vec<u8> {
    let mut environment = Environment::new();
    environment
        .add_template("order", TEMPLATE)
        .expect("the template parses");
    move |order| {
        let tree: Value = serde_json::from_slice(order).expect("the order is JSON");
        let template = environment
            .get_template("order")
            .expect("the template is there");
        template
            .render(tree)
            .expect("the order can be mapped")
            .into_bytes()
    }
}
