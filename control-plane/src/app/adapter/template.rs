//! Adapters to begin with. Each is a file of code; a test runs every one on its sample.

use kanat_model::adapter::Kind;

/// An adapter to begin with.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    pub id: &'static str,
    pub name: &'static str,
    pub description: &'static str,
    pub kind: Kind,
    pub code: &'static str,
    /// JSON.
    pub sample_input: &'static str,
    /// JSON: what the code makes of the sample.
    pub sample_output: &'static str,
}

/// All of them.
pub const ALL: &[Template] = &[
    Template {
        id: "pick-and-rename",
        name: "Pick and rename fields",
        description: "Keeps the fields of a table under their new names, and leaves out every \
                      other one.",
        kind: Kind::Transform,
        code: include_str!("templates/pick_and_rename.js"),
        sample_input: concat!(
            r#"{"id":"SO-1","customer":{"mail":"a@example.com"},"#,
            r#""total":149.50,"internal":true}"#
        ),
        sample_output: r#"{"order_id":"SO-1","email":"a@example.com","total":149.50}"#,
    },
    Template {
        id: "flatten",
        name: "Flatten nested objects",
        description: "Turns nested objects and lists into one level of keys, such as \
                      customer.name and lines[0].sku.",
        kind: Kind::Transform,
        code: include_str!("templates/flatten.js"),
        sample_input: r#"{"id":7,"customer":{"name":"Anna"},"lines":[{"sku":"A"}]}"#,
        sample_output: r#"{"id":7,"customer.name":"Anna","lines[0].sku":"A"}"#,
    },
    Template {
        id: "group-lines",
        name: "Group lines and sum them",
        description: "Groups the lines of an order by a field, and adds up quantity and amount of \
                      each group in cents.",
        kind: Kind::Transform,
        code: include_str!("templates/group_lines.js"),
        sample_input: concat!(
            r#"{"id":"SO-1","lines":[{"sku":"A","qty":1,"price":10.10},"#,
            r#"{"sku":"B","qty":2,"price":5},{"sku":"A","qty":3,"price":10.10}]}"#
        ),
        sample_output: concat!(
            r#"{"id":"SO-1","lines":[{"sku":"A","qty":4,"amount":"40.40"},"#,
            r#"{"sku":"B","qty":2,"amount":"10.00"}]}"#
        ),
    },
    Template {
        id: "tidy-contact",
        name: "Tidy a contact",
        description: "Splits a full name, lower-cases the e-mail address, and writes the phone \
                      number with its country code.",
        kind: Kind::Transform,
        code: include_str!("templates/tidy_contact.js"),
        sample_input: concat!(
            r#"{"name":" Anna Maria  Vogel ","email":"Anna@Example.COM ","#,
            r#""phone":"0331 / 55 12-3","country":"DE"}"#
        ),
        sample_output: concat!(
            r#"{"first_name":"Anna Maria","last_name":"Vogel","email":"anna@example.com","#,
            r#""phone":"+4933155123"}"#
        ),
    },
    Template {
        id: "drop-empty",
        name: "Leave out what is empty",
        description: "Removes null, empty texts, empty lists and empty objects, however deep they \
                      are.",
        kind: Kind::Transform,
        code: include_str!("templates/drop_empty.js"),
        sample_input: concat!(
            r#"{"id":0,"note":"","tags":[],"address":{"street":null},"paid":false,"#,
            r#""lines":[{"sku":"A","memo":null}]}"#
        ),
        sample_output: r#"{"id":0,"paid":false,"lines":[{"sku":"A"}]}"#,
    },
    Template {
        id: "csv-to-records",
        name: "CSV to records",
        description: "Reads a CSV body with a header line, quotes and line breaks in them, into a \
                      list of objects.",
        kind: Kind::Source,
        code: include_str!("templates/csv_to_records.js"),
        sample_input: r#""sku;name\nA-1;\"Lamp, \"\"small\"\"\"\nB-2;Chair\n""#,
        sample_output: concat!(
            r#"{"records":[{"sku":"A-1","name":"Lamp, \"small\""},"#,
            r#"{"sku":"B-2","name":"Chair"}]}"#
        ),
    },
    Template {
        id: "unwrap-envelope",
        name: "Unwrap an envelope",
        description: "Takes the data out of a JSON envelope, also where it is text within text, \
                      and checks its type.",
        kind: Kind::Source,
        code: include_str!("templates/unwrap_envelope.js"),
        sample_input: concat!(
            r#""{\"type\":\"order.created\",\"id\":\"evt_1\","#,
            r#"\"data\":\"{\\\"id\\\":\\\"SO-1\\\"}\"}""#
        ),
        sample_output: r#"{"id":"SO-1","event_id":"evt_1"}"#,
    },
    Template {
        id: "xml-body",
        name: "XML request body",
        description: "Writes the mapped output as an XML document. Set the target's Content-Type \
                      header to application/xml.",
        kind: Kind::Target,
        code: include_str!("templates/xml_body.js"),
        sample_input: r#"{"id":"SO-1","note":"a < b & c","lines":[{"sku":"A"},{"sku":"B"}]}"#,
        sample_output: concat!(
            r#""<?xml version=\"1.0\" encoding=\"UTF-8\"?>"#,
            "<order><id>SO-1</id><note>a &lt; b &amp; c</note>",
            r#"<lines><sku>A</sku></lines><lines><sku>B</sku></lines></order>""#
        ),
    },
    Template {
        id: "form-body",
        name: "Form request body",
        description: "Writes the mapped output as a form. Set the target's Content-Type header to \
                      application/x-www-form-urlencoded.",
        kind: Kind::Target,
        code: include_str!("templates/form_body.js"),
        sample_input: concat!(
            r#"{"amount":1000,"currency":"eur","metadata":{"order":"SO 1"},"#,
            r#""items":["a","b"]}"#
        ),
        sample_output: concat!(
            r#""amount=1000&currency=eur&metadata%5Border%5D=SO%201"#,
            r#"&items%5B0%5D=a&items%5B1%5D=b""#
        ),
    },
];
