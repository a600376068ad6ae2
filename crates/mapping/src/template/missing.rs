//! Parts of templates that render to nothing, because their values are missing. A test of a flow
//! names them.

use super::{Part, Parts, Template};
use crate::environment::Environment;
use crate::{NoAdapters, Scope};

impl Template {
    /// Returns a sentence on the first expression whose value is null or undefined, of a template
    /// that is more than one expression. Calls no adapter.
    pub fn missing_part(&self, scope: &Scope) -> Option<String> {
        let scope = Scope {
            adapters: &NoAdapters,
            ..*scope
        };
        self.0.missing_part(&Environment::new(&scope))
    }
}

impl Parts {
    pub fn missing_part<'s>(&'s self, environment: &Environment<'s>) -> Option<String> {
        if let [_] = self.parts.as_slice() {
            return None;
        }
        self.parts.iter().find_map(|part| {
            let Part::Expression(expression) = part else {
                return None;
            };
            let value = expression.evaluate(environment).ok()?;
            value.is_missing().then(|| {
                format!(
                    "{} is {} and renders to nothing; `default` gives it a text",
                    expression.text,
                    value.type_name()
                )
            })
        })
    }
}
