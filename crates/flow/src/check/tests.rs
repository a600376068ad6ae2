//! Definitions that are right, and everything that can be wrong with one.

mod source;
mod target;

use proptest::prelude::*;

use crate::{Diagnostic, Severity, config_json, parse};

/// A definition with nearly every key.
pub(crate) const FULL: &str = include_str!("../../tests/definitions/full.yaml");
const BROKEN: &str = include_str!("../../tests/definitions/broken.yaml");

fn faults(yaml: &str) -> Vec<String> {
    parse(yaml)
        .err()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The faults of a flow whose source is as given.
fn source_faults(source: &str) -> Vec<String> {
    faults(&format!(
        "flow: f\ntarget: {{connector: erp, endpoint: /x}}\nsource: {source}\n"
    ))
}

#[test]
fn reads_a_definition_with_nearly_every_key() {
    assert_eq!(faults(FULL), [""; 0]);
    let definition = parse(FULL).unwrap();
    assert_eq!(definition.name, "order-sync");
    assert_eq!(definition.steps.len(), 2);
    assert_eq!(definition.retry.to_string(), "3x exponential(30s)");
    assert!(definition.retry.transient_only);
    assert_eq!(
        definition.idempotency_key.as_ref().unwrap().text().trim(),
        "source.id"
    );
}

#[test]
fn gives_the_definition_as_a_json_tree() {
    let yaml = "name: f\nversion: 2\nsource: {trigger: api}\nmapping:\n  b: 1.10\n  a: source.x\n";
    assert_eq!(
        config_json(&parse(yaml).unwrap()),
        r#"{"name":"f","version":2,"source":{"trigger":"api"},"mapping":{"b":1.10,"a":"source.x"}}"#
    );
    let tree: serde_json::Value =
        serde_json::from_str(&config_json(&parse(FULL).unwrap())).unwrap();
    assert_eq!(
        tree["steps"][0]["params"]["contacts"][0]["custom_fields"]["count"],
        9_007_199_254_740_993_u64
    );
}

#[test]
fn the_tree_shows_no_literal_secret() {
    let yaml = "flow: f\nsource: {connector: c, trigger: webhook, verify: {scheme: token, secret: \
                [s3cr3t, \"{{ instance.webhook_secret }}\"]}}\ntarget: {connector: c, endpoint: \
                /s3cr3t, headers: {Authorization: Bearer s3cr3t, X-Shop: a}}\n";
    let tree: serde_json::Value =
        serde_json::from_str(&config_json(&parse(yaml).unwrap())).unwrap();
    assert_eq!(
        tree["source"]["verify"]["secret"],
        serde_json::json!(["********", "{{ instance.webhook_secret }}"])
    );
    assert_eq!(
        tree["target"]["headers"],
        serde_json::json!({"Authorization": "********", "X-Shop": "a"})
    );
    assert_eq!(tree["target"]["endpoint"], "/s3cr3t");
}

fn warnings(yaml: &str) -> Vec<String> {
    let warnings = parse(yaml).unwrap().warnings.into_iter();
    warnings
        .inspect(|warning| assert_eq!(warning.severity, Severity::Warning))
        .map(|warning| warning.to_string())
        .collect()
}

#[test]
fn warns_of_parts_that_do_not_do_what_they_seem_to_do() {
    let compared = warnings(
        "flow: f\nsource: {trigger: manual}\nwhen: source.total | decimal(2) > 100\ntarget: \
         {connector: erp, endpoint: /x}\n",
    );
    assert_eq!(compared.len(), 1);
    assert!(
        compared[0].starts_with(
            "line 3, column 33, when: found a comparison (`>`) of a text with a number"
        ),
        "{compared:?}"
    );
    let texts = warnings(
        "flow: f\nsource: {trigger: api}\nmapping:\n  a: source.a | default(item)\n  b: source.b | \
         join(source.sep)\n",
    );
    assert_eq!(
        texts,
        [
            "line 4, column 25, mapping.a: found the text `item`, which is no expression here; \
             `(item)` is the value",
            "line 5, column 22, mapping.b: found the text `source.sep`, which is no expression \
             here; this argument is a text wherever it stands"
        ]
    );
    let compared = warnings(
        "flow: f\nsource:\n  trigger: webhook\n  verify: { scheme: basic, username: u, password: p \
         }\ntarget: {connector: erp, endpoint: /x}\nmapping:\n  a: \
         trigger.headers.authorization\n  b: trigger.headers.accept\n",
    );
    let masked = compared
        .iter()
        .filter(|told| told.contains("source.verify compares"));
    assert_eq!(masked.count(), 1, "{compared:?}");
    let names = warnings(
        "flow: f\nsource: {trigger: api}\nmapping:\n  \"items[0].sku\": source.a\n  \"tags[]\": \
         source.b\n  meta[\"x.y\"]: source.c\n  \"range [1h]\": source.d\n",
    );
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].contains("the brackets are a part of this name"),
        "{names:?}"
    );
    let poll = |limit: u32| {
        warnings(&format!(
            "flow: f\nsource:\n  connector: shop\n  trigger: poll\n  poll:\n    url: \
             https://shop.example/orders\n    params: {{ limit: \"{limit}\" }}\n    pagination: {{ \
             strategy: offset, offset_param: offset, page_size: 500 }}\ntarget: {{connector: erp, \
             endpoint: /x}}\n"
        ))
    };
    let bounded = |param: &str| {
        warnings(&format!(
            "flow: f\nsource:\n  connector: shop\n  trigger: poll\n  poll:\n    url: \
             https://shop.example/orders\n    params: {{ since: \"{param}\" }}\n    \
             pagination: {{ strategy: link_header, max_pages: 2 }}\ntarget: {{connector: erp, \
             endpoint: /x}}\n"
        ))
    };
    assert_eq!(bounded("{{ state.last_success_at }}"), [""; 0]);
    assert_eq!(
        bounded("2026-01-01"),
        [
            "line 8, column 5, source.poll.pagination: found max_pages 2 in a poll that does not \
             read `state`: each cycle begins at the first page, so records on later pages are not \
             read"
        ]
    );
    assert_eq!(poll(500), [""; 0]);
    assert_eq!(
        poll(100),
        [
            "line 8, column 5, source.poll.pagination: found page_size 500, and the parameter \
             limit asks for 100: they have to be the same number, for page_size is not sent"
        ]
    );
}

#[test]
fn a_field_of_csv_that_each_compares_with_a_number_is_warned_of() {
    let found = warnings(
        "flow: f\nsource: {trigger: manual}\nmapping:\n  rows:\n    each: source | parse_csv\n    \
         where: item.kwh > 5\n    map:\n      n: (item.kwh | number) > 5\n      tag: \
         \"{{ item.kwh > 7 }}\"\n  again:\n    each: source.items\n    map:\n      n: item.kwh > \
         5\ntarget: {connector: erp, endpoint: /x}\n",
    );
    let text = "found a comparison (`>`) of a text with a number, which is false for every \
                message; `| number` makes a number of a text";
    assert_eq!(
        found,
        [
            format!("line 6, column 21, mapping.rows.where: {text}"),
            format!("line 9, column 25, mapping.rows.map.tag: {text}"),
        ]
    );
}

#[test]
fn letters_that_are_no_token_of_a_date_are_refused_in_new_definitions() {
    let yaml = "flow: f\nsource: {trigger: manual}\nmapping:\n  day: source.at | \
                date(dd.mm.yyyy)\ntarget: {connector: erp, endpoint: /x}\n";
    assert_eq!(
        faults(yaml),
        [
            "line 4, column 25, mapping.day: found `yyyy`, which is no token of a date (text \
             stands in brackets, as in `[yyyy]`); did you mean `DD.MM.YYYY`?"
        ]
    );
    assert!(crate::parse_stored(yaml).is_ok());
}

#[test]
fn an_expression_that_yaml_cuts_off_at_a_comma_is_one_fault() {
    let yaml = "flow: f\nsource: {trigger: manual}\nmapping: { a: source.x | concat(' ', \
                source.y, Z), b: if(source.q, 1, 2), c: source.z }\ntarget: {connector: erp, \
                endpoint: /x}\n";
    let told = "ends within parentheses: inside of { } YAML ends a value at a comma; put the \
                expression in quotes, or each field on a line of its own";
    assert_eq!(
        faults(yaml),
        [
            format!("line 3, column 15, mapping.a: {told}"),
            format!("line 3, column 55, mapping.b: {told}")
        ]
    );
    let unclosed = yaml.replace("Z), b: if(source.q, 1, 2)", "Z: 1");
    assert!(!faults(&unclosed).is_empty(), "it stays a fault");
}

#[test]
fn names_every_fault_of_a_broken_definition_at_once() {
    insta::assert_snapshot!(faults(BROKEN).join("\n"));
}

#[test]
fn gives_at_most_a_hundred_faults() {
    let keys: String = (0..500).map(|n| format!("key{n}: 1\n")).collect();
    let diagnostics = parse(&keys).unwrap_err();
    assert_eq!(diagnostics.len(), crate::diagnostic::MAX_DIAGNOSTICS);
    assert!(diagnostics.is_sorted_by_key(|d| (d.line, d.column)));
}

#[test]
fn nothing_is_checked_after_a_hundred_faults() {
    let fields: String = (0..500).map(|n| format!("  f{n}: sorce.a\n")).collect();
    let wrong = "flow: f\non_error: {retry: often}\nsource: {trigger: manual}\nmapping:\n";
    let diagnostics = parse(&format!("{wrong}{fields}")).unwrap_err();
    let places: Vec<_> = diagnostics.iter().map(|d| d.path.as_str()).collect();
    let first: Vec<_> = (0..100).map(|n| format!("mapping.f{n}")).collect();
    assert_eq!(places, first);
}

#[test]
fn points_inside_an_expression() {
    let yaml = "flow: f\nsource: {trigger: manual}\ntarget: {connector: erp, endpoint: \
                /x}\nmapping:\n  a: source.x | upercase\n  b: \"{{ source.x }} and {{ source.y | \
                upercase }}\"\n";
    let places: Vec<_> = parse(yaml)
        .unwrap_err()
        .iter()
        .map(|d| (d.line, d.column, d.path.clone()))
        .collect();
    assert_eq!(
        places,
        [
            (5, 17, "mapping.a".to_owned()),
            (6, 40, "mapping.b".to_owned())
        ]
    );
}

#[test]
fn shows_how_a_text_is_written_where_one_was_meant() {
    let told = |value: &str| {
        faults(&format!(
            "flow: f\nsource: {{trigger: api}}\nmapping:\n  a: {value}\n"
        ))
        .concat()
    };
    for text in [
        "parcel",
        "A1",
        "\"hello world\"",
        "not found",
        "5 kg",
        "it's here",
        "\"a \\\"b\\\"\"",
        "a\\b",
    ] {
        let said = told(text);
        let literal = said
            .split_once("; for the text itself write ")
            .map(|(_, literal)| literal.trim_end());
        let literal = literal.unwrap_or_else(|| panic!("{text}: {said}"));
        assert_eq!(told(literal), "", "{text}: {literal}");
    }
    assert!(
        told("parcel").ends_with("; for the text itself write \"'parcel'\""),
        "{}",
        told("parcel")
    );
    for expression in ["sorce", "customer.id", "parcel | trim", "source id", "'abc"] {
        assert!(
            !told(expression).contains("for the text itself"),
            "{expression}: {}",
            told(expression)
        );
    }
}

#[test]
fn points_at_the_part_of_a_retry_policy_that_is_wrong() {
    for (retry, column) in [
        ("2x exponentail(200ms)", 13),
        ("zx fixed(1s)", 10),
        ("2x", 10),
        ("2x fixed(1)", 13),
    ] {
        let yaml = format!("flow: f\nsource: {{trigger: api}}\non_error:\n  retry: {retry}\n");
        let diagnostics = parse(&yaml).unwrap_err();
        let fault = diagnostics
            .iter()
            .find(|diagnostic| diagnostic.path == "on_error.retry")
            .unwrap();
        assert_eq!(fault.line, 4, "{retry}");
        assert_eq!(fault.column, column, "{retry}");
    }
}

#[test]
fn needs_a_name_a_source_and_something_to_do() {
    assert_eq!(
        faults("version: 1\n"),
        [
            "line 1, column 1: lacks the key \"flow\"",
            "line 1, column 1: lacks the key \"source\""
        ]
    );
    assert_eq!(
        faults("flow: f\nsource: {trigger: manual}\n"),
        ["line 1, column 1: lacks both \"steps\" and \"target\", expected one of them at least"]
    );
    assert_eq!(faults("flow: f\nsource: {trigger: api}\n"), [""; 0]);
    assert_eq!(
        faults("flow: f\nname: g\nsource: {trigger: api}\n").len(),
        1
    );
    for yaml in ["[]", "text", "5", "null", "flow", "{}"] {
        assert!(!faults(yaml).is_empty(), "{yaml}");
    }
}

#[test]
fn texts_that_say_nothing_may_be_empty() {
    let target = "target: {connector: erp, endpoint: /x}\n";
    let source =
        "source: {trigger: webhook, verify: {scheme: hmac-sha256, secret: s, prefix: \"\"}}\n";
    assert_eq!(
        faults(&format!("flow: f\ndescription: ''\n{source}{target}")),
        [""; 0]
    );
    assert_eq!(faults(&format!("flow: ''\n{source}{target}")).len(), 1);
}

#[test]
fn knows_what_can_be_seen_where() {
    let flow = |rest: &str| format!("flow: f\nsource: {{trigger: manual}}\n{rest}");
    let target = "target: {connector: erp, endpoint: /x}\n";
    let step = |rest: &str| {
        format!("steps:\n  - {{name: a, action: x.y{rest}}}\n  - {{name: b, action: x.y}}\n")
    };
    for rest in [
        format!("{target}when: trigger.headers.x\n"),
        format!("{target}mapping: {{a: instance.base_url}}\n"),
        format!(
            "{target}mapping: {{a: {{each: source.x, map: {{b: {{each: item.y, map: {{c: \
             item.z}}}}}}}}}}\n"
        ),
        format!("{}{target}mapping: {{a: steps.b.output.id}}\n", step("")),
        format!("{target}when: source.a | any(item.b > index)\n"),
        format!("{target}mapping: {{a: \"source.b | hmac(sha256, instance.secret)\"}}\n"),
        format!(
            "{target}mapping: {{a: {{each: source.x, where: item.z, map: {{b: \"source.y | \
             where(item.z == outer.item.z)\"}}}}}}\n"
        ),
        step(", params: {a: \"{{ instance.x }}\"}"),
        step(", success_when: response.body.ok and source.id"),
        format!(
            "{}target: {{connector: erp, endpoint: /x, success_when: \"response.headers.x and \
             response.status in steps.b.output and trigger.method and instance.x\"}}\n",
            step("")
        ),
    ] {
        assert_eq!(faults(&flow(&rest)), [""; 0], "{rest}");
    }
    for (rest, expect) in [
        (format!("{target}when: item.x\n"), "found item in when"),
        (
            format!("{target}when: index > 0\n"),
            "found index in when, where it is not known",
        ),
        (
            format!("{target}when: source.a | any(outer.item.b)\n"),
            "found item in when",
        ),
        (
            format!("{target}mapping: {{a: {{each: source.x, map: {{b: outer.item}}}}}}\n"),
            "found outer.item in mapping",
        ),
        (
            format!(
                "{target}mapping: {{a: {{each: source.x, where: \"{{{{ item.z }}}}\", map: {{b: \
                 item}}}}}}\n"
            ),
            "expected a condition without {{ }}",
        ),
        (
            format!("{target}mapping: {{a: response.status}}\n"),
            "found response in mapping, where it is not known",
        ),
        (
            format!("{target}mapping: {{a: [source.a]}}\n"),
            "a list is one in quotes, such as \"[source.a, source.b]\"",
        ),
        (
            format!("{target}when: steps.a.output\n"),
            "no step has run before",
        ),
        (
            format!("{target}when: instance.x\n"),
            "no connector is named",
        ),
        (
            format!("{target}mapping: {{a: state.cursor}}\n"),
            "found state in mapping",
        ),
        (
            format!("{target}mapping: {{a: target.response.status}}\n"),
            "found target in mapping",
        ),
        (
            format!("{target}mapping: {{a: {{each: item.x, map: {{b: item.y}}}}}}\n"),
            "found item in mapping",
        ),
        (
            format!("{}{target}mapping: {{a: steps.c.output}}\n", step("")),
            "found the unknown step \"c\"",
        ),
        (step(", when: steps.b.output"), "no step has run before"),
        (
            format!("{target}when: trigger.headrs.x\n"),
            "did you mean `headers`",
        ),
        (
            format!("{}{target}mapping: {{a: steps.b.outptu.id}}\n", step("")),
            "did you mean `output`",
        ),
        (
            step(", params: {a: \"{{ steps.a.output }}\"}"),
            "no step has run before",
        ),
        (
            step(", success_when: steps.a.output"),
            "no step has run before",
        ),
        (
            step(", success_when: target.response.status == 200"),
            "found target in a step's success_when",
        ),
        (
            step(", success_when: response.boy.ok"),
            "did you mean `body`",
        ),
        (
            step(", success_when: \"{{ response.body }} x\""),
            "expected an expression without {{ }}",
        ),
        (
            step(", when: response.body"),
            "it is known only in a response mapping and in success_when",
        ),
        (
            "target: {connector: erp, endpoint: /x, success_when: item.ok}\n".to_owned(),
            "found item in target.success_when",
        ),
    ] {
        let faults = faults(&flow(&rest));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{rest}: {faults:?}"
        );
    }
}

#[test]
fn an_unknown_member_is_refused_in_new_definitions_and_taken_in_stored_ones() {
    let yaml = "flow: f\nsource: {trigger: webhook}\ntarget: {connector: erp, endpoint: \
                /x}\nmapping:\n  a: source.a | default(trigger.bdy)\n";
    let diagnostics = parse(yaml).unwrap_err();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    let Diagnostic {
        line, column, path, ..
    } = &diagnostics[0];
    assert_eq!([*line, *column], [5, 33]);
    assert_eq!(path, "mapping.a");
    assert_eq!(crate::parse_stored(yaml).unwrap().name, "f");
}

#[test]
fn refuses_fields_that_cannot_both_be() {
    let yaml = "flow: f\nsource: {trigger: manual}\ntarget: {connector: erp, endpoint: \
                /x}\nmapping:\n  a: source.x\n  b: source.y\n  a.c: source.z\n  d..e: source.z\n";
    let diagnostics = parse(yaml).unwrap_err();
    let places: Vec<_> = diagnostics
        .iter()
        .map(|d| (d.line, d.path.as_str()))
        .collect();
    assert_eq!(
        places,
        [(7, "mapping[\"a.c\"]"), (8, "mapping[\"d..e\"]")],
        "{diagnostics:?}"
    );
}

#[test]
fn takes_constants_and_methods_as_people_write_them() {
    let yaml = "flow: f\nsource: {trigger: manual}\ntarget: {connector: erp, endpoint: x, method: \
                put}\nmapping: {a: 5, b: true, c: \"'text'\"}\n";
    assert_eq!(parse(yaml).unwrap().target.unwrap().method, "PUT");
    let yaml = yaml.replace("a: 5", "a: .50");
    assert_eq!(faults(&yaml), [""; 0]);
    assert_eq!(faults(&yaml.replace(".50", "007")).len(), 1);
}

/// Swaps, drops, repeats and replaces parts of a text.
fn mutated(text: &str, changes: &[(usize, usize, u8)]) -> String {
    let pieces = [
        "\n", " ", ":", "{{", "}}", "[", "]", "\"", "'", "|", "- ", "&a ", "*a", "#", "source.",
        "null", "é", "5",
    ];
    let mut characters: Vec<char> = text.chars().collect();
    for (at, length, kind) in changes {
        let start = at % (characters.len() + 1);
        let end = (start + length % 20).min(characters.len());
        let new: Vec<char> = match kind % 4 {
            0 => Vec::new(),
            1 => characters[start..end].repeat(2),
            2 => characters[start..end].iter().rev().copied().collect(),
            _ => pieces[usize::from(*kind) % pieces.len()].chars().collect(),
        };
        characters.splice(start..end, new);
    }
    characters.into_iter().collect()
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn no_change_of_a_definition_panics(
        changes in prop::collection::vec(any::<(usize, usize, u8)>(), 1..6),
        broken in any::<bool>(),
    ) {
        let text = mutated(if broken { BROKEN } else { FULL }, &changes);
        match parse(&text) {
            Ok(definition) => {
                prop_assert!(
                    serde_json::from_str::<serde_json::Value>(&config_json(&definition)).is_ok()
                );
                let graph = crate::graph::of(&definition);
                prop_assert!(!graph.to_mermaid().is_empty() && !graph.to_dot().is_empty());
                prop_assert!(crate::compile::tests::compiles(&definition), "{}", text);
            }
            Err(diagnostics) => {
                prop_assert!(!diagnostics.is_empty());
                let lines = u32::try_from(text.lines().count()).unwrap();
                for Diagnostic {
                    severity,
                    message,
                    line,
                    column,
                    ..
                } in diagnostics
                {
                    prop_assert!(severity == Severity::Error && !message.is_empty());
                    prop_assert!(
                        line >= 1 && line <= lines + 1 && column >= 1,
                        "{} {} {}",
                        line,
                        column,
                        message
                    );
                }
            }
        }
    }
}
