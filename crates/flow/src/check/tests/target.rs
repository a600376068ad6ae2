//! What the target of a definition may be, and the mapping that goes to it.

use super::faults;
use crate::parse;

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
fn literal_parts_of_an_endpoint_are_judged_alike_with_and_without_expressions() {
    let endpoint = |endpoint: &str| {
        let target = format!("target: {{connector: erp, endpoint: \"{endpoint}\"}}");
        faults(&format!("flow: f\nsource: {{trigger: manual}}\n{target}\n"))
    };
    for (bad, found, written) in [
        ("/a#b", "'#'", "%23"),
        ("/a#{{ source.x }}", "'#'", "%23"),
        ("/{{ source.x }}#b", "'#'", "%23"),
        ("/a b", "' '", "%20"),
        ("/a b/{{ source.x }}", "' '", "%20"),
        ("/a?b={{ source.x }} c", "' '", "%20"),
        ("/a\\\\{{ source.x }}", "'\\\\'", "%5C"),
        ("/a\u{a0}b", "'\\u{a0}'", "%C2%A0"),
    ] {
        let faults = endpoint(bad);
        assert_eq!(faults.len(), 1, "{bad}: {faults:?}");
        let found = format!("found the character {found}");
        assert!(faults[0].contains(&found), "{faults:?}");
        let written = format!("write {written} for it");
        assert!(faults[0].contains(&written), "{faults:?}");
    }
    let stored = "flow: f\nsource: {trigger: manual}\ntarget: {connector: erp, endpoint: \"/a \
                  b/{{ source.x }}\"}\n";
    assert!(crate::parse_stored(stored).is_ok());
    for good in [
        "/a%23{{ source.x }}",
        "/{{ source.x }}/{{ source.y | default(' #') }}",
    ] {
        assert_eq!(endpoint(good), [""; 0], "{good}");
    }
}

#[test]
fn a_null_in_a_mapping_says_how_null_is_written() {
    let faults = faults(
        "flow: f\nsource: {trigger: manual}\nmapping:\n  x: null\ntarget: {connector: erp, \
         endpoint: /x}\n",
    );
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("write \"null\" in quotes"), "{faults:?}");
}

#[test]
fn warns_of_a_content_type_that_is_not_that_of_a_mapping() {
    let warnings = |content_type: &str, mapping: &str| -> Vec<String> {
        let yaml = format!(
            "flow: f\nsource: {{trigger: manual}}\ntarget:\n  connector: erp\n  endpoint: /x\n  \
             headers: {{ content-Type: \"{content_type}\" }}\n{mapping}"
        );
        let warnings = parse(&yaml).unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect()
    };
    let mapping = "mapping: { a: source.a }\n";
    let found = warnings("text/csv", mapping);
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "target.headers.content-Type: found the content type \"text/csv\", and the \
                    mapping makes JSON";
    assert!(found[0].contains(expected), "{found:?}");
    for json in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/vnd.shop+json",
        "text/json",
        "{{ source.type }}",
    ] {
        assert_eq!(warnings(json, mapping), [""; 0], "{json}");
    }
    assert_eq!(warnings("model/json", mapping).len(), 1);
    assert_eq!(warnings("text/csv", ""), [""; 0], "the payload may be CSV");
}

#[test]
fn a_misplaced_key_names_its_place() {
    let rest = "source: {trigger: manual}\n";
    let target = "target: {connector: erp, endpoint: /x, adapter: lines}";
    let found = faults(&format!("flow: f\n{rest}{target}\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    let adapter = "`adapter` is a key of the definition itself, beside `source` and `target`: the \
                   type of the adapter (source, transform or target) says where it runs";
    assert!(found[0].ends_with(adapter), "{found:?}");
    for (wrong, expected) in [
        (
            "steps: [{name: a, action: http.get, adapter: lines}]",
            adapter,
        ),
        (
            "target: {connector: erp, endpoint: /x, retry: 1x fixed(1s)}",
            "`retry` is a key of `on_error`",
        ),
        (
            "target: {connector: erp, endpoint: /x}\nendpoint: /y",
            "`endpoint` is a key of `target`",
        ),
        (
            "target: {connector: erp, endpoint: /x}\nparams: {}",
            "`params` is a key of `source.poll` and of a step",
        ),
    ] {
        let found = faults(&format!("flow: f\n{rest}{wrong}\n"));
        let has_hint = found.iter().any(|fault| fault.ends_with(expected));
        assert!(has_hint, "{wrong}: {found:?}");
    }
    let slip = "target: {connector: erp, endpoint: /x, metod: POST}";
    let found = faults(&format!("flow: f\n{rest}{slip}\n"));
    assert!(found[0].ends_with("did you mean \"method\""), "{found:?}");
}
