//! Transforms of lists and objects.

use crate::{check, fails};

#[test]
fn split_and_join_are_each_other_s_reverse() {
    check("'a,b,,c' | split(',')", r#"["a","b","","c"]"#);
    check("'' | split(',')", r#"[""]"#);
    check("'aé' | split('')", r#"["a","é"]"#);
    check("source.list | join('-')", r#""3-1-2-1.0""#);
    check("source.none | join(',')", r#""""#);
    check("source.lines[*].sku | join(', ')", r#""a, ""#);
    fails(
        "source.mixed | join(',')",
        "expected a string, a number or a boolean, found an object",
    );
    fails("source.id | join(',')", "expected a list, found a number");
}

#[test]
fn length_counts() {
    check("source.name | trim | length", "5");
    check("source.list | length", "4");
    check("source.object | length", "2");
    check("source.none | length", "0");
    check("source.missing | length", "undefined");
    fails(
        "source.id | length",
        "expected a string, a list or an object, found a number",
    );
}

#[test]
fn ends_of_a_list() {
    check("source.list | first", "3");
    check("source.list | last", "1.0");
    check("source.none | first", "undefined");
    check("source.lines[*].qty | last", "3");
    fails("source.name | first", "expected a list, found a string");
}

#[test]
fn unique_keeps_the_first_of_equal_values() {
    check("source.list | unique", "[3,1,2]");
    check("source.mixed | unique", r#"[1,"1",null,true,{"a": 1}]"#);
    check(
        r#"'[{"a":1,"b":2},{"b":2.0,"a":1},[],[]]' | parse_json | unique"#,
        r#"[{"a":1,"b":2},[]]"#,
    );
}

#[test]
fn sort_goes_by_value() {
    check("source.list | sort", "[1,1.0,2,3]");
    check(
        "'[10, 9, \"b\", \"a\", null, true, false, -1e1]' | parse_json | sort",
        r#"[-1e1,9,10,"a","b",false,true,null]"#,
    );
    check("source.none | sort", "[]");
    fails(
        "source.mixed | sort",
        "expected numbers, strings and booleans in the list, found an object",
    );
}

#[test]
fn keys_and_values_keep_their_order() {
    check("source.object | keys", r#"["b","a"]"#);
    check("source.object | values", r#"[1,{"c": 2}]"#);
    check(r#"'{"a":1,"b":2,"a":3}' | parse_json | values"#, "[3,2]");
    fails("source.list | keys", "expected an object, found a list");
}
