//! Texts that are read and texts that are refused, with positions.

use proptest::prelude::*;

use super::*;

fn json(yaml: &str) -> String {
    let (tree, diagnostics) = read(yaml);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    tree.unwrap().to_json()
}

/// The first diagnostic, as people see it.
fn fault(yaml: &str) -> String {
    read(yaml)
        .1
        .first()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[test]
fn reads_trees_in_order() {
    assert_eq!(
        json("b: 1\na: [x, \"y\", {z: null}]\n"),
        r#"{"b":1,"a":["x","y",{"z":null}]}"#
    );
    assert_eq!(
        json("a: &x [1.10, 9007199254740993]\nb: *x\n"),
        r#"{"a":[1.10,9007199254740993],"b":[1.10,9007199254740993]}"#
    );
    assert_eq!(
        json("a: !!str 5\nb: |\n  two\n  lines\n# comment\n"),
        r#"{"a":"5","b":"two\nlines\n"}"#
    );
    assert_eq!(json("---\na: 'it''s'\n...\n"), r#"{"a":"it's"}"#);
}

#[test]
fn says_what_is_no_tree_of_ours() {
    let cases = [
        (
            "a: 1\nb: 2\na: 3\n",
            "line 3, column 1, a: found the key \"a\" twice; it stands on line 1 already",
        ),
        (
            "x:\n  a: 1\n  a: 2\n",
            "line 3, column 3, x.a: found the key \"a\" twice; it stands on line 2 already",
        ),
        (
            "a: *b\n",
            "line 1, column 4, a: found *b, which no anchor before it defines",
        ),
        (
            "a: &a [*a]\n",
            "line 1, column 8, a[0]: found an alias of a value that contains it",
        ),
        (
            "a: !!binary aGk=\n",
            "line 1, column 13, a: found the tag tag:yaml.org,2002:binary, expected a value \
             without one",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "line 2, column 1: found a second document, expected one",
        ),
        (
            "",
            "line 1, column 1: found an empty text, expected a flow definition",
        ),
        (
            "# nothing\n",
            "line 1, column 1: found an empty text, expected a flow definition",
        ),
        (
            "x: &x {a: 1}\ny:\n  <<: *x\n",
            "line 3, column 3, y: found the merge key <<, expected keys of its own",
        ),
        (
            "? [a, b]\n: 1\n",
            "line 1, column 3: found a list as a key, expected a name",
        ),
    ];
    for (yaml, expect) in cases {
        assert_eq!(fault(yaml), expect, "{yaml}");
    }
}

#[test]
fn says_to_quote_values_with_a_colon() {
    let found = fault("a: source.a == 'x: y'\n");
    assert!(
        found.ends_with("and a value with a colon and a blank in it stands in quotes as a whole"),
        "{found}"
    );
}

#[test]
fn a_tab_is_reported_where_it_stands() {
    let message =
        "found a tab before the first character of the line; YAML is indented with blanks";
    for (yaml, place) in [
        ("flow: y4\n\tsource: x\n", "line 2, column 1"),
        ("source:\n\ttrigger: webhook\n", "line 2, column 1"),
        ("a: 1\nb:\n  c: x y\n  \td: 1\n", "line 4, column 3"),
    ] {
        assert_eq!(fault(yaml), format!("{place}: {message}"));
    }
}

#[test]
fn says_to_quote_templates() {
    let cases = [
        ("a: {{ source.x }}\n", "line 1, column 4"),
        (
            "a:\n  - {{ source.x | lookup(a, b) }}\n",
            "line 2, column 5",
        ),
        ("a: {{ source.x }}/y\nb: 1\n", "line 1, column 4"),
        ("a: [1, {{ source.x }}]\n", "line 1, column 8"),
    ];
    for (yaml, place) in cases {
        let fault = fault(yaml);
        assert!(
            fault.starts_with(place) && fault.contains("put the whole value in quotes"),
            "{yaml}: {fault}"
        );
        assert_eq!(read(yaml).1.len(), 1, "{yaml}");
    }
    let fault = fault("mapping:\n  at: '' | now\n");
    assert!(
        fault.starts_with("line 2, column 7") && fault.contains("after the closing quote"),
        "{fault}"
    );
}

#[test]
fn refuses_what_multiplies() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}", level - 1);
        bomb.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            vec![alias; 10].join(", ")
        ));
    }
    assert!(
        fault(&bomb).contains("more than 100000 values"),
        "{}",
        fault(&bomb)
    );
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        vec!["*a"; 1000].join(", ")
    );
    assert!(
        fault(&long).contains("bytes, aliases counted"),
        "{}",
        fault(&long)
    );
    assert!(fault(&format!("a: {}{}", "[".repeat(100), "]".repeat(100))).contains("64 deep"));
    let mut deep = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned();
    for level in 1..10 {
        deep.push_str(&format!(
            "a{level}: &a{level} [[[[[[[[[[*a{}]]]]]]]]]]\n",
            level - 1
        ));
    }
    assert!(fault(&deep).contains("64 deep"), "{}", fault(&deep));
    assert!(fault(&"x".repeat(MAX_BYTES + 1)).contains("expected at most"));
    assert!(fault(&"- x\n".repeat(MAX_NODES + 1)).contains("values"));
}

#[test]
fn knows_where_a_text_begins() {
    let start = |yaml: &str| match read(yaml).0.unwrap().value {
        Value::Map(mut members) => match members.remove(0).value.value {
            Value::Text(text) => text
                .anchors
                .first()
                .map(|start| (start.at.line, start.at.column)),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(start("a: plain text\n"), Some((1, 4)));
    assert_eq!(start("a: \"quoted\"\n"), Some((1, 5)));
    assert_eq!(start("a:\n  'quoted'\n"), Some((2, 4)));
    assert_eq!(start("a: \"esc\\t\"\n"), Some((1, 5)));
    assert_eq!(start("a: |\n  block\n"), Some((2, 3)));
    assert_eq!(start("a: |\n  two\n  lines\n"), Some((2, 3)));
    assert_eq!(start("a: two\n  lines\n"), Some((1, 4)));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn no_yamlish_text_panics(
        text in "([a-c]: |- |\\{|\\}|\\[|\\]|\\n|  |'|\"|\\{\\{|&a \
                                       |\\*a|!!x |,|#|\\||>|\\?|:|<<: |é|---\\n|\\t|%){0,40}",
    ) {
        let (tree, diagnostics) = read(&text);
        prop_assert!(tree.is_some() || !diagnostics.is_empty());
        if let Some(tree) = tree {
            prop_assert!(
                serde_json::from_str::<Box<serde_json::value::RawValue>>(&tree.to_json()).is_ok()
            );
        }
    }
}

#[test]
fn names_the_path_of_what_is_not_yaml() {
    for (yaml, path) in [
        ("m:\n  a: '' | now\n  b: 1\n", "m.a"),
        (
            "m:\n  x: 1\n  a: {{ source[\"x y\"] | lookup(a, b) }}\n",
            "m.a",
        ),
        ("m:\n  l:\n    - 'a' b\nz: 1\n", "m.l[0]"),
        ("x: @a\n", "x"),
    ] {
        assert_eq!(super::read(yaml).1[0].path, path, "{yaml}");
    }
}
