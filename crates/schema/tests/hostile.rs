//! Schemas and documents that mean harm: refused with their place, or judged within the budget of a
//! check.

use kanat_schema::{MAX_SCHEMA_BYTES, MAX_VIOLATIONS, Schema};

#[track_caller]
fn refuses(schema: &str, pointer: &str, words: &str) {
    let start: String = schema.chars().take(200).collect();
    match Schema::compile(schema) {
        Ok(_) => panic!("compiled: {start}"),
        Err(error) => {
            assert_eq!(error.pointer, pointer, "{start}: {error}");
            assert!(error.message.contains(words), "{start}: {error}");
        }
    }
}

#[track_caller]
fn compiled(schema: &str) -> Schema {
    Schema::compile(schema).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the violations of a document, as `field: message`.
fn wrong(schema: &Schema, document: &str) -> Vec<String> {
    let violations = schema
        .validate(document.as_bytes())
        .err()
        .unwrap_or_default();
    violations
        .into_iter()
        .map(|violation| format!("{}: {}", violation.field, violation.message))
        .collect()
}

#[test]
fn refuses_what_is_no_schema() {
    refuses("", "", "is not JSON");
    refuses("{\"type\":\"object\",}", "", "line 1, column 18");
    refuses("[]", "", "no schema");
    refuses("7", "", "no schema");
    refuses(
        r#"{"type":"strng"}"#,
        "/type",
        "is no type: there is null, boolean, integer",
    );
    refuses(
        r#"{"properties":{"a":{"minimum":"1"}}}"#,
        "/properties/a/minimum",
        "must be a number",
    );
    refuses(r#"{"properties":{"a":5}}"#, "/properties/a", "no schema");
    refuses(r#"{"required":"a"}"#, "/required", "must be a list");
    refuses(r#"{"required":[1]}"#, "/required/0", "must be");
    refuses(r#"{"maxLength":-1}"#, "/maxLength", "at least 0");
    refuses(r#"{"multipleOf":0}"#, "/multipleOf", "more than 0");
    refuses(
        r#"{"uniqueItems":"yes"}"#,
        "/uniqueItems",
        "must be a boolean",
    );
    refuses(r#"{"title":5}"#, "/title", "must be a string");
    refuses(
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":5}"#,
        "/exclusiveMinimum",
        "boolean",
    );
    refuses(
        r#"{"$schema":"http://json-schema.org/draft-03/schema#"}"#,
        "/$schema",
        "no draft that is known",
    );
    refuses(r#"{"$schema":5}"#, "/$schema", "no draft that is known");
    refuses(r#"{"allOf":{}}"#, "/allOf", "list of schemas");
}

#[test]
fn refuses_references_that_lead_nowhere_or_outside() {
    let outside = "leads out of the schema";
    refuses(
        r#"{"properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
        "/properties/a/$ref",
        outside,
    );
    refuses(r#"{"$ref":"file:///etc/passwd"}"#, "/$ref", outside);
    refuses(r#"{"$ref":"other.json#/a"}"#, "/$ref", outside);
    refuses(
        r#"{"items":{"$dynamicRef":"http://127.0.0.1:1/x#a"}}"#,
        "/items/$dynamicRef",
        outside,
    );
    refuses(r##"{"$ref":"#/$defs/a"}"##, "/$ref", "not in the schema");
    refuses(r##"{"$ref":"#nowhere"}"##, "/$ref", "anchor");
    refuses(r##"{"$ref":"#/title","title":"x"}"##, "/$ref", "no schema");
    refuses(r#"{"$ref":7}"#, "/$ref", "string");
    compiled(r#"{"$ref":"https://json-schema.org/draft/2020-12/schema"}"#);
}

#[test]
fn refuses_what_has_no_end() {
    let endless = "refers to itself without an end";
    refuses(r##"{"$ref":"#"}"##, "", endless);
    refuses(
        concat!(
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"##,
            r##""$ref":"#/$defs/a"}"##
        ),
        "/$defs/a",
        endless,
    );
    refuses(r##"{"not":{"anyOf":[{"$ref":"#"}]}}"##, "", endless);
    refuses(r##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##, "", endless);
    refuses(
        r##"{"$dynamicAnchor":"a","$dynamicRef":"#a"}"##,
        "",
        endless,
    );
    compiled(r##"{"properties":{"a":{"$ref":"#"}},"items":{"$ref":"#"}}"##);
}

#[test]
fn refuses_what_grows_without_measure() {
    refuses(
        &format!("{{\"title\":\"{}\"}}", "a".repeat(MAX_SCHEMA_BYTES)),
        "",
        "longer than 256 KiB",
    );
    refuses(
        &format!("{}{}", "{\"not\":".repeat(200), "}".repeat(200)),
        "",
        "nested deeper than 128",
    );
    let fan_out = (0..20).map(|level| {
        format!(
            r##""d{level}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
            level + 1
        )
    });
    let fan_out: Vec<String> = fan_out.collect();
    let schema = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d20":{{}}}}}}"##,
        fan_out.join(",")
    );
    refuses(
        &schema,
        "/$defs/d8",
        "more than 10000 schemas speak of one value",
    );
    let chain: Vec<String> = (0..200)
        .map(|step| format!(r##""d{step}":{{"$ref":"#/$defs/d{}"}}"##, step + 1))
        .collect();
    let schema = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d200":{{}}}}}}"##,
        chain.join(",")
    );
    assert!(
        Schema::compile(&schema)
            .is_err_and(|error| error.message.contains("more than 100 schemas"))
    );
}

#[test]
fn refuses_what_takes_long_to_compile() {
    let too_much = "takes too much work to compile";
    let error = |schema: &str| Schema::compile(schema).map(drop).unwrap_err();
    let definitions: Vec<String> = (0..8_000)
        .map(|number| format!(r#""a{number}":{{}}"#))
        .collect();
    let references = vec![r##"{"$ref":"#/$defs/a7999"}"##; 5_000].join(",");
    let refused = error(&format!(
        r#"{{"$defs":{{{}}},"prefixItems":[{references}]}}"#,
        definitions.join(",")
    ));
    assert!(
        refused.message.contains(too_much) && refused.pointer.starts_with("/prefixItems/"),
        "{refused}"
    );
    let patterns: Vec<String> = (0..4_000)
        .map(|number| format!(r#"{{"pattern":"{number}"}}"#))
        .collect();
    let refused = error(&format!(r#"{{"prefixItems":[{}]}}"#, patterns.join(",")));
    assert!(
        refused.message.contains(too_much) && refused.pointer.ends_with("/pattern"),
        "{refused}"
    );
    let refused = error(&format!(
        r#"{{"prefixItems":[{}]}}"#,
        vec!["{}"; 20_001].join(",")
    ));
    assert_eq!(
        refused.to_string(),
        "/prefixItems/19999: is one of more than 20000 schemas"
    );
    compiled(&format!(
        r#"{{"properties":{{{}}}}}"#,
        definitions.join(",")
    ));
}

#[test]
fn the_work_of_reading_parameters_is_bounded() {
    let members = vec![r#"{"additionalProperties":{"type":"integer"}}"#; 2_000].join(",");
    let schema = compiled(&format!(r#"{{"allOf":[{members}]}}"#));
    let names: Vec<String> = (0..10_000).map(|number| format!("n{number}")).collect();
    let read = schema.read_parameters(names.iter().map(|name| (name.as_str(), "1")));
    // What there was no work left for stays text, and the check says what is wrong with that.
    assert!(
        read.starts_with(r#"{"n0":1,"n1":1,"#) && read.ends_with(r#""n9999":"1"}"#),
        "{}",
        &read[..60]
    );
    assert!(schema.validate(read.as_bytes()).is_err());
}

#[test]
fn refuses_patterns_that_could_take_long() {
    refuses(r#"{"pattern":"(?=a)"}"#, "/pattern", "look-around");
    refuses(r#"{"pattern":"(a)\\1"}"#, "/pattern", "back-reference");
    refuses(r#"{"pattern":"("}"#, "/pattern", "not a regular expression");
    refuses(
        r#"{"pattern":"((a{1,500}){1,500}){1,500}"}"#,
        "/pattern",
        "too large",
    );
    refuses(
        r#"{"patternProperties":{"(?!x)":{}}}"#,
        "/patternProperties/(?!x)",
        "look-around",
    );
    let many: Vec<String> = (0..200)
        .map(|index| format!(r#"{{"pattern":"\\p{{L}}{{5}}{index}"}}"#))
        .collect();
    let error = Schema::compile(&format!(r#"{{"anyOf":[{}]}}"#, many.join(","))).err();
    assert!(
        error
            .as_ref()
            .is_some_and(|error| error.message.contains("all patterns together")),
        "{error:?}"
    );
}

#[test]
fn a_pattern_that_backtracks_elsewhere_is_quick_here() {
    let schema = compiled(r#"{"items":{"pattern":"^(a+)+$"}}"#);
    assert_eq!(
        wrong(&schema, &format!("[\"{}b\"]", "a".repeat(50_000))).len(),
        1
    );
    let schema = compiled(r#"{"pattern":"^(.*a.{900})$"}"#);
    let text = format!("\"{}\"", "ab".repeat(500_000));
    assert_eq!(
        wrong(&schema, &text),
        ["(root): takes too much work to check against its schema"]
    );
}

#[test]
fn the_work_of_a_check_is_bounded() {
    let schema = compiled(concat!(
        r##"{"$defs":{"a":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"},"##,
        r##"{"$ref":"#/$defs/a"}]}}}},"$ref":"#/$defs/a"}"##
    ));
    let document = format!("{}1{}", "{\"x\":".repeat(100), "}".repeat(100));
    assert_eq!(
        wrong(&schema, &document),
        ["(root): takes too much work to check against its schema"]
    );
    let schema = compiled(r#"{"items":{"uniqueItems":true,"items":{"uniqueItems":true}}}"#);
    assert!(wrong(&schema, &format!("[[{}1]]", "[1,2,3],[4],".repeat(0))).is_empty());
    let numbers: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let schema = compiled(
        r#"{"uniqueItems":true,"items":{"type":"integer","minimum":0},"maxItems":1000000}"#,
    );
    assert!(wrong(&schema, &format!("[{}]", numbers.join(","))).is_empty());
    assert_eq!(
        wrong(&schema, &format!("[{},7.0]", numbers.join(","))),
        ["(root): must not have the same item twice"]
    );
}

#[test]
fn a_deep_document_does_not_exhaust_the_stack() {
    let steps: Vec<String> = (0..80)
        .map(|step| {
            format!(
                r##""d{step}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}]}}"##,
                step + 1
            )
        })
        .collect();
    let deep = |steps: &[String]| {
        let last = steps.len();
        let end = format!(r##""d{last}":{{"items":{{"$ref":"#/$defs/d0"}}}}"##);
        compiled(&format!(
            r##"{{"$ref":"#/$defs/d0","$defs":{{{},{end}}}}}"##,
            steps.join(",")
        ))
    };
    let document = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(
        wrong(&deep(&steps[..40]), &document),
        ["(root): is nested too deeply for its schema"]
    );
    assert_eq!(wrong(&deep(&steps[..1]), &document), [""; 0]);
}

#[test]
fn documents_are_bounded_and_other_texts_are_refused() {
    let schema = compiled(r#"{"items":{"type":"string"}}"#);
    let document = format!("[{}1]", "1,".repeat(500));
    let found = wrong(&schema, &document);
    assert_eq!(found.len(), MAX_VIOLATIONS);
    assert_eq!(found[0].as_str(), "[0]: must be a string, not a number");
    assert_eq!(found[99], "[99]: must be a string, not a number");
    assert_eq!(
        wrong(&schema, "[1"),
        ["(root): is not JSON: line 1, column 3: found the end, expected `,` or `]`"]
    );
    assert_eq!(
        schema.validate(b"[\"\xff\"]").map_err(|found| found.len()),
        Err(1)
    );
    assert!(wrong(&schema, &"[".repeat(200))[0].contains("nested deeper"));
}

#[test]
fn messages_show_no_values_and_no_long_texts() {
    let schema = compiled(concat!(
        r#"{"properties":{"secret":{"maxLength":3,"pattern":"^x","enum":["a","b"]}},"#,
        r#""additionalProperties":false}"#
    ));
    let found = wrong(&schema, r#"{"secret":"hunter2hunter2"}"#);
    assert_eq!(found.len(), 3);
    assert!(
        found.iter().all(|line| !line.contains("hunter")),
        "{found:?}"
    );
    let long = format!("{{\"{}\":1}}", "k".repeat(100_000));
    assert!(wrong(&schema, &long)[0].len() < 200);
}

#[test]
fn equal_keys_count_once_and_by_their_last_value() {
    let schema =
        compiled(r#"{"required":["a"],"properties":{"a":{"type":"integer"}},"maxProperties":1}"#);
    assert!(wrong(&schema, r#"{"a":"x","\u0061":1}"#).is_empty());
    assert_eq!(
        wrong(&schema, r#"{"a":1,"a":"x"}"#),
        ["a: must be an integer, not a string"]
    );
}
