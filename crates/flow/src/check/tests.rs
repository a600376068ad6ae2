//! Definitions that are right, and everything that can be wrong with one.

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
fn tells_how_the_text_itself_is_written_where_it_was_meant() {
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
fn takes_every_trigger_with_its_keys() {
    for source in [
        "{trigger: webhook}",
        "{trigger: manual, connector: shop}",
        "{trigger: api}",
        "{trigger: schedule, connector: shop, schedule: \"0 6 * * 1-5\"}",
        "{trigger: schedule, schedule: \"0 6 * * 1-5\"}",
        "{trigger: schedule, connector: shop, schedule: \"0 6 * * 1-5\", timezone: Europe/Berlin}",
        "{trigger: poll, connector: shop, poll: {url: \"https://shop.example/orders\"}}",
        "{trigger: poll, connector: shop, schedule: \"*/5 * * * *\", poll: {url: \"{{ \
         instance.base_url }}/orders\"}}",
    ] {
        assert_eq!(source_faults(source), [""; 0], "{source}");
    }
}

#[test]
fn an_endpoint_has_no_segment_of_dots() {
    let endpoint = |endpoint: &str| {
        let target = format!("target: {{connector: erp, endpoint: \"{endpoint}\"}}");
        faults(&format!("flow: f\nsource: {{trigger: manual}}\n{target}\n"))
    };
    for good in [
        "/a.b/..c/...",
        "/a?x=/../y",
        "/{{ source.a }}/b",
        "/.{{ source.a }}",
        "/v1.{{ source.a }}/.x",
    ] {
        assert_eq!(endpoint(good), [""; 0], "{good}");
    }
    for bad in [
        "/a/../b",
        "..",
        "/./a",
        "/%2e%2E/a",
        "/{{ source.a }}/../b",
        "/{{ source['}}'] }}/..",
    ] {
        assert!(
            endpoint(bad)
                .iter()
                .any(|fault| fault.contains("a segment of dots alone")),
            "{bad}"
        );
    }
}

#[test]
fn a_secret_of_standard_webhooks_is_base64_and_no_prefix_alone() {
    let taken = |scheme: &str, secret: &str| {
        source_faults(&format!(
            "{{trigger: webhook, connector: c, verify: {{scheme: {scheme}, secret: {secret}}}}}"
        ))
    };
    for secret in [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
    ] {
        assert_eq!(taken("standard-webhooks", secret), [""; 0], "{secret}");
    }
    assert_eq!(
        taken(
            "standard-webhooks",
            "\"whsec_{{ instance.webhook_secret }}\""
        ),
        [""; 0]
    );
    assert_eq!(taken("stripe", "whsec_test_secret"), [""; 0]);
    for (scheme, secret) in [
        ("standard-webhooks", "whsec_"),
        ("stripe", "whsec_"),
        ("standard-webhooks", "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        (
            "standard-webhooks",
            "\"whpk_{{ instance.webhook_secret }}\"",
        ),
        (
            "standard-webhooks",
            "[MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, hush hush]",
        ),
    ] {
        let faults = taken(scheme, secret);
        assert!(
            faults.len() == 1 && !faults[0].contains("hush"),
            "{scheme} {secret}: {faults:?}"
        );
    }
}

#[test]
fn refuses_keys_of_other_triggers() {
    let cases = [
        (
            "{trigger: webhook, schedule: \"* * * * *\"}",
            "found \"schedule\" with the trigger webhook",
        ),
        (
            "{trigger: manual, verify: {scheme: github, secret: x}}",
            "found \"verify\" with the trigger manual",
        ),
        (
            "{trigger: api, poll: {url: \"https://a.example\"}}",
            "found \"poll\" with the trigger api",
        ),
        (
            "{trigger: schedule, connector: c}",
            "lacks the key \"schedule\"",
        ),
        (
            "{trigger: poll, poll: {url: \"https://a.example\"}}",
            "lacks the key \"connector\"",
        ),
        (
            "{trigger: poll, connector: c, poll: {url: \"https://a.example/{{ state.cursor | \
             lookup(t) }}\"}}",
            "found the transform lookup in source.poll",
        ),
        (
            "{trigger: webhook, connector: c, verify: {scheme: token, secret: \"{{ \
             instance.webhook_secret | adapter(a) }}\"}}",
            "found the transform adapter in source.verify",
        ),
        ("{trigger: poll, connector: c}", "lacks the key \"poll\""),
        (
            "{trigger: poll, connector: c, timezone: UTC, poll: {url: \"https://a.example\"}}",
            "without \"schedule\"",
        ),
        (
            "{trigger: poll, connector: c, schedule: \"* * * * *\", poll: {url: \
             \"https://a.example\", interval: 5m}}",
            "found \"interval\" beside source.schedule",
        ),
    ];
    for (source, expect) in cases {
        let faults = source_faults(source);
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{source}: {faults:?}"
        );
    }
}

#[test]
fn takes_every_scheme_with_its_keys() {
    for keys in [
        "scheme: token, secret: s",
        "scheme: token, secret: [s, t], header: X-Token",
        "scheme: token, secret: s, query: token",
        "scheme: hmac-sha256, secret: s, header: X-Sig, prefix: sha256=, encoding: base64",
        "scheme: hmac-sha1, secret: s",
        "scheme: hmac-sha512, secret: s",
        "scheme: standard-webhooks, secret: whsec_MfKQ9r8G, tolerance: 10m",
        "scheme: github, secret: s",
        "scheme: stripe, secret: s, tolerance: 600",
        "scheme: shopify, secret: s",
        "scheme: slack, secret: s",
        "scheme: meta, secret: s, verify_token: t",
        "scheme: basic, username: u, password: p",
    ] {
        assert_eq!(
            source_faults(&format!("{{trigger: webhook, verify: {{{keys}}}}}")),
            [""; 0],
            "{keys}"
        );
    }
}

#[test]
fn refuses_what_a_scheme_does_not_have() {
    let cases = [
        (
            "scheme: github, secret: s, tolerance: 5m",
            "found \"tolerance\" with the scheme github",
        ),
        (
            "scheme: token, secret: s, header: X, query: y",
            "found \"query\" beside \"header\"",
        ),
        ("scheme: basic, username: u", "lacks the key \"password\""),
        ("scheme: meta, secret: s", "lacks the key \"verify_token\""),
        ("scheme: token", "lacks the key \"secret\""),
        (
            "scheme: token, secret: []",
            "expected a text, or a list of texts",
        ),
        (
            "scheme: hmac-sha256, secret: s, encoding: base46",
            "did you mean \"base64\"",
        ),
        (
            "scheme: token, secret: \"{{ instance.x }}\"",
            "found instance in source.verify",
        ),
        (
            "scheme: stripe, secret: s, tolerance: 0",
            "expected a whole number from 1 to 86400",
        ),
        ("secret: s", "lacks the key \"scheme\""),
    ];
    for (keys, expect) in cases {
        let faults = source_faults(&format!("{{trigger: webhook, verify: {{{keys}}}}}"));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{keys}: {faults:?}"
        );
    }
}

#[test]
fn takes_every_pagination_with_its_keys() {
    let poll = |keys: &str| {
        format!(
            "{{trigger: poll, connector: c, poll: {{url: \"https://a.example/x\", method: get, \
             interval: 1s, headers: {{X-Key: \"{{{{ instance.api_key }}}}\"}}, params: {{since: \
             \"{{{{ state.last_success_at }}}}\"}}, records_path: data.items, record_id: \
             id{keys}}}}}"
        )
    };
    for keys in [
        "",
        ", pagination: {strategy: cursor, max_pages: 10, cursor_path: meta.next, cursor_param: \
         after}",
        ", pagination: {strategy: offset, offset_param: offset, page_size: 100, total_path: \
         meta.total}",
        ", pagination: {strategy: offset, offset_param: offset, page_size: 100}",
        ", pagination: {strategy: link_header}",
        ", pagination: {strategy: next_token, token_path: next, token_param: token}",
    ] {
        assert_eq!(source_faults(&poll(keys)), [""; 0], "{keys}");
    }
    for (keys, expect) in [
        (
            ", pagination: {strategy: cursor, cursor_path: a}",
            "lacks the key \"cursor_param\"",
        ),
        (
            ", pagination: {strategy: link_header, page_size: 5}",
            "with the strategy link_header",
        ),
        (", pagination: {strategy: ofset}", "did you mean \"offset\""),
        (
            ", pagination: {strategy: link_header, max_pages: 0}",
            "a whole number from 1",
        ),
        (", pagination: {max_pages: 1}", "lacks the key \"strategy\""),
        (", record_id: a", "twice"),
        (", body: x", "unknown key \"body\""),
    ] {
        let faults = source_faults(&poll(keys));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{keys}: {faults:?}"
        );
    }
    for (poll, expect) in [
        ("{url: \"ftp://a.example\"}", "http:// or https://"),
        ("{url: /orders}", "http:// or https://"),
        (
            "{url: \"https://a.example\", interval: 500ms}",
            "a duration from 1s",
        ),
        (
            "{url: \"https://a.example\", params: {limit: 5}}",
            "put it in quotes",
        ),
        (
            "{url: \"https://a.example/{{ source.x }}\"}",
            "found source in source.poll",
        ),
        (
            "{url: \"https://a.example\", records_path: a..b}",
            "a dotted path",
        ),
    ] {
        let faults = source_faults(&format!("{{trigger: poll, connector: c, poll: {poll}}}"));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{poll}: {faults:?}"
        );
    }
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
        step(", params: {a: \"{{ instance.x }}\"}"),
    ] {
        assert_eq!(faults(&flow(&rest)), [""; 0], "{rest}");
    }
    for (rest, expect) in [
        (format!("{target}when: item.x\n"), "found item in when"),
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
    ] {
        let faults = faults(&flow(&rest));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{rest}: {faults:?}"
        );
    }
}

#[test]
fn a_member_that_no_root_has_is_told_where_it_stands_and_taken_of_what_is_stored() {
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
    fn no_change_of_a_definition_panics(changes in prop::collection::vec(any::<(usize, usize, u8)>(), 1..6), broken in any::<bool>()) {
        let text = mutated(if broken { BROKEN } else { FULL }, &changes);
        match parse(&text) {
            Ok(definition) => {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&config_json(&definition)).is_ok());
                let graph = crate::graph::of(&definition);
                prop_assert!(!graph.to_mermaid().is_empty() && !graph.to_dot().is_empty());
                prop_assert!(crate::compile::tests::compiles(&definition), "{}", text);
            }
            Err(diagnostics) => {
                prop_assert!(!diagnostics.is_empty());
                let lines = u32::try_from(text.lines().count()).unwrap();
                for Diagnostic { severity, message, line, column, .. } in diagnostics {
                    prop_assert!(severity == Severity::Error && !message.is_empty());
                    prop_assert!(line >= 1 && line <= lines + 1 && column >= 1, "{} {} {}", line, column, message);
                }
            }
        }
    }
}
