//! Resources of its environment that a plan uses: the lookup tables and adapters that its texts
//! name, and the instances that it calls.

use std::collections::BTreeSet;

use kanat_mapping::{Expression, JsonTemplate, References, Template};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{FlowPlan, Mapping, field};

use super::names::EnvironmentNames;
use crate::app::users::variable_id;

/// The names that a plan's texts have for things of the environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub tables: BTreeSet<String>,
    pub adapters: BTreeSet<String>,
}

/// Returns the lookup tables and adapters that the plan's texts name.
pub fn names(plan: &FlowPlan) -> Names {
    let mut found = Names::default();
    expression(&plan.when, &mut found);
    expression(&plan.ordering_key, &mut found);
    expression(&plan.idempotency_key, &mut found);
    if let Some(map) = &plan.mapping {
        mapping(map, &mut found);
    }
    if let Some(target) = &plan.target {
        template(&target.endpoint, &mut found);
        target
            .headers
            .iter()
            .for_each(|header| template(&header.text, &mut found));
        expression(&target.success_when, &mut found);
    }
    for step in &plan.steps {
        expression(&step.when, &mut found);
        expression(&step.success_when, &mut found);
        json_template(&step.params, &mut found);
    }
    found
}

/// Ids of the connector instances that the plan names.
pub fn instances(plan: &FlowPlan) -> BTreeSet<&str> {
    let target = plan.target.iter().map(|target| target.instance.as_str());
    let steps = plan.steps.iter().map(|step| step.instance.as_str());
    let all = std::iter::once(plan.source_instance.as_str())
        .chain(target)
        .chain(steps);
    all.filter(|id| !id.is_empty()).collect()
}

/// Resource ids of all that the plan uses.
pub fn resource_ids(plan: &FlowPlan, names: &EnvironmentNames) -> Vec<String> {
    let instances = instances(plan)
        .into_iter()
        .map(|id| Kind::ConnectorInstance.resource_id(id));
    let named = self::names(plan);
    let tables = named
        .tables
        .iter()
        .filter_map(|name| names.table_id(name))
        .map(|id| Kind::LookupTable.resource_id(id));
    let called = named
        .adapters
        .iter()
        .filter_map(|name| names.adapter_id(name))
        .map(|id| id.as_str());
    let own = Some(plan.adapter.as_str()).filter(|id| !id.is_empty());
    let adapters: BTreeSet<&str> = called.chain(own).collect();
    let adapters = adapters.into_iter().map(|id| Kind::Adapter.resource_id(id));
    let variables = plan.variables.iter();
    let variables = variables.map(|name| variable_id(&plan.environment_id, name));
    let all = instances.chain(tables).chain(adapters).chain(variables);
    all.collect()
}

fn mapping(map: &Mapping, found: &mut Names) {
    for field in &map.fields {
        match &field.value {
            Some(field::Value::Expression(text)) => expression(text, found),
            Some(field::Value::Template(text)) => template(text, found),
            Some(field::Value::Each(each)) => {
                expression(&each.list, found);
                expression(&each.r#where, found);
                if let Some(map) = &each.map {
                    mapping(map, found);
                }
            }
            None => {}
        }
    }
}

/// A text that does not parse names nothing; the compiler of the plan has refused it already.
fn expression(text: &str, found: &mut Names) {
    if text.contains("{{") {
        template(text, found);
    } else if let Ok(parsed) = Expression::parse(text) {
        note(parsed.references(), found);
    }
}

fn template(text: &str, found: &mut Names) {
    if let Ok(parsed) = Template::parse(text) {
        note(parsed.references(), found);
    }
}

fn json_template(text: &str, found: &mut Names) {
    if let Ok(parsed) = JsonTemplate::parse(text) {
        note(parsed.references(), found);
    }
}

/// Returns the lookup tables and adapters that an expression or template names.
pub fn of(references: &References) -> Names {
    let mut found = Names::default();
    note(references, &mut found);
    found
}

fn note(references: &References, found: &mut Names) {
    found
        .tables
        .extend(references.tables.iter().map(|table| table.name.clone()));
    found.adapters.extend(
        references
            .adapters
            .iter()
            .map(|adapter| adapter.name.clone()),
    );
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::{Each, Field, Target};

    use super::*;

    #[test]
    fn finds_tables_and_adapters_wherever_an_expression_may_stand() {
        let each = Each {
            list: "source.items".to_owned(),
            r#where: String::new(),
            map: Some(Mapping {
                fields: vec![Field {
                    name: "sku".to_owned(),
                    value: Some(field::Value::Expression(
                        "item.sku | adapter(tidy) | lookup(skus)".to_owned(),
                    )),
                }],
            }),
        };
        let plan = FlowPlan {
            when: "source.a | lookup(conditions)".to_owned(),
            mapping: Some(Mapping {
                fields: vec![
                    Field {
                        name: "lines".to_owned(),
                        value: Some(field::Value::Each(each)),
                    },
                    Field {
                        name: "t".to_owned(),
                        value: Some(field::Value::Template(
                            "x {{ source.b | lookup(templates, ZZ) }}".to_owned(),
                        )),
                    },
                ],
            }),
            target: Some(Target {
                instance: "ci_1".to_owned(),
                endpoint: "/{{ source.c | lookup(endpoints) }}".to_owned(),
                success_when: "response.body | lookup(answers)".to_owned(),
                ..Target::default()
            }),
            ..FlowPlan::default()
        };
        let found = names(&plan);
        assert_eq!(
            found.tables.into_iter().collect::<Vec<_>>(),
            ["answers", "conditions", "endpoints", "skus", "templates"]
        );
        assert_eq!(found.adapters.into_iter().collect::<Vec<_>>(), ["tidy"]);
        assert_eq!(instances(&plan).into_iter().collect::<Vec<_>>(), ["ci_1"]);
    }
}
