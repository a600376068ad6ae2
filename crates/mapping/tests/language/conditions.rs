//! Comparisons, `and`, `or`, `not`, `in`, and what counts as false.

use crate::check;

#[test]
fn numbers_compare_by_value_and_types_do_not_mix() {
    check("1 == 1.0", "true");
    check("source.big == 9007199254740992", "false");
    check("source.huge > 1e399", "true");
    check("source.id == '17'", "false");
    check("source.id != '17'", "true");
    check("source.nothing == source.missing", "true");
    check("source.missing == null", "true");
    check("source.empty == null", "false");
    check("false == 0", "false");
    check("source.list == source.list", "true");
    check("'a' < 'b'", "true");
    check("'2' < 10", "false");
    check("'2' >= 10", "false");
    check("null < 1", "false");
    check("null <= null", "false");
    check("2 <= 2", "true");
    check("2 > 10", "false");
}

#[test]
fn not_takes_the_whole_comparison() {
    check("not source.id == 17", "false");
    check("not source.missing", "true");
    check("not (source.yes and source.no)", "true");
}

#[test]
fn and_binds_before_or() {
    check("true or false and false", "true");
    check("(true or false) and false", "false");
    check("source.id and source.name", "true");
    check(
        "source.zero or source.empty or source.nothing or source.missing or source.no",
        "false",
    );
}

#[test]
fn what_is_decided_is_not_evaluated_further() {
    check("source.no and (source.missing | required)", "false");
    check("source.yes or (source.missing | required)", "true");
}

#[test]
fn in_searches_lists_objects_and_strings() {
    check("1.00 in source.list", "true");
    check("'1' in source.list", "false");
    check("source.country in 'at,de,ch' | split(',')", "true");
    check("'b' in source.object", "true");
    check("'c' in source.object", "false");
    check("'rüß' in source.name", "true");
    check("source.missing in source.mixed", "true");
    check("1 in source.missing", "false");
    check("1 in source.id", "false");
}

#[test]
fn words_that_begin_like_operators_are_names() {
    check("source.order", "undefined");
    check("source.no or source.id", "true");
    check("(source.id)in(source.list)", "false");
    check("source.not-there == source.in", "true");
}
