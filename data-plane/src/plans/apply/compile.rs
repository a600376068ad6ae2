//! From a resource as it came to what runs, beside the environment that it is for.

use std::sync::Arc;

use kanat_catalog::Instance;
use kanat_catalog::instance::AccessToken;
use kanat_mapping::AdapterRef;
use kanat_model::{Timestamp, adapter};
use kanat_plan_stream::{Kind, schema};
use kanat_proto::node::v1::Resource;
use kanat_proto::plan::v1::{
    self, ConnectorInstance, ConsumerKey, EnvironmentSettings, FlowPlan, LookupTable, PublishedApi,
};
use kanat_script::{Adapter, Script, Scripts};
use prost::Message;

use super::Applied;
use crate::plans::deployed::Deployed;
use crate::plans::environment::Compiled;
use crate::plans::published::{Api, Host, Key};
use crate::plans::table::{Part, Table};

impl Applied {
    /// Errors with what keeps the resource from running, in words for an operator.
    pub(super) fn compile(&self, resource: &Resource) -> Result<Compiled, String> {
        let body = resource.body.as_ref();
        schema::OWN.check(schema::of(body))?;
        match Kind::parse(&resource.id) {
            Some((Kind::Flow, id)) => {
                has_what_it_takes(body)?;
                let plan: FlowPlan = decode(body)?;
                belongs(&plan.flow_id, id)?;
                belongs(&plan.environment_id, self.environment.id.as_str())?;
                self.check_references(&plan)?;
                let flow = Deployed::new(plan, resource.body.clone())
                    .map_err(|error| error.to_string())?;
                Ok(Compiled::Flow(Arc::new(flow)))
            }
            Some((Kind::LookupTable, id)) => {
                let table: LookupTable = decode(body)?;
                belongs(&table.id, id)?;
                let table = Table::new(table, |part| self.environment.part(part))?;
                Ok(Compiled::Table(Arc::new(table)))
            }
            Some((Kind::LookupPart, id)) => {
                let part: LookupTable = decode(body)?;
                belongs(&part.id, id)?;
                Ok(Compiled::Part(Arc::new(Part::new(part.entries))))
            }
            Some((Kind::ConnectorInstance, id)) => {
                let ConnectorInstance {
                    id: own,
                    name,
                    catalog_id,
                    config,
                    access_token,
                    access_token_ends_at: ends_at,
                    access_token_renewable: renewable,
                    access_token_refusal: refusal,
                } = decode(body)?;
                belongs(&own, id)?;
                let instance = Instance::new(&own, &name, &catalog_id, &config)?;
                if access_token.is_empty() {
                    let instance = if refusal.is_empty() {
                        instance
                    } else {
                        instance.with_refusal(refusal)
                    };
                    return Ok(Compiled::Instance(Arc::new(instance)));
                }
                let ends_at = Some(ends_at)
                    .filter(|at| *at > 0)
                    .map(Timestamp::from_millis);
                let token = AccessToken {
                    text: access_token,
                    ends_at,
                    renewable,
                };
                Ok(Compiled::Instance(Arc::new(
                    instance.with_access_token(token)?,
                )))
            }
            Some((Kind::Adapter, id)) => {
                let v1::Adapter {
                    id: own,
                    name,
                    version,
                    kind,
                    code,
                } = decode(body)?;
                belongs(&own, id)?;
                let kind = adapter::Kind::parse(&kind)
                    .ok_or_else(|| format!("{kind:?} is no type of an adapter"))?;
                Ok(Compiled::Adapter(Arc::new(Adapter {
                    id: own,
                    name,
                    version,
                    kind,
                    script: Script::new(code),
                })))
            }
            Some((Kind::PublishedApi, id)) => {
                let plan: PublishedApi = decode(body)?;
                belongs(&plan.id, id)?;
                belongs(&plan.environment_id, self.environment.id.as_str())?;
                let api = Api::compile(plan)?;
                match self.environment.routes.conflict(&api) {
                    Some(other) => Err(format!(
                        "published API {:?} has its method and path",
                        other.id
                    )),
                    None => Ok(Compiled::Api(Arc::new(api))),
                }
            }
            Some((Kind::ConsumerKey, id)) => {
                let plan: ConsumerKey = decode(body)?;
                belongs(&plan.id, id)?;
                belongs(&plan.environment_id, self.environment.id.as_str())?;
                Key::compile(plan).map(|key| Compiled::Key(Arc::new(key)))
            }
            Some((Kind::Environment, id)) => {
                let plan: EnvironmentSettings = decode(body)?;
                belongs(&plan.id, id)?;
                belongs(&plan.id, self.environment.id.as_str())?;
                Host::compile(plan).map(|host| Compiled::Host(Arc::new(host)))
            }
            None => Err("this build knows no resource of that kind".to_owned()),
        }
    }

    /// What a flow names must be here.
    pub(super) fn check_references(&self, plan: &FlowPlan) -> Result<(), String> {
        self.check_instances(plan)?;
        self.check_adapter(plan)
    }

    /// Every connector instance that a flow names must be here.
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

    /// The adapter that a flow's payloads go through must be here.
    fn check_adapter(&self, plan: &FlowPlan) -> Result<(), String> {
        let named = Some(plan.adapter.as_str()).filter(|id| !id.is_empty());
        match named.filter(|id| self.environment.adapter(AdapterRef::Id(id)).is_none()) {
            Some(missing) => Err(format!("adapter {missing:?} is not in the set")),
            None => Ok(()),
        }
    }
}

fn decode<M: Message + Default>(body: &[u8]) -> Result<M, String> {
    M::decode(body).map_err(|error| format!("the resource cannot be read: {error}"))
}

/// In a test, a build may lack a word of the language.
fn has_what_it_takes(body: &[u8]) -> Result<(), String> {
    match kanat_failpoint::text("plans.lacks") {
        Some(word) if body.windows(word.len()).any(|part| part == word.as_bytes()) => {
            Err(format!("this build has no {word}"))
        }
        Some(_) | None => Ok(()),
    }
}

fn belongs(own: &str, expected: &str) -> Result<(), String> {
    if own == expected {
        Ok(())
    } else {
        Err(format!(
            "the resource says {own:?} where {expected:?} is expected"
        ))
    }
}
