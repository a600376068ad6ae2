//! The definition as a whole: its keys, and how its parts go together.

use std::time::Duration;

use super::cursor::{Cursor, Members, optional};
use super::expression::Place;
use super::{Checker, mapping, source, steps, target};
use crate::definition::{Definition, Trigger};
use crate::duration;
use crate::fields::InstanceOf;
use crate::retry;
use crate::yaml::Node;

/// The longest name of a flow in characters.
const MAX_NAME_CHARACTERS: usize = 200;

const MIN_BACKLOG_AGE: Duration = Duration::from_secs(1);

const MAX_VERSION: u32 = 1_000_000_000;

/// Checks everything, whatever is wrong, and only then gives up.
pub(super) fn definition(checker: &mut Checker, tree: Node) -> Option<Definition> {
    let cursor = Cursor {
        node: &tree,
        path: String::new(),
    };
    let members = checker.members(&cursor, "")?;
    let name = name(checker, &members);
    let version = match members.get("version") {
        Some(cursor) => checker.whole(&cursor, 1, MAX_VERSION),
        None => Some(1),
    };
    let description = match members.get("description") {
        Some(cursor) => checker.any_text(&cursor, "a text").map(str::to_owned),
        None => Some(String::new()),
    };
    let source = checker
        .required(&members, "source")
        .and_then(|cursor| source::source(checker, &cursor));
    let has_source_connector = source
        .as_ref()
        .is_none_or(|source| source.connector.is_some());
    let before = |name| Place {
        source: true,
        instance: has_source_connector.then_some(InstanceOf::Source),
        ..Place::new(name)
    };
    let adapter = optional(members.get("adapter"), |cursor| {
        checker.named(cursor, "a text, the name of an adapter")
    });
    let when = optional(members.get("when"), |cursor| {
        checker.expression(cursor, before("when"))
    });
    let steps = steps::steps(checker, &members);
    let target = optional(members.get("target"), |cursor| {
        target::target(checker, cursor)
    });
    // An adapter may make another body of what the mapping gives.
    if let (true, false, Some(cursor), Some(Some(target))) = (
        members.has("mapping"),
        members.has("adapter"),
        members.get("target"),
        &target,
    ) {
        target::warn_of_content_type(checker, &cursor, target);
    }
    let mapping = optional(members.get("mapping"), |cursor| {
        let instance = members.has("target").then_some(InstanceOf::Target);
        mapping::mapping(checker, cursor, instance)
    });
    let ordering_key = optional(members.get("ordering_key"), |cursor| {
        checker.expression(cursor, before("ordering_key"))
    });
    let idempotency_key = optional(members.get("idempotency_key"), |cursor| {
        checker.expression(cursor, before("idempotency_key"))
    });
    let backlog_age = optional(members.get("backlog_age"), |cursor| {
        checker.duration(cursor, MIN_BACKLOG_AGE, duration::MAX)
    });
    let retry = match members.get("on_error") {
        Some(cursor) => on_error(checker, &cursor),
        None => Some(retry::Policy::default()),
    };
    let source = source?;
    if !members.has("steps") && !members.has("target") && !matches!(source.trigger, Trigger::Api) {
        let at = tree.at;
        let path = "";
        checker.report(
            at,
            path,
            "lacks both \"steps\" and \"target\", expected one of them at least",
        );
    }
    Some(Definition {
        name: name?,
        version: version?,
        description: description?,
        source,
        adapter: adapter?,
        when: when?,
        steps: steps?,
        target: target?,
        mapping: mapping?,
        ordering_key: ordering_key?,
        idempotency_key: idempotency_key?,
        backlog_age: backlog_age?,
        retry: retry?,
        references: Vec::new(),
        fields: Vec::new(),
        warnings: Vec::new(),
        tree,
    })
}

fn name(checker: &mut Checker, members: &Members) -> Option<String> {
    if members.has("flow") && members.has("name") {
        let (at, path) = members.key("name");
        checker.report(
            at,
            &path,
            "found \"name\" beside \"flow\", expected only one of them",
        );
    }
    let cursor = match members.get("flow").or_else(|| members.get("name")) {
        Some(cursor) => cursor,
        None => checker.required(members, "flow")?,
    };
    let name = checker.text(&cursor, "a text, the name of the flow")?;
    if name.chars().count() > MAX_NAME_CHARACTERS || name.chars().any(char::is_control) {
        checker.type_error(
            &cursor,
            &format!("a name of one line and at most {MAX_NAME_CHARACTERS} characters"),
        );
    }
    Some(name.trim().to_owned())
}

fn on_error(checker: &mut Checker, cursor: &Cursor) -> Option<retry::Policy> {
    let members = checker.members(cursor, "on_error")?;
    let policy = match members.get("retry") {
        Some(cursor) => checker
            .text(&cursor, "a text such as 3x exponential(30s)")
            .and_then(|text| {
                let at = cursor.at_offset(retry::fault_offset(text));
                retry::parse(text)
                    .map_err(|message| checker.report(at, &cursor.path, message))
                    .ok()
            }),
        None => Some(retry::Policy::default()),
    };
    let then = optional(members.get("then"), |cursor| {
        checker.one_of(cursor, &["dead-letter"])
    });
    let retry_on = optional(members.get("retry_on"), |cursor| {
        checker.one_of(cursor, &["transient"])
    });
    then?;
    Some(retry::Policy {
        transient_only: retry_on?.is_some(),
        ..policy?
    })
}
