//! The fields of connector instances that a definition names as `instance.<field>`: whether the
//! catalog entry knows them, and whether the instance holds them.

use kanat_catalog::Entry;
use kanat_mapping::Template;

use crate::definition::{Definition, LocatedName, Trigger};
use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity};
use crate::duration::quoted;
use crate::names::{self, InstanceRef, Names};
use crate::nearest;
use crate::webhook_key::webhook_key;

/// Whose config `instance` is where an expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstanceOf {
    /// The source's connector.
    Source,
    /// The source's connector, in `source.verify`: without the field nobody is let in.
    Verify,
    /// The connector of the step with this index.
    Step(usize),
    /// The target's connector.
    Target,
}

/// A value of an instance that an expression names.
#[derive(Debug, Clone)]
pub(crate) struct FieldUse {
    /// The names that lead to it: a field first; none for the instance as a whole.
    pub(crate) names: Vec<String>,
    /// These with dots between them, and where they stand.
    pub(crate) place: LocatedName,
    /// The instance that it is a value of.
    pub(crate) of: InstanceOf,
    /// Why it may be no secret there.
    pub(crate) exposure: Option<Exposure>,
}

/// How a secret could be read where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// The value goes to another address than the instance's, or decides what is done.
    Place(&'static str),
    /// It is in the path of a URL.
    Path(&'static str),
    /// The value that is sent shows parts of it.
    Computed,
}

impl FieldUse {
    /// The field that it is or is in.
    fn field(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

/// Returns the ids of the instances whose configs have a part in what the definition says: those
/// whose fields it names, and those to which it sends headers. Each is there once.
pub fn configured_instances(definition: &Definition, names: &dyn Names) -> Vec<String> {
    let named = uses(definition, names).map(|(_, _, instance)| instance.id);
    let sent = sent_headers(definition)
        .filter(|sent| !sent.headers.is_empty())
        .filter_map(|sent| names.instance(&sent.connector.name));
    let mut ids: Vec<String> = named.chain(sent.map(|instance| instance.id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns a diagnostic for each field that its instance does not hold: an error in
/// `source.verify`, a warning elsewhere. `holds` tells of an instance's id and a field that the
/// entry knows whether there is a value.
pub fn unset_fields(
    definition: &Definition,
    names: &dyn Names,
    holds: &dyn Fn(&str, &str) -> bool,
) -> Vec<Diagnostic> {
    uses(definition, names)
        .filter_map(|(used, entry, instance)| {
            let name = used
                .field()
                .filter(|name| entry.knows(name) && !holds(&instance.id, name))?;
            let LocatedName { path, at, .. } = &used.place;
            let severity = match used.of {
                InstanceOf::Verify => Severity::Error,
                InstanceOf::Source | InstanceOf::Step(_) | InstanceOf::Target => Severity::Warning,
            };
            let message =
                format!("found instance.{name}, which the connector instance does not have set");
            Some(Diagnostic {
                severity,
                ..Diagnostic::error(*at, path, message)
            })
        })
        .collect()
}

/// Returns a warning for each header of the target and of the poll in whose place the instance
/// sends its own. `replaces` says so of an instance's id and a header.
pub fn replaced_headers(
    definition: &Definition,
    names: &dyn Names,
    replaces: &dyn Fn(&str, &str) -> bool,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for sent in sent_headers(definition) {
        let connector = sent.connector;
        let Some(instance) = names.instance(&connector.name) else {
            continue;
        };
        let replaced = sent.headers.iter().map(|(header, _)| header);
        found.extend(
            replaced
                .filter(|header| replaces(&instance.id, header))
                .map(|header| {
                    let message = format!(
                        "found the header {header}, in whose place the connector {:?} sends its \
                         own",
                        connector.name
                    );
                    let path = format!("{}.{header}", sent.path);
                    Diagnostic {
                        severity: Severity::Warning,
                        ..Diagnostic::error(connector.at, path, message)
                    }
                }),
        );
    }
    found
}

/// Headers that go to a connector.
struct SentHeaders<'d> {
    connector: &'d LocatedName,
    headers: &'d [(String, Template)],
    /// Path of the headers in the definition.
    path: &'static str,
}

fn sent_headers(definition: &Definition) -> impl Iterator<Item = SentHeaders<'_>> {
    let target = definition.target.as_ref().map(|target| SentHeaders {
        connector: &target.connector,
        headers: &target.headers,
        path: "target.headers",
    });
    let poll = match &definition.source.trigger {
        Trigger::Poll(poll) => {
            let connector = definition.source.connector.as_ref();
            connector.map(|connector| SentHeaders {
                connector,
                headers: &poll.headers,
                path: "source.poll.headers",
            })
        }
        _ => None,
    };
    target.into_iter().chain(poll)
}

/// Returns an error for each field of an instance that is the whole secret of `source.verify` and
/// whose value the scheme cannot use: nobody would be let in. `text` gives the value of an
/// instance's id and a field.
pub fn unusable_secrets(
    definition: &Definition,
    names: &dyn Names,
    text: &dyn Fn(&str, &str) -> Option<String>,
) -> Vec<Diagnostic> {
    let Trigger::Webhook {
        verify: Some(verify),
    } = &definition.source.trigger
    else {
        return Vec::new();
    };
    if verify.scheme != "standard-webhooks" {
        return Vec::new();
    }
    let is_whole = |field: &str| {
        let whole = format!("{{{{instance.{field}}}}}");
        verify
            .secrets
            .iter()
            .any(|secret| secret.text().split_whitespace().collect::<String>() == whole)
    };
    uses(definition, names)
        .filter(|(used, ..)| used.of == InstanceOf::Verify && is_whole(&used.place.name))
        .filter(|(used, _, instance)| {
            text(&instance.id, &used.place.name)
                .is_some_and(|text| !text.is_empty() && webhook_key(&text).is_none())
        })
        .map(|(used, ..)| {
            let LocatedName { name, path, at } = &used.place;
            let message = format!(
                "found a value of instance.{name} that the scheme standard-webhooks cannot use: \
                 it takes whsec_ and base64, and nothing else"
            );
            Diagnostic::error(*at, path, message)
        })
        .collect()
}

/// The fields that their catalog entry does not know.
pub(crate) fn unknown_fields(definition: &Definition, names: &dyn Names) -> Vec<Diagnostic> {
    uses(definition, names)
        .filter_map(|(used, entry, _)| {
            let field = used.field().filter(|field| !entry.knows(field))?;
            let near = nearest::suggestion(field, entry.known_fields());
            let message = format!(
                "found the field {}, which connector instances of {} do not have{near}",
                quoted(field),
                entry.id
            );
            Some(names::warning(&used.place, message))
        })
        .take(MAX_DIAGNOSTICS)
        .collect()
}

/// Returns an error for each secret of an instance that stands where it could be read. Instances
/// that do not exist are passed over.
pub fn exposed_secrets(definition: &Definition, names: &dyn Names) -> Vec<Diagnostic> {
    let exposed = uses(definition, names).filter_map(|(used, entry, _)| {
        let why = match used.exposure? {
            Exposure::Place(place) => format!("in {place}, where it could be read"),
            Exposure::Path(place) => format!("in the path of {place}, where it could be read"),
            Exposure::Computed => "in an expression that tells parts of it".to_owned(),
        };
        let LocatedName { name, path, at } = &used.place;
        let dot = if name.is_empty() { "" } else { "." };
        let message = format!(
            "found the secret instance{dot}{name} {why}; secrets stand in source.verify and, \
             whole or through concat, base64, url_encode or sha256, in headers, queries and \
             params of calls to their own connector"
        );
        entry
            .is_secret(&used.names)
            .then(|| Diagnostic::error(*at, path, message))
    });
    exposed.collect()
}

/// Each use with the instance that it is of, where that exists and is of an entry that is known.
fn uses<'d>(
    definition: &'d Definition,
    names: &'d dyn Names,
) -> impl Iterator<Item = (&'d FieldUse, &'static Entry, InstanceRef)> {
    definition.fields.iter().filter_map(move |used| {
        let instance = match used.of {
            InstanceOf::Source | InstanceOf::Verify => {
                names.instance(&definition.source.connector.as_ref()?.name)
            }
            InstanceOf::Step(index) => {
                names::step_instance(definition.steps.get(index)?, names).ok()
            }
            InstanceOf::Target => names.instance(&definition.target.as_ref()?.connector.name),
        }?;
        Some((used, kanat_catalog::entry(&instance.entry)?, instance))
    })
}
