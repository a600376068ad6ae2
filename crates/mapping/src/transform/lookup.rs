//! Transforms that use the environment: lookup tables and adapters.

use kanat_model::message::{ErrorKind, Failure};

use super::{TransformResult, text};
use crate::environment::Environment;
use crate::node::Node;
use crate::scope::{AdapterRef, Lookup};
use crate::value::Value;
use crate::{EvaluationError, json};

/// Looks up a key. When it is missing, or the table does not have it, the result is the default or
/// undefined.
pub(super) fn lookup<'s>(
    value: &Value<'s>,
    table: &str,
    default: Option<&'s Node>,
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let found = if value.is_missing() {
        Lookup::NoKey
    } else {
        environment.scope.tables.lookup(table, &text::of(value)?)
    };
    match (found, default) {
        (Lookup::Value(found), _) => Ok(Value::plain(found)),
        (Lookup::NoKey, Some(default)) => environment.argument(Some(default)),
        (Lookup::NoKey, None) => Ok(Value::Undefined),
        (Lookup::NoTable, _) => Err(EvaluationError::new(
            ErrorKind::Configuration,
            format!("there is no lookup table named {table:?}"),
        )),
    }
}

/// Runs the adapter of that name on a value. Each call takes time in a process of its own: see
/// [`crate::Adapters`].
pub(super) fn adapter<'s>(
    value: &Value<'s>,
    name: &str,
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let of = |failure: Failure| EvaluationError::new(failure.kind, failure.message);
    match environment
        .scope
        .adapters
        .call(AdapterRef::Name(name), &value.to_json())
        .map_err(|error| of(error.into()))?
    {
        None => Ok(Value::Undefined),
        Some(output) => {
            json::check(output.as_bytes(), json::MAX_DEPTH).map_err(|error| {
                EvaluationError::new(
                    ErrorKind::Adapter,
                    format!("the adapter {name:?} gave what is no JSON: {error}"),
                )
            })?;
            Ok(Value::from_owned_json(output.trim().to_owned()))
        }
    }
}
