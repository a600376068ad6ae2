//! From a sample to its shape.

use kanat_json::{decode, items, members};

use super::{Shape, Type};

/// No deeper.
const MAX_DEPTH: usize = 16;
/// Items of a list that are looked at.
const MAX_ITEMS: usize = 50;
/// Values of a sample that are looked at.
const MAX_VALUES: usize = 5_000;
/// The longest name of a member that is kept, in bytes.
const MAX_NAME: usize = 200;

impl Shape {
    /// The shape of a sample, which is JSON that has been checked. What is beyond the bounds is not
    /// looked at.
    pub fn of(sample: &str) -> Self {
        let mut budget = MAX_VALUES;
        infer(sample.trim(), MAX_DEPTH, &mut budget)
    }
}

fn infer(value: &str, depth: usize, budget: &mut usize) -> Shape {
    let mut shape = Shape {
        seen: 1,
        ..Shape::default()
    };
    *budget = budget.saturating_sub(1);
    let Some(kind) = kind(value) else {
        return Shape::default();
    };
    shape.types.insert(kind);
    match kind {
        Type::Object => {
            shape.objects = 1;
            if depth > 0 {
                for (name, value) in members(value) {
                    if *budget == 0 {
                        break;
                    }
                    let name = decode(name);
                    if name.len() <= MAX_NAME {
                        shape.member(name.into_owned(), infer(value, depth - 1, budget));
                    }
                }
            }
        }
        Type::Array => {
            for item in items(value).take(if depth > 0 { MAX_ITEMS } else { 0 }) {
                if *budget == 0 {
                    break;
                }
                shape
                    .items
                    .get_or_insert_default()
                    .merge(infer(item, depth - 1, budget));
            }
        }
        Type::Boolean | Type::Integer | Type::Null | Type::Number | Type::String => {}
    }
    shape
}

fn kind(value: &str) -> Option<Type> {
    Some(match value.as_bytes().first()? {
        b'{' => Type::Object,
        b'[' => Type::Array,
        b'"' => Type::String,
        b't' | b'f' => Type::Boolean,
        b'n' => Type::Null,
        _ if value.contains(['.', 'e', 'E']) => Type::Number,
        _ => Type::Integer,
    })
}
