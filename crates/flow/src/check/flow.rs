//! The definition as a whole: its keys, and how its parts go together.

use std::time::Duration;

use super::expression::Place;
use super::spot::{Members, Spot};
use super::{Checker, mapping, source, steps, target};
use crate::definition::{Definition, Trigger};
use crate::duration;
use crate::fields::InstanceOf;
use crate::retry;
use crate::yaml::Node;

const KEYS: &[&str] = &[
    "flow",
    "name",
    "version",
    "description",
    "source",
    "adapter",
    "when",
    "steps",
    "target",
    "mapping",
    "ordering_key",
    "idempotency_key",
    "backlog_age",
    "on_error",
];

/// The longest name of a flow in characters.
const MAX_NAME_CHARACTERS: usize = 200;

const MIN_BACKLOG_AGE: Duration = Duration::from_secs(1);

const MAX_VERSION: u32 = 1_000_000_000;

/// Checks everything, whatever is wrong, and only then gives up.
pub(super) fn definition(checker: &mut Checker, tree: Node) -> Option<Definition> {
    let spot = Spot {
        node: &tree,
        path: String::new(),
    };
    let members = checker.members(&spot, KEYS)?;
    let name = name(checker, &members);
    let version = match members.get("version") {
        Some(spot) => checker.whole(&spot, 1, MAX_VERSION),
        None => Some(1),
    };
    let description = match members.get("description") {
        Some(spot) => checker.any_text(&spot, "a text").map(str::to_owned),
        None => Some(String::new()),
    };
    let source = checker
        .required(&members, "source")
        .and_then(|spot| source::source(checker, &spot));
    let has_source_connector = source
        .as_ref()
        .is_none_or(|source| source.connector.is_some());
    let before = |name| Place {
        source: true,
        instance: has_source_connector.then_some(InstanceOf::Source),
        ..Place::new(name)
    };
    let adapter = optional(members.get("adapter"), |spot| {
        checker.named(spot, "a text, the name of an adapter")
    });
    let when = optional(members.get("when"), |spot| {
        checker.expression(spot, before("when"))
    });
    let steps = steps::steps(checker, &members);
    let target = optional(members.get("target"), |spot| target::target(checker, spot));
    let mapping = optional(members.get("mapping"), |spot| {
        mapping::mapping(checker, spot, members.has("target"))
    });
    let ordering_key = optional(members.get("ordering_key"), |spot| {
        checker.expression(spot, before("ordering_key"))
    });
    let idempotency_key = optional(members.get("idempotency_key"), |spot| {
        checker.expression(spot, before("idempotency_key"))
    });
    let backlog_age = optional(members.get("backlog_age"), |spot| {
        checker.duration(spot, MIN_BACKLOG_AGE, duration::MAX)
    });
    let retry = match members.get("on_error") {
        Some(spot) => on_error(checker, &spot),
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

/// What `read` makes of a key that may be left out; `None` when it is there and wrong.
pub(super) fn optional<'n, T>(
    spot: Option<Spot<'n>>,
    read: impl FnOnce(&Spot<'n>) -> Option<T>,
) -> Option<Option<T>> {
    match spot {
        Some(spot) => read(&spot).map(Some),
        None => Some(None),
    }
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
    let spot = match members.get("flow").or_else(|| members.get("name")) {
        Some(spot) => spot,
        None => checker.required(members, "flow")?,
    };
    let name = checker.text(&spot, "a text, the name of the flow")?;
    if name.chars().count() > MAX_NAME_CHARACTERS || name.chars().any(char::is_control) {
        checker.wrong(
            &spot,
            &format!("a name of one line and at most {MAX_NAME_CHARACTERS} characters"),
        );
    }
    Some(name.trim().to_owned())
}

fn on_error(checker: &mut Checker, spot: &Spot) -> Option<retry::Policy> {
    let members = checker.members(spot, &["retry", "then", "retry_on"])?;
    let policy = match members.get("retry") {
        Some(spot) => checker
            .text(&spot, "a text such as 3x exponential(30s)")
            .and_then(|text| {
                let at = spot.at_offset(retry::fault_offset(text));
                retry::parse(text)
                    .map_err(|message| checker.report(at, &spot.path, message))
                    .ok()
            }),
        None => Some(retry::Policy::default()),
    };
    let then = optional(members.get("then"), |spot| {
        checker.word(spot, &["dead-letter"])
    });
    let retry_on = optional(members.get("retry_on"), |spot| {
        checker.word(spot, &["transient"])
    });
    then?;
    Some(retry::Policy {
        transient_only: retry_on?.is_some(),
        ..policy?
    })
}
