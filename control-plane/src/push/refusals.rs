//! Resources that are withheld from builds. Deltas leave out a content that a build has refused,
//! until the same content is published again, or any resource other than a flow is published.
//! Snapshots have it in any case. A resource of a plan schema that the build lacks is never sent.
//!
//! The nack of a node ends the push in [`environment_sync`](super::environment_sync), which keeps
//! the resource as a deviation. `session::inbound` stores the refusal here. Deltas skip the content
//! from then on, until [`source`](super::source) finds a row that clears refusals, and
//! [`feed`](super::feed) forgets them.

use std::collections::HashMap;

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::{Hash, Kind, PlanSchemaRange};
use kanat_store::published::PublishedResource;
use parking_lot::Mutex;

use super::set::{PlanSet, ResourceEntry};

/// Refused resources, by environment, resource id and build.
#[derive(Debug, Default)]
pub struct Refusals {
    environments: Mutex<HashMap<EnvironmentId, EnvironmentRefusals>>,
}

/// Refused resources of one environment.
#[derive(Debug, Default)]
struct EnvironmentRefusals {
    /// Refusals of sets before this generation are ignored.
    since: u64,
    resources: ByResource,
}

type ByResource = HashMap<String, HashMap<String, Refusal>>;

/// Refusal of one content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub hash: Hash,
    pub message: String,
}

/// Returns whether refusals are void once these rows are published after `current`. They are if a
/// resource that is no flow was added or changed, because a refused flow may have needed it, or if
/// a resource was published again with the same content.
pub fn are_cleared_by(rows: &[PublishedResource], current: &PlanSet) -> bool {
    let clears = |row: &PublishedResource| {
        let is_flow = matches!(Kind::parse(&row.resource_id), Some((Kind::Flow, _)));
        let held = current.get(&row.resource_id);
        !is_flow || held.is_some_and(|entry| *entry.hash.as_bytes() == row.hash)
    };
    rows.iter().any(|row| !row.removed && clears(row))
}

/// Resources that are withheld from one build in one environment.
#[derive(Debug)]
pub struct Withheld<'a> {
    build: &'a str,
    plan_schemas: PlanSchemaRange,
    resources: ByResource,
}

impl Refusals {
    /// Notes that `build` refused this content of a resource, in the set of that generation.
    pub fn note(
        &self,
        (environment, generation): (&EnvironmentId, u64),
        build: &str,
        resource_id: &str,
        refusal: Refusal,
    ) {
        let mut environments = self.environments.lock();
        let refused = environments.entry(environment.clone()).or_default();
        if generation >= refused.since {
            refused
                .resources
                .entry(resource_id.to_owned())
                .or_default()
                .insert(build.to_owned(), refusal);
        }
    }

    /// Forgets the refusals in `environment` of sets before `generation`.
    pub fn forget(&self, environment: &EnvironmentId, generation: u64) {
        self.environments.lock().insert(
            environment.clone(),
            EnvironmentRefusals {
                since: generation,
                resources: ByResource::new(),
            },
        );
    }

    /// Returns the resources that are withheld from `build` in `environment`; refusals are few.
    pub fn withheld<'a>(
        &self,
        environment: &EnvironmentId,
        build: &'a str,
        plan_schemas: PlanSchemaRange,
    ) -> Withheld<'a> {
        let resources = self
            .environments
            .lock()
            .get(environment)
            .map(|refused| refused.resources.clone());
        Withheld {
            build,
            plan_schemas,
            resources: resources.unwrap_or_default(),
        }
    }
}

impl Withheld<'_> {
    /// Returns the plan schemas that the build can run.
    pub fn plan_schemas(&self) -> PlanSchemaRange {
        self.plan_schemas
    }

    /// Returns whether the build refused this content, or lacks its plan schema.
    pub fn contains(&self, resource_id: &str, entry: &ResourceEntry) -> bool {
        self.lacks(entry)
            || self
                .refusal(resource_id)
                .is_some_and(|refusal| refusal.hash == entry.hash)
    }

    /// Returns whether the build lacks the plan schema of the resource.
    pub fn lacks(&self, entry: &ResourceEntry) -> bool {
        self.plan_schemas.check(entry.required_plan_schema).is_err()
    }

    /// Returns why the build cannot run the resource: it lacks the plan schema, or gave this reason
    /// when it last refused a content of the resource.
    pub fn message(&self, resource_id: &str, entry: Option<&ResourceEntry>) -> Option<String> {
        let lacks =
            entry.and_then(|entry| self.plan_schemas.check(entry.required_plan_schema).err());
        lacks.or_else(|| Some(self.refusal(resource_id)?.message.clone()))
    }

    fn refusal(&self, resource_id: &str) -> Option<&Refusal> {
        self.resources.get(resource_id)?.get(self.build)
    }
}
