//! Faults of a definition, in one form for every command that takes one.

use std::io::IsTerminal;

use annotate_snippets::Renderer;
use kanat_flow::{Diagnostic, InstanceRef, Names, Severity};
use serde_json::json;

use crate::client::Refusal;
use crate::commands::Session;
use crate::exit::failure;
use crate::output::{self, Json, excerpt};

/// Shows the lines of `source` that a refusal is about; other errors stay as they are.
pub fn explain(file: &str, source: &str, error: anyhow::Error) -> anyhow::Error {
    let Some(refusal) = error.downcast_ref::<Refusal>() else {
        return error;
    };
    let faults: Option<Vec<Diagnostic>> = refusal
        .details
        .iter()
        .map(|(field, message)| excerpt::of_detail(field, message))
        .collect();
    match faults {
        Some(faults) if !faults.is_empty() => {
            complain(file, source, &faults);
            failure(format!("{file} has {}", counted(faults.len())))
        }
        Some(_) | None => error,
    }
}

/// Shows the lines of a flow's stored definition that a refusal is about. `path` is that of the
/// flow.
pub async fn explain_stored(session: &Session, path: &str, error: anyhow::Error) -> anyhow::Error {
    match session.client.get(path, &[]).await {
        Ok(flow) => {
            let name = format!("flow {}", flow.text("name"));
            explain(&name, &flow.text("yamlConfig"), error)
        }
        Err(_) => error,
    }
}

/// Prints faults on standard error.
pub fn complain(file: &str, source: &str, faults: &[Diagnostic]) {
    let renderer = renderer(&std::io::stderr());
    output::hint(&excerpt::render(file, source, faults, &renderer));
}

/// Faults for standard output.
pub fn report(file: &str, source: &str, faults: &[Diagnostic]) -> String {
    excerpt::render(file, source, faults, &renderer(&std::io::stdout()))
}

/// A number of errors in words.
pub fn counted(errors: usize) -> String {
    if errors == 1 {
        "1 error".to_owned()
    } else {
        format!("{errors} errors")
    }
}

fn renderer(stream: &impl IsTerminal) -> Renderer {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if stream.is_terminal() && wanted {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
}

/// Checks a definition without a service: all but whether what it names exists. The answer is that
/// of the API.
pub fn check(source: &str) -> Json {
    let (errors, warnings) = match kanat_flow::parse(source) {
        Ok(definition) => {
            let mut warnings = kanat_flow::check_names(&definition, &AnyNames);
            warnings.extend(definition.warnings);
            (Vec::new(), warnings)
        }
        Err(errors) => (errors, Vec::new()),
    };
    let of_answer = |found: &[Diagnostic], severity: &str| {
        let items = found.iter().map(|item| {
            json!({
                "severity": severity, "message": item.message, "path": item.path,
                "line": item.line, "column": item.column,
            })
        });
        items.collect::<Vec<_>>()
    };
    Json::from(json!({
        "valid": errors.is_empty(),
        "errors": of_answer(&errors, "error"),
        "warnings": of_answer(&warnings, "warning"),
    }))
}

/// An environment that has whatever a definition names.
struct AnyNames;

impl Names for AnyNames {
    fn instance(&self, _: &str) -> Option<InstanceRef> {
        Some(InstanceRef {
            id: String::new(),
            entry: String::new(),
        })
    }

    fn instances_of(&self, _: &str) -> Vec<InstanceRef> {
        self.instance("").into_iter().collect()
    }

    fn table(&self, _: &str) -> bool {
        true
    }

    fn adapter(&self, _: &str) -> Option<String> {
        Some(String::new())
    }

    fn instance_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn adapter_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn variable(&self, _: &str) -> bool {
        true
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The faults at `path` of an answer of the API.
pub fn faults(answer: &Json, path: &str) -> Vec<Diagnostic> {
    answer.list(path).iter().map(excerpt::of_answer).collect()
}

/// The faults in an answer to a check for which a deploy is refused, each with this severity. `own`
/// are the warnings of the definition by itself, which is deployed with them.
pub fn refusals(answer: &Json, own: &[Diagnostic], severity: Severity) -> Vec<Diagnostic> {
    let mut warnings = faults(answer, "warnings");
    warnings.retain(|warning| !is_deployed(warning, own));
    let found = faults(answer, "errors").into_iter().chain(warnings);
    found
        .map(|fault| Diagnostic { severity, ..fault })
        .collect()
}

/// Returns whether a definition with this warning is deployed nevertheless: a field of an instance
/// may get its value later, unless it is what callers are verified by, and a secret that is written
/// out is taken, as is what has a meaning that was hardly meant. What the environment lacks refuses
/// the deploy.
fn is_deployed(warning: &Diagnostic, own: &[Diagnostic]) -> bool {
    let is_unset = warning
        .message
        .ends_with("which the connector instance does not have set");
    let is_secret = warning
        .message
        .starts_with("found a secret that is written out");
    let is_own = own.iter().any(|known| known.message == warning.message);
    is_own || is_secret || is_unset && !warning.path.starts_with("source.verify")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment with one instance, which is of the entry `http`.
    struct OneInstance;

    impl Names for OneInstance {
        fn instance(&self, name: &str) -> Option<InstanceRef> {
            (name == "erp").then(|| InstanceRef {
                id: "ci_1".to_owned(),
                entry: "http".to_owned(),
            })
        }

        fn instances_of(&self, _: &str) -> Vec<InstanceRef> {
            Vec::new()
        }

        fn table(&self, _: &str) -> bool {
            false
        }

        fn adapter(&self, _: &str) -> Option<String> {
            None
        }

        fn instance_names(&self) -> Vec<String> {
            Vec::new()
        }

        fn table_names(&self) -> Vec<String> {
            Vec::new()
        }

        fn adapter_names(&self) -> Vec<String> {
            Vec::new()
        }

        fn variable(&self, _: &str) -> bool {
            false
        }

        fn variable_names(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn a_field_without_a_value_is_deployed_and_a_missing_name_is_not() {
        let text = "flow: x\nversion: 1\nsource:\n  trigger: manual\ntarget:\n  connector: erp\n  \
                    endpoint: /{{ instance.base_url }}\n  method: POST\nmapping:\n  a: source.a | \
                    lookup(missing)\n";
        let definition = kanat_flow::parse(text).unwrap();
        let unset = kanat_flow::fields::unset_fields(&definition, &OneInstance, &|_, _| false);
        let missing = kanat_flow::check_names(&definition, &OneInstance);
        let are_deployed = |found: &[Diagnostic], own: &[Diagnostic]| {
            assert!(!found.is_empty());
            found.iter().all(|warning| is_deployed(warning, own))
        };
        assert!(are_deployed(&unset, &[]));
        assert!(!are_deployed(&missing, &definition.warnings));
        for (line, other) in [
            ("target:", "when: source.total | decimal(2) > 100\ntarget:"),
            ("source.a | lookup(missing)", "source.x | default(item)"),
            (
                "  method: POST\n",
                "  method: POST\n  headers: { Content-Type: application/xml }\n",
            ),
        ] {
            let own = kanat_flow::parse(&text.replace(line, other)).unwrap();
            assert!(are_deployed(&own.warnings, &own.warnings), "{other}");
        }
    }
}
