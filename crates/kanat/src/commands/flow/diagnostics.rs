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

/// The faults in an answer to a check for which a deploy is refused, each with this severity.
pub fn refusals(answer: &Json, severity: Severity) -> Vec<Diagnostic> {
    let warnings = answer.list("warnings").iter();
    let warnings = warnings.filter(|warning| warning.text("refusesDeploy") == "true");
    let found = answer.list("errors").iter().chain(warnings);
    found
        .map(|fault| Diagnostic {
            severity,
            ..excerpt::of_answer(fault)
        })
        .collect()
}
