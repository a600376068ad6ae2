//! Paths, roots, literals, and what is there whatever the payload.

use crate::check;

#[test]
fn values_that_no_transform_touches_come_out_as_they_came() {
    check("source.big", "9007199254740993");
    check("source.price", "1.10");
    check("source.huge", "1e400");
    check("source.escaped", r#""a\/b\u00e9""#);
    check("source.object", r#"{"b": 1, "a": {"c": 2}}"#);
    check("source.nothing", "null");
    check("source.missing", "undefined");
    check("source.list", "[3, 1, 2, 1.0]");
}

#[test]
fn paths_take_names_indexes_and_strings() {
    check("source.object.a.c", "2");
    check("source['odd name']", r#""x""#);
    check(r#"source["object"]["a"].c"#, "2");
    check("source.größe", "3");
    check("source.list[0]", "3");
    check("source.list[4]", "undefined");
    check("source.list.a", "undefined");
    check("source.object[0]", "undefined");
    check("source.id.x", "undefined");
    check("source.nothing.x", "undefined");
}

#[test]
fn a_star_takes_the_member_of_every_item_that_has_it() {
    check("source.lines[*].qty", "[2,3]");
    check("source.lines[*].sku", r#"["a",null]"#);
    check("source.lines[*].nope", "[]");
    check("source.none[*].x", "[]");
    check("source.list[*]", "[3, 1, 2, 1.0]");
    check("source.id[*].x", "undefined");
    check("source.object[*]", "undefined");
    check("source.missing[*].x", "undefined");
    check("source.orders[*].lines[*].n", "[[1,2],[3]]");
    check("source.orders[*].lines[0].n", "[1,3]");
}

#[test]
fn every_root_has_its_document() {
    check("trigger.headers.x-shop", r#""north""#);
    check("trigger.headers.X-Shop", r#""north""#);
    check("trigger.query.q", r#""1""#);
    check("trigger.path_params.id", r#""7""#);
    check("trigger.method", r#""POST""#);
    check("trigger.body.id", "17");
    check("trigger.payload.object.b", "1");
    check("steps.contact.output.id", r#""c1""#);
    check("steps.contact.status", "201");
    check("target.response.body.ok", "true");
    check("target.response.status", "200");
    check("response.status", "202");
    check("response.headers.X-Request-Id", r#""r1""#);
    check("response.body.ok", "false");
    check("instance.region", r#""eu""#);
    check("state.cursor", r#""c9""#);
    check("item.x", "undefined");
}

#[test]
fn literals_stand_for_themselves() {
    check("'it\\'s'", r#""it's""#);
    check(
        r#""say \"x\" \u00e9\ud83d\ude00\n""#,
        r#""say \"x\" é😀\n""#,
    );
    check("-1.50e3", "-1.50e3");
    check("true", "true");
    check("null", "null");
    check("''", r#""""#);
}

#[test]
fn now_is_the_message_s_instant() {
    check("now()", r#""2026-01-31T08:15:00.123Z""#);
    check("'' | now", r#""2026-01-31T08:15:00.123Z""#);
    check("source.missing | now", r#""2026-01-31T08:15:00.123Z""#);
}

#[test]
fn uuids_differ() {
    let one = crate::evaluate("uuid()").unwrap();
    assert_eq!(one.len(), 38);
    assert_ne!(one, crate::evaluate("uuid()").unwrap());
}
