//! Answers that come in pieces of every size, beside the same read whole.

use super::*;

const BODY: &str = "\n{ \"skip\": {\"items\": [0]}, \"data\" : {\"items\": [{\"id\": 1.10}, [2] , \
                    \"x]\",null\n], \"total\": 7, \"next\": \"a\\\"b\"}, \"end\": \"\" } ";

/// Returns what is found in an answer that comes in pieces of this size.
fn found(
    body: &str,
    records: &str,
    value: &str,
    size: usize,
) -> Result<(Vec<String>, Option<String>), String> {
    let (taken, next) = super::found(body.as_bytes(), records, value, size)?;
    Ok((
        taken
            .into_iter()
            .map(|record| String::from_utf8(record.to_vec()).unwrap())
            .collect(),
        next,
    ))
}

#[test]
fn records_and_the_value_are_found_wherever_the_answer_is_divided() {
    for size in 1..=BODY.len() {
        let (records, next) = found(BODY, "data.items", "data.next", size).unwrap();
        assert_eq!(
            records,
            ["{\"id\": 1.10}", "[2]", "\"x]\"", "null"],
            "{size}"
        );
        assert_eq!(next.as_deref(), Some("a\"b"), "{size}");
        assert_eq!(
            found(BODY, "data.items", "data.total", size)
                .unwrap()
                .1
                .as_deref(),
            Some("7")
        );
    }
    let list = "[ 1.10 , 9007199254740993 ]";
    assert_eq!(
        found(list, "", "", 3).unwrap().0,
        ["1.10", "9007199254740993"]
    );
    for (body, path) in [
        ("[]", ""),
        (r#"{"a": []}"#, "a"),
        (r#"{"a": null, "b": 1}"#, "a"),
    ] {
        assert_eq!(
            found(body, path, "end", 2).unwrap(),
            (Vec::new(), None),
            "{body}"
        );
    }
}

#[test]
fn missing_records_and_invalid_json_are_reported() {
    for (body, path, told) in [
        (
            BODY,
            "data.total",
            "records_path \"data.total\" is no list of records",
        ),
        (
            BODY,
            "data.itemz",
            "records_path \"data.itemz\" is not in the answer",
        ),
        ("{}", "", "the answer is no list of records"),
        ("7", "", "the answer is no list of records"),
        (
            r#"{"a": [], "a": []}"#,
            "a",
            "records_path \"a\" is in the answer twice",
        ),
        (
            "{\"a\": [1,\n {\"é\": tru}]}",
            "a",
            "the answer is no JSON: line 2, column 8: found `t`, expected a value",
        ),
        (
            "{\"a\": [1 2]}",
            "a",
            "the answer is no JSON: line 1, column 10: found `2`, expected `,` or `]`",
        ),
        (
            "[1,]",
            "",
            "the answer is no JSON: line 1, column 4: found the end, expected a value",
        ),
        (
            "[1] x",
            "",
            "the answer is no JSON: line 1, column 5: found `x`, expected the end",
        ),
        (
            "[1,2",
            "",
            "the answer is no JSON: line 1, column 4: found the end, and the answer goes on",
        ),
        (
            "<html>",
            "a",
            "the answer is no JSON: line 1, column 1: found `<`, expected a value",
        ),
        ("", "a", "the answer is empty"),
        (
            "{\u{feff}\"a\": []}",
            "a",
            "the answer is no JSON: line 1, column 2: found `\\xef`, expected a key in double \
             quotes",
        ),
    ] {
        for size in [1, 4, 100] {
            assert_eq!(
                found(body, path, "", size).unwrap_err(),
                told,
                "{body} by {size}"
            );
        }
    }
}

proptest::proptest! {
    #[test]
    fn an_answer_that_comes_in_pieces_is_as_one_that_is_there(
        inner in r#"[\[\]{}:,"\\0-9a-c. truefalsn]{0,30}"#,
        records in r"a(\.[ab])?",
        value in r"[abc](\.[a-c])?",
        size in 1..9usize,
    ) {
        let body = format!("{{\"a\":[{inner}],\"c\":{{\"a\":\"x\",\"b\":[1]}}}}");
        let whole = json::check(body.as_bytes(), json::MAX_DEPTH).is_ok();
        let found = found(&body, &records, &value, size);
        if !whole {
            proptest::prop_assert!(found.is_err(), "{} {:?}", body, found);
        } else if let Ok((taken, next)) = found {
            proptest::prop_assert_eq!(taken, page::records(&body, &records).unwrap());
            if records != value {
                proptest::prop_assert_eq!(next, page::value(&body, &value));
            }
        }
    }
}
