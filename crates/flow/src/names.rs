//! The names that a definition uses and an environment has, or lacks.

use kanat_catalog::{Action, Entry};

use crate::definition::{Definition, LocatedName, ReferenceKind, Step};
use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity};
use crate::duration::quoted;
use crate::yaml::{Member, Value};
use crate::{fields, nearest, params};

/// Resources of an environment, by name.
pub trait Names {
    /// The connector instance with this name.
    fn instance(&self, name: &str) -> Option<InstanceRef>;
    /// The instances of a catalog entry.
    fn instances_of(&self, entry: &str) -> Vec<InstanceRef>;
    /// Returns whether there is a lookup table with this name.
    fn table(&self, name: &str) -> bool;
    /// The id of the adapter with this name.
    fn adapter(&self, name: &str) -> Option<String>;
    /// The names of all instances, for suggestions.
    fn instance_names(&self) -> Vec<String>;
    /// The names of all lookup tables, for suggestions.
    fn table_names(&self) -> Vec<String>;
    /// The names of all adapters, for suggestions.
    fn adapter_names(&self) -> Vec<String>;
    /// Returns whether the environment has a variable with this name.
    fn variable(&self, name: &str) -> bool;
    /// The names of all variables, for suggestions.
    fn variable_names(&self) -> Vec<String>;
}

/// A connector instance as plans refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRef {
    /// Its id.
    pub id: String,
    /// The id of its catalog entry; empty when that is not known.
    pub entry: String,
}

/// Returns a warning for a definition whose name is not that of its flow.
pub fn check_flow_name(definition: &Definition, flow: &str) -> Option<Diagnostic> {
    if definition.name == flow {
        return None;
    }
    let Value::Map(members) = &definition.tree.value else {
        return None;
    };
    let is_name = |member: &&Member| matches!(member.name.as_str(), "flow" | "name");
    let member = members.iter().find(is_name)?;
    let message = format!(
        "found {}, and the flow is named {}: `kanat flow apply` of this definition makes another \
         flow; write `{}: {flow}` to keep the name",
        quoted(&definition.name),
        quoted(flow),
        member.name,
    );
    Some(Diagnostic {
        severity: Severity::Warning,
        ..Diagnostic::error(member.value.at, member.name.as_str(), message)
    })
}

/// Returns the names in a definition that the environment or a catalog entry lacks, and literal
/// params that their action does not take: warnings for a draft, which the caller makes errors at
/// deploy.
pub fn check_names(definition: &Definition, names: &dyn Names) -> Vec<Diagnostic> {
    let mut faults: Vec<Diagnostic> = Vec::new();
    let target = definition.target.as_ref().map(|target| &target.connector);
    for connector in definition.source.connector.iter().chain(target) {
        faults.extend(instance(connector, names).err());
    }
    if let Some(named) = &definition.adapter {
        faults.extend(adapter(named, names).err());
    }
    for step in &definition.steps {
        faults.extend(step_instance(step, names).err());
        match action(step) {
            Ok(action) => faults.extend(params::check(step, action)),
            Err(fault) => faults.push(fault),
        }
    }
    faults.extend(fields::unknown_fields(definition, names));
    // The nearest name is looked for only where it is reported.
    let more = MAX_DIAGNOSTICS.saturating_sub(faults.len());
    let references = definition.references.iter();
    let missing = references.filter_map(|(kind, named)| reference(*kind, named, names));
    faults.extend(missing.take(more));
    faults.sort_by_key(|fault| (fault.line, fault.column));
    faults
}

/// That what an expression names does not exist.
pub(crate) fn reference(
    kind: ReferenceKind,
    named: &LocatedName,
    names: &dyn Names,
) -> Option<Diagnostic> {
    match kind {
        ReferenceKind::Table if names.table(&named.name) => None,
        ReferenceKind::Table => Some(missing(named, "lookup table", &names.table_names())),
        ReferenceKind::Adapter => adapter(named, names).err(),
        ReferenceKind::Variable if names.variable(&named.name) => None,
        ReferenceKind::Variable => {
            let fault = missing(
                named,
                "variable of the environment",
                &names.variable_names(),
            );
            let hint = format!(
                "; `kanat environment update ENVIRONMENT --variable {}=VALUE` sets one",
                named.name
            );
            Some(Diagnostic {
                message: fault.message + &hint,
                ..fault
            })
        }
    }
}

/// The instance of this name.
pub(crate) fn instance(named: &LocatedName, names: &dyn Names) -> Result<InstanceRef, Diagnostic> {
    let found = names.instance(&named.name);
    found.ok_or_else(|| missing(named, "connector instance", &names.instance_names()))
}

/// The id of the adapter of this name.
pub(crate) fn adapter(named: &LocatedName, names: &dyn Names) -> Result<String, Diagnostic> {
    names
        .adapter(&named.name)
        .ok_or_else(|| missing(named, "adapter", &names.adapter_names()))
}

/// The instance that a step calls: the one that it names, or the only one of its entry.
pub(crate) fn step_instance(step: &Step, names: &dyn Names) -> Result<InstanceRef, Diagnostic> {
    let entry = quoted(&step.entry);
    if let Some(named) = &step.connector {
        let found = instance(named, names)?;
        if found.entry != step.entry && !found.entry.is_empty() {
            let message = format!(
                "found the connector instance {} of {:?}, expected one of {entry}",
                quoted(&named.name),
                found.entry
            );
            return Err(warning(named, message));
        }
        return Ok(found);
    }
    let mut found = names.instances_of(&step.entry);
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(only),
        (Some(_), more) => {
            let message = format!(
                "lacks the key \"connector\": the environment has {} instances of {entry}",
                more + 1
            );
            Err(warning(&step.action, message))
        }
        (None, _) => Err(warning(
            &step.action,
            format!("the environment has no connector instance of {entry}"),
        )),
    }
}

/// The action that a step names.
fn action(step: &Step) -> Result<&'static Action, Diagnostic> {
    if let Some(action) =
        kanat_catalog::entry(&step.entry).and_then(|entry| entry.action(&step.slug))
    {
        return Ok(action);
    }
    let full_names = |entry: &'static Entry| {
        entry
            .actions
            .iter()
            .map(|action| format!("{}.{}", entry.id, action.slug))
    };
    let known: Vec<String> = kanat_catalog::entries()
        .iter()
        .flat_map(full_names)
        .collect();
    Err(missing(&step.action, "action", &known))
}

fn missing(named: &LocatedName, kind: &str, known: &[String]) -> Diagnostic {
    let near = nearest::suggestion(&named.name, known.iter().map(String::as_str));
    warning(
        named,
        format!("the {kind} {} does not exist{near}", quoted(&named.name)),
    )
}

pub(crate) fn warning(named: &LocatedName, message: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        ..Diagnostic::error(named.at, &named.path, message)
    }
}
