//! Compiles a resource for the environment that it belongs to.

use std::sync::Arc;

use kanat_mapping::AdapterRef;
use kanat_model::adapter;
use kanat_plan_stream::{Kind, plan_schema};
use kanat_proto::node::v1::Resource;
use kanat_proto::plan::v1::{
    self, ConnectorInstance, ConsumerKey, EnvironmentSettings, FlowPlan, LookupTable, PublishedApi,
};
use kanat_script::{Adapter, Script, Scripts};
use prost::Message;

use super::CompiledChange;
use crate::plans::deployed::DeployedFlow;
use crate::plans::environment::CompiledResource;
use crate::plans::published::{Api, Key, Settings};
use crate::plans::table::{Part, Table};

impl CompiledChange {
    /// Compiles a resource.
    ///
    /// # Errors
    /// The resource cannot run; the text is for an operator.
    pub(super) fn compile(&self, resource: &Resource) -> Result<CompiledResource, String> {
        let body = resource.body.as_ref();
        plan_schema::SUPPORTED.check(plan_schema::required_by(body))?;
        match Kind::parse(&resource.id) {
            Some((Kind::Flow, id)) => self.flow(resource, id),
            Some((Kind::LookupTable, id)) => self.table(decode(body)?, id),
            Some((Kind::LookupPart, id)) => part(decode(body)?, id),
            Some((Kind::ConnectorInstance, id)) => instance(decode(body)?, id),
            Some((Kind::Adapter, id)) => adapter(decode(body)?, id),
            Some((Kind::PublishedApi, id)) => self.api(decode(body)?, id),
            Some((Kind::ConsumerKey, id)) => self.key(decode(body)?, id),
            Some((Kind::Environment, id)) => self.settings(decode(body)?, id),
            None => Err("this build knows no resource of that kind".to_owned()),
        }
    }

    fn flow(&self, resource: &Resource, id: &str) -> Result<CompiledResource, String> {
        refuse_test_word(&resource.body)?;
        let plan: FlowPlan = decode(&resource.body)?;
        check_id(&plan.flow_id, id)?;
        check_id(&plan.environment_id, self.environment.id.as_str())?;
        self.check_references(&plan)?;
        let flow = DeployedFlow::new(plan, resource.body.clone());
        let flow = flow.map_err(|error| error.to_string())?;
        Ok(CompiledResource::Flow(Arc::new(flow)))
    }

    fn table(&self, table: LookupTable, id: &str) -> Result<CompiledResource, String> {
        check_id(&table.id, id)?;
        let table = Table::new(table, |part| self.environment.part(part))?;
        Ok(CompiledResource::Table(Arc::new(table)))
    }

    fn api(&self, plan: PublishedApi, id: &str) -> Result<CompiledResource, String> {
        check_id(&plan.id, id)?;
        check_id(&plan.environment_id, self.environment.id.as_str())?;
        let api = Api::compile(plan)?;
        match self.environment.routes.conflict(&api) {
            Some(other) => Err(format!(
                "published API {:?} has its method and path",
                other.id
            )),
            None => Ok(CompiledResource::Api(Arc::new(api))),
        }
    }

    fn key(&self, plan: ConsumerKey, id: &str) -> Result<CompiledResource, String> {
        check_id(&plan.id, id)?;
        check_id(&plan.environment_id, self.environment.id.as_str())?;
        Key::compile(plan).map(|key| CompiledResource::Key(Arc::new(key)))
    }

    fn settings(&self, plan: EnvironmentSettings, id: &str) -> Result<CompiledResource, String> {
        check_id(&plan.id, id)?;
        check_id(&plan.id, self.environment.id.as_str())?;
        Settings::compile(plan).map(|settings| CompiledResource::Settings(Arc::new(settings)))
    }

    /// Checks that all that a flow names is in the environment.
    pub(super) fn check_references(&self, plan: &FlowPlan) -> Result<(), String> {
        self.check_instances(plan)?;
        self.check_adapter(plan)
    }

    /// Checks that every connector instance that a flow names is in the environment.
    fn check_instances(&self, plan: &FlowPlan) -> Result<(), String> {
        let target = plan.target.iter().map(|target| &target.instance);
        let steps = plan.steps.iter().map(|step| &step.instance);
        let mut named = target
            .chain(steps)
            .chain([&plan.source_instance])
            .filter(|id| !id.is_empty());
        match named.find(|id| self.environment.instances.get(*id).is_none()) {
            Some(missing) => Err(format!("connector instance {missing:?} is not in the set")),
            None => Ok(()),
        }
    }

    /// Checks that the adapter of a flow's payloads is in the environment.
    fn check_adapter(&self, plan: &FlowPlan) -> Result<(), String> {
        let named = Some(plan.adapter.as_str()).filter(|id| !id.is_empty());
        match named.filter(|id| self.environment.adapter(AdapterRef::Id(id)).is_none()) {
            Some(missing) => Err(format!("adapter {missing:?} is not in the set")),
            None => Ok(()),
        }
    }
}

fn part(part: LookupTable, id: &str) -> Result<CompiledResource, String> {
    check_id(&part.id, id)?;
    Ok(CompiledResource::Part(Arc::new(Part::new(part.entries))))
}

fn instance(plan: ConnectorInstance, id: &str) -> Result<CompiledResource, String> {
    check_id(&plan.id, id)?;
    kanat_engine::instance(plan).map(|instance| CompiledResource::Instance(Arc::new(instance)))
}

fn adapter(plan: v1::Adapter, id: &str) -> Result<CompiledResource, String> {
    check_id(&plan.id, id)?;
    let kind = adapter::Kind::parse(&plan.kind)
        .ok_or_else(|| format!("{:?} is no type of an adapter", plan.kind))?;
    Ok(CompiledResource::Adapter(Arc::new(Adapter {
        id: plan.id,
        name: plan.name,
        version: plan.version,
        kind,
        script: Script::new(plan.code),
    })))
}

fn decode<M: Message + Default>(body: &[u8]) -> Result<M, String> {
    M::decode(body).map_err(|error| format!("the resource cannot be read: {error}"))
}

/// Refuses a body that contains the word of a failpoint. Tests use it for a build that lacks a word
/// of the language.
fn refuse_test_word(body: &[u8]) -> Result<(), String> {
    match kanat_failpoint::text("plans.lacks") {
        Some(word) if body.windows(word.len()).any(|part| part == word.as_bytes()) => {
            Err(format!("this build has no {word}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that an id in a resource is the one that is expected.
fn check_id(own: &str, expected: &str) -> Result<(), String> {
    if own == expected {
        Ok(())
    } else {
        Err(format!(
            "the resource says {own:?} where {expected:?} is expected"
        ))
    }
}
