//! Transforms of lists and objects.

use crate::language::ParameterKind::{Element, Expression, Text};
use crate::transform::Transform;
use crate::transform::element::Elementwise;

shapes! {
    pub(super) static LISTS:

    "join"(separator: required Text, "Text between the items")
    text "Text of the items of a list"
    example "source.tags | join('-')" on r#"{"tags":["a","b"]}"# gives r#""a-b""#
    make(of) Transform::Join(of.text(0));

    "length"()
    text "Number of characters of a text, of items of a list, or of members of an object"
    example "source.tags | length" on r#"{"tags":["a","b"]}"# gives "2"
    make() Transform::Length;

    "first"()
    text "First item of a list"
    example "source.tags | first" on r#"{"tags":["a","b"]}"# gives r#""a""#
    make() Transform::First;

    "last"()
    text "Last item of a list"
    example "source.tags | last" on r#"{"tags":["a","b"]}"# gives r#""b""#
    make() Transform::Last;

    "sum"(
        expression: optional Element,
            "What is added up of each item; the item itself when left out";
    )
    text "Sum of the items of a list"
    example "source.amounts | sum" on r#"{"amounts":[1.10,2.20]}"# gives "3.3"
    make(of) if of.has(0) { Transform::Each(Elementwise::Sum) } else { Transform::Sum };

    "unique"()
    text "List without repeated items"
    example "source.tags | unique" on r#"{"tags":["a","b","a"]}"# gives r#"["a","b"]"#
    make() Transform::Unique;

    "sort"()
    text "List in order"
    example "source.numbers | sort" on r#"{"numbers":[3,1,2]}"# gives "[1,2,3]"
    make() Transform::Sort;

    "keys"()
    text "List of the keys of an object"
    example "source.sizes | keys" on r#"{"sizes":{"s":1,"m":2}}"# gives r#"["s","m"]"#
    make() Transform::Keys;

    "values"()
    text "List of the values of an object"
    example "source.sizes | values" on r#"{"sizes":{"s":1,"m":2}}"# gives "[1,2]"
    make() Transform::Values;

    "map"(expression: required Element, "What becomes of each item")
    text "List of what an expression gives for each item"
    example "source.lines | map(item.sku)" on r#"{"lines":[{"sku":"a"},{"sku":"b"}]}"#
        gives r#"["a","b"]"#
    make() Transform::Each(Elementwise::Map);

    "where"(condition: required Element, "Condition of the items that stay")
    text "List of the items for which a condition holds"
    example "source.numbers | where(item > 1)" on r#"{"numbers":[1,2,3]}"# gives "[2,3]"
    make() Transform::Each(Elementwise::Where);

    "sort_by"(expression: required Element, "Key of each item")
    text "List in the order of a key of its items"
    example "source.lines | sort_by(item.n)" on r#"{"lines":[{"n":2},{"n":1}]}"#
        gives r#"[{"n":1},{"n":2}]"#
    make() Transform::Each(Elementwise::SortBy);

    "any"(condition: required Element, "Condition")
    text "Whether a condition holds for an item"
    example "source.numbers | any(item > 2)" on r#"{"numbers":[1,2,3]}"# gives "true"
    make() Transform::Each(Elementwise::Any);

    "all"(condition: required Element, "Condition")
    text "Whether a condition holds for all items"
    example "source.numbers | all(item > 2)" on r#"{"numbers":[1,2,3]}"# gives "false"
    make() Transform::Each(Elementwise::All);

    "min"()
    text "Smallest of the numbers or texts of a list"
    example "source.numbers | min" on r#"{"numbers":[3,1.0,2]}"# gives "1.0"
    make() Transform::Min;

    "max"()
    text "Greatest of the numbers or texts of a list"
    example "source.numbers | max" on r#"{"numbers":[3,1.0,2]}"# gives "3"
    make() Transform::Max;

    "group_by"(expression: required Element, "Key of each item")
    text "List of `{key, items}` in order of first appearance"
    example "source.lines | group_by(item.k)" on r#"{"lines":[{"k":1},{"k":2},{"k":1}]}"#
        gives r#"[{"key":1,"items":[{"k":1},{"k":1}]},{"key":2,"items":[{"k":2}]}]"#
    make() Transform::Each(Elementwise::GroupBy);

    "flatten"()
    text "List with the items of its lists in their places"
    example "source.lists | flatten" on r#"{"lists":[[1],[2,3],4]}"# gives "[1,2,3,4]"
    make() Transform::Flatten;

    "reverse"()
    text "List in reverse order"
    example "source.numbers | reverse" on r#"{"numbers":[1,2,3]}"# gives "[3,2,1]"
    make() Transform::Reverse;

    "slice"(
        from: required Expression, "Place of the first item, from 0; negative from the end";
        to: optional Expression, "Place behind the last item; the end when left out";
    )
    text "Part of a list"
    example "source.numbers | slice(1, 3)" on r#"{"numbers":[1,2,3,4]}"# gives "[2,3]"
    make() Transform::Slice;

    "contains"(value: required Expression, "Item, key or part that is looked for")
    text "Whether a list, an object or a text has a value"
    example "source.tags | contains('b')" on r#"{"tags":["a","b"]}"# gives "true"
    make() Transform::Contains;
}
