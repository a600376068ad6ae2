//! Tests of the parser: errors and their words, and what it notes of an expression.

use super::*;
use crate::ValueForm;

fn expression(text: &str) -> Result<(Node, References), Vec<ParseError>> {
    super::expression(text, &Lists::default())
}

#[track_caller]
fn refuses(text: &str, offset: usize, message: &str) {
    let errors = expression(text).map(|_| ()).unwrap_err();
    assert_eq!(errors, [ParseError::new(offset, message)], "{text}");
}

#[test]
fn shows_the_parentheses_of_a_pipe_before_an_operator() {
    refuses(
        "source.zz | default(5) + 1",
        23,
        "found `+`, expected `|`, a comparison, `and`, `or` or the end; an operator takes a pipe \
         in parentheses: `(source.zz | default(5)) +`",
    );
    refuses(
        "1 < source.a | number * 2",
        22,
        "found `*`, expected `|`, a comparison, `and`, `or` or the end; an operator takes a pipe \
         in parentheses: `(source.a | number) *`",
    );
    refuses(
        "[source.a | number - 2]",
        19,
        "found `-`, expected `|`, a comparison, `and`, `or`, `,` or `]`; an operator takes a pipe \
         in parentheses: `(source.a | number) -`",
    );
    // Of a long pipe the beginning is enough.
    refuses(
        &format!("source.{} | trim / 2", "a".repeat(100)),
        115,
        &format!(
            "found `/`, expected `|`, a comparison, `and`, `or` or the end; an operator takes a \
             pipe in parentheses: `(source.{}…) /`",
            "a".repeat(53)
        ),
    );
}

#[test]
fn says_what_was_found_and_expected() {
    let continues = "expected an operator, `|` or the end";
    refuses("", 0, "found the end, expected a path, a value or `(`");
    refuses("source.a |", 10, "found the end, expected a transform");
    refuses("source.a | | trim", 11, "found `|`, expected a transform");
    refuses(
        "source.a source.b",
        9,
        &format!("found `source`, {continues}"),
    );
    refuses(
        "source.a = 1",
        9,
        &format!("found `=`, {continues}; it is spelled `==`"),
    );
    refuses(
        "1 < source.a < 5",
        13,
        &format!("found `<`, {continues}; a comparison within another stands in parentheses"),
    );
    refuses(
        "source.a || 1",
        9,
        &format!("found `|`, {continues}; it is spelled `or`"),
    );
    refuses(
        "source.a && 1",
        9,
        &format!("found `&`, {continues}; it is spelled `and`"),
    );
    refuses(
        "(source.a",
        9,
        "found the end, expected an operator, `|` or `)`",
    );
    refuses("source.", 7, "found the end, expected a name");
    refuses("source.a.[0]", 9, "found `[`, expected a name");
    refuses(
        "source[x]",
        7,
        "found `x`, expected a number, `*` or a name in quotes",
    );
    refuses(
        "source[-1]",
        7,
        "found `-`, expected a number, `*` or a name in quotes",
    );
    refuses("source[1", 8, "found the end, expected `]`");
    refuses("'abc", 0, "a string that does not end");
    refuses(
        "'a\\qb'",
        2,
        "found `\\q`, expected an escape: `\\\\` `\\'` `\\\"` `\\/` `\\b` `\\f` `\\n` `\\r` \
         `\\t` `\\uXXXX`",
    );
    refuses("12abc", 2, "found `abc`, expected a number");
    refuses("01", 0, "found `01`, expected a number");
    refuses("now", 3, "found the end, expected `(`, as in `now()`");
}

#[test]
fn names_the_nearest_root_and_transform() {
    let roots = "expected one of the roots source, trigger, steps, target, instance, item, \
                 index, state, env, response";
    refuses(
        "sorce.id",
        0,
        &format!("found `sorce`, {roots}; did you mean `source`?"),
    );
    refuses("customer.id", 0, &format!("found `customer`, {roots}"));
    refuses(
        "source.a | upcase",
        11,
        "there is no transform `upcase`; did you mean `uppercase`?",
    );
    refuses(
        "source.a | Trim",
        11,
        "there is no transform `Trim`; did you mean `trim`?",
    );
    refuses("source.a | xyzzy", 11, "there is no transform `xyzzy`");
    let functions = "expected one of the functions if, coalesce, now, uuid";
    for called in ["parse_csv(source.csv)", "uppercase (source.a)"] {
        let name = called.split(['(', ' ']).next().unwrap();
        let piped = format!(
            "; `{name}` is a transform: it stands behind its value and a pipe, as in \
             `source.value | {name}`"
        );
        refuses(called, 0, &format!("found `{name}`, {functions}{piped}"));
    }
    refuses("xyzzy(source.a)", 0, &format!("found `xyzzy`, {functions}"));
    refuses(
        "upcase(source.a)",
        0,
        &format!("found `upcase`, {functions}; did you mean `uppercase`?"),
    );
}

#[test]
fn reports_what_it_can_go_on_after() {
    let errors = expression("source.a | upcase | decimal(31) | decimal | trim(")
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        errors.iter().map(|error| error.offset).collect::<Vec<_>>(),
        [11, 28, 34, 49]
    );
}

#[test]
fn bounds_nesting_and_length() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(expression(&nested(64)).is_ok());
    refuses(&nested(65), 65, "brackets nested deeper than 64 levels");
    assert!(expression(&"(".repeat(60_000)).is_err());
    refuses(
        &"a".repeat(70_000),
        0,
        "70000 bytes long, expected at most 65536",
    );
    refuses(
        &format!("source{}", ".a".repeat(65)),
        136,
        "a path of more than 64 steps",
    );
}

#[test]
fn notes_what_becomes_of_values_of_the_instance() {
    let noted = |text: &str| {
        let values = expression(text).unwrap().1.instance_values;
        values
            .into_iter()
            .map(|value| (value.names.join("."), value.offset, value.form))
            .collect::<Vec<_>>()
    };
    for whole in [
        "instance.token",
        "(instance.token)",
        "instance.token | required | base64",
        "'Basic ' | concat(instance.token) | url_encode",
        "source.a | default(instance.token) | sha256",
    ] {
        let at = whole.find("token").unwrap();
        assert_eq!(
            noted(whole),
            [("token".to_owned(), at, ValueForm::Whole)],
            "{whole}"
        );
    }
    for computed in [
        "instance.token | substring(0, 1)",
        "instance.token == 'x'",
        "instance.token and source.a",
        "not instance.token",
        "instance.token | base64 | length",
        "source.a | lookup(eu, instance.token)",
        "instance.token | adapter(tidy)",
        "uuid() | concat(instance.token) | base64",
        "(uuid() | default('a')) | concat(instance.token) | base64",
    ] {
        assert_eq!(noted(computed)[0].2, ValueForm::Computed, "{computed}");
    }
    assert_eq!(noted("instance"), [(String::new(), 0, ValueForm::Whole)]);
    assert_eq!(
        noted("instance.headers['X-Key'][0].a")[0].0,
        "headers.X-Key"
    );
}

#[test]
fn notes_members_that_closed_lists_do_not_have() {
    for (text, expect) in [
        (
            "trigger.headrs.x",
            Some((8, "`headrs`, expected a member of trigger: body")),
        ),
        ("trigger.bdy", Some((8, "did you mean `body`"))),
        (
            "trigger.paht_params.id | default(1)",
            Some((8, "did you mean `path_params`")),
        ),
        (
            "steps.calc.outptu.x",
            Some((
                11,
                "expected a member of the step calc: output, status; did you mean `output`",
            )),
        ),
        (
            "source.a | default(steps.calc.statuss)",
            Some((30, "did you mean `status`")),
        ),
        ("state.cursr", Some((6, "did you mean `cursor`"))),
        ("target.respnse.body", Some((7, "did you mean `response`"))),
        (
            "target.response.bdy",
            Some((16, "expected a member of target.response: body, status")),
        ),
        ("trigger.body.headrs", None),
        ("trigger.payload[0].x", None),
        ("trigger.headers.x-headrs", None),
        ("trigger[\"query\"].a", None),
        ("trigger.method", None),
        ("trigger.path_params.id", None),
        ("trigger.received_at", None),
        ("trigger.api.consumer", None),
        ("trigger.validation[*].field", None),
        ("trigger", None),
        ("steps.outptu.output.x", None),
        ("steps.calc", None),
        ("steps.calc.status", None),
        ("target.response", None),
        ("target.response.body.bdy", None),
        ("state.last_success_at", None),
        ("item.headrs", None),
        ("instance.cursr", None),
    ] {
        let unknown = expression(text).unwrap().1.definition_faults;
        match expect {
            Some((offset, message)) => {
                assert!(
                    unknown.len() == 1 && unknown[0].message.contains(message),
                    "{text}: {unknown:?}"
                );
                assert_eq!(unknown[0].offset, offset, "{text}");
            }
            None => assert_eq!(unknown, [], "{text}"),
        }
    }
}

#[test]
fn notes_what_is_named_outside() {
    let text = "steps.contact.output.id | lookup(eu, source.x) | adapter(tidy) | \
                default(trigger.body.y)";
    let references = expression(text).unwrap().1;
    assert_eq!(references.roots, [crate::Root::Steps, crate::Root::Source]);
    assert_eq!(references.steps[0].name.as_str(), "contact");
    assert_eq!(references.steps[0].offset, 6);
    assert_eq!(references.tables[0].name.as_str(), "eu");
    assert_eq!(references.tables[0].offset, 33);
    assert_eq!(references.adapters[0].name.as_str(), "tidy");
    assert_eq!(references.adapters[0].offset, 57);
}

#[test]
fn warns_of_a_date_without_quotes() {
    let warnings = |text: &str| expression(text).unwrap().1.warnings;
    for (text, offset, written, quoted) in [
        ("2026-10-15", 0, "2026-10-15", "\"'2026-10-15'\""),
        (
            "source.day >= 2026-10-15 ",
            14,
            "2026-10-15",
            "`'2026-10-15'`",
        ),
        ("12/31/2026", 0, "12/31/2026", "\"'12/31/2026'\""),
    ] {
        let message = format!(
            "found `{written}`, which is computed; for the text itself write {quoted}, and put \
             blanks around the signs to compute it"
        );
        assert_eq!(warnings(text), [ParseError::new(offset, message)], "{text}");
    }
    for text in [
        "source.a | default(2026-10-15)",
        "source.net * (1-0.19)",
        "3.5/2",
        "10-20",
        "60*24",
        "2026 - 10 - 15",
        "1 / 3",
        "source.a-10",
        "-5",
        "source.a/10",
    ] {
        let found = expression(text).map(|(_, references)| references.warnings);
        assert!(found.unwrap_or_default().is_empty(), "{text}");
    }
    let refused = expression("2026-01-05").unwrap_err()[0].message.clone();
    assert_eq!(
        refused,
        "found `01`, expected a number; for the text itself write \"'2026-01-05'\""
    );
    assert_eq!(warnings("source.a | default(60/2)").len(), 1);
}

#[test]
fn warns_of_arithmetic_with_a_text() {
    let warnings = |text: &str| expression(text).unwrap().1.warnings;
    for (text, hint) in [
        (r#"source.a + "x""#, "texts are joined with `concat`"),
        ("'x' + source.a", "texts are joined with `concat`"),
        (
            "source.a * (source.b | uppercase)",
            "`number` makes a number of a text",
        ),
        (
            "trigger.query.page - 1",
            "`number` makes a number of a text",
        ),
    ] {
        let message = format!("found arithmetic with a text, which always fails; {hint}");
        assert_eq!(warnings(text), [ParseError::new(0, message)], "{text}");
    }
    for text in [
        "source.a + 1",
        "(trigger.query.page | number) - 1",
        "source.a + source.b",
    ] {
        assert_eq!(warnings(text), [], "{text}");
    }
}
