//! From a definition and an environment's names to the plan that nodes run.

use std::time::Duration;

use kanat_mapping::{Expression, Template};
use kanat_model::Timestamp;
use kanat_proto::plan::v1 as plan;

use crate::definition::{
    Definition, Field, FieldValue, OnFailure, Pagination, Poll, PollTiming, Schedule, Step,
    Strategy, Target, Trigger, Verify,
};
use crate::diagnostic::{Diagnostic, Severity};
use crate::literal;
use crate::names::{self, Names};

/// Identity of a flow in its plan, beyond the definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The flow's id.
    pub flow_id: String,
    /// The flow's name.
    pub flow_name: String,
    /// The account that owns it.
    pub account_id: String,
    /// Environment in which it runs.
    pub environment_id: String,
    /// The deployed version.
    pub version: u32,
    /// Tokens of its webhook; other triggers have none.
    pub webhook_tokens: Vec<WebhookToken>,
    /// Messages are accepted and held.
    pub paused: bool,
}

/// A token that opens a webhook, by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookToken {
    /// SHA-256 of the token's text.
    pub sha256: [u8; 32],
    /// Not accepted from this instant on.
    pub expires_at: Option<Timestamp>,
}

/// The plan of a definition. Errors are the names that the environment lacks.
pub fn compile(
    definition: &Definition,
    names: &dyn Names,
    identity: Identity,
) -> Result<plan::FlowPlan, Vec<Diagnostic>> {
    let as_errors = |faults: Vec<Diagnostic>| -> Vec<Diagnostic> {
        faults
            .into_iter()
            .map(|fault| Diagnostic {
                severity: Severity::Error,
                ..fault
            })
            .collect()
    };
    let faults = names::check_names(definition, names);
    if !faults.is_empty() {
        return Err(as_errors(faults));
    }
    named(definition, names, identity).map_err(|fault| as_errors(vec![fault]))
}

fn named(
    definition: &Definition,
    names: &dyn Names,
    identity: Identity,
) -> Result<plan::FlowPlan, Diagnostic> {
    let source = definition
        .source
        .connector
        .as_ref()
        .map(|connector| names::instance(connector, names))
        .transpose()?;
    let adapter = definition
        .adapter
        .as_ref()
        .map(|adapter| names::adapter(adapter, names))
        .transpose()?;
    let steps: Result<_, _> = definition
        .steps
        .iter()
        .map(|step| compiled_step(step, names))
        .collect();
    let target = definition
        .target
        .as_ref()
        .map(|target| compiled_target(target, names))
        .transpose()?;
    Ok(plan::FlowPlan {
        flow_id: identity.flow_id,
        flow_name: identity.flow_name,
        account_id: identity.account_id,
        environment_id: identity.environment_id,
        version: identity.version,
        paused: identity.paused,
        trigger: Some(plan::Trigger {
            kind: Some(trigger(
                &definition.source.trigger,
                &identity.webhook_tokens,
            )),
        }),
        source_instance: source.map(|instance| instance.id).unwrap_or_default(),
        adapter: adapter.unwrap_or_default(),
        when: text(definition.when.as_ref()),
        steps: steps?,
        target,
        mapping: definition.mapping.as_deref().map(compiled_mapping),
        ordering_key: text(definition.ordering_key.as_ref()),
        idempotency_key: text(definition.idempotency_key.as_ref()),
        retry: Some(definition.retry.to_plan()),
        made_from: None,
        literal_secrets: literal::of_runs(definition),
        backlog_age_ms: definition.backlog_age.map_or(0, millis),
        variables: owned(definition.variables()),
    })
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn text(expression: Option<&Expression>) -> String {
    expression
        .map(|expression| expression.text().trim().to_owned())
        .unwrap_or_default()
}

fn trigger(trigger: &Trigger, tokens: &[WebhookToken]) -> plan::trigger::Kind {
    match trigger {
        Trigger::Webhook { verify } => plan::trigger::Kind::Webhook(plan::Webhook {
            tokens: tokens.iter().map(webhook_token).collect(),
            verify: verify.as_ref().map(compiled_verify),
        }),
        Trigger::Manual => plan::trigger::Kind::Manual(plan::Manual {}),
        Trigger::Schedule(due) => plan::trigger::Kind::Schedule(schedule(due)),
        Trigger::Poll(due) => plan::trigger::Kind::Poll(poll(due)),
        Trigger::Api => plan::trigger::Kind::Api(plan::Api {}),
    }
}

fn webhook_token(token: &WebhookToken) -> plan::WebhookToken {
    plan::WebhookToken {
        sha256: token.sha256.to_vec(),
        expires_at: token.expires_at.map_or(0, Timestamp::as_millis),
    }
}

fn compiled_verify(verify: &Verify) -> plan::Verify {
    let text = |template: &Option<Template>| {
        template
            .as_ref()
            .map(|t| t.text().to_owned())
            .unwrap_or_default()
    };
    plan::Verify {
        scheme: verify.scheme.clone(),
        secrets: verify
            .secrets
            .iter()
            .map(|secret| secret.text().to_owned())
            .collect(),
        header: verify.header.clone(),
        query: verify.query.clone(),
        prefix: verify.prefix.clone(),
        encoding: verify.encoding.clone(),
        verify_token: text(&verify.verify_token),
        username: text(&verify.username),
        password: text(&verify.password),
        tolerance_seconds: u32::try_from(verify.tolerance.as_secs().max(1)).unwrap_or(u32::MAX),
    }
}

fn schedule(schedule: &Schedule) -> plan::Schedule {
    plan::Schedule {
        cron: schedule.cron.as_str().to_owned(),
        timezone: schedule.timezone_name.clone(),
    }
}

fn poll(poll: &Poll) -> plan::Poll {
    let (interval_ms, due) = match &poll.timing {
        PollTiming::Interval(interval) => (millis(*interval), None),
        PollTiming::Schedule(due) => (0, Some(schedule(due))),
    };
    plan::Poll {
        url: poll.url.text().to_owned(),
        method: poll.method.clone(),
        headers: named_texts(&poll.headers),
        params: named_texts(&poll.params),
        records_path: poll.records_path.clone(),
        pagination: poll.pagination.as_ref().map(pagination),
        record_id: poll.record_id.clone(),
        interval_ms,
        schedule: due,
    }
}

fn pagination(pagination: &Pagination) -> plan::Pagination {
    let common = plan::Pagination {
        max_pages: pagination.max_pages.unwrap_or(0),
        ..plan::Pagination::default()
    };
    match pagination.strategy.clone() {
        Strategy::Cursor { path, param } => plan::Pagination {
            strategy: "cursor".to_owned(),
            cursor_path: path,
            cursor_param: param,
            ..common
        },
        Strategy::Offset {
            param,
            page_size,
            total_path,
        } => plan::Pagination {
            strategy: "offset".to_owned(),
            offset_param: param,
            page_size,
            total_path,
            ..common
        },
        Strategy::Page {
            param,
            first,
            size_param,
            size,
        } => plan::Pagination {
            strategy: "page".to_owned(),
            page_param: param,
            first_page: first,
            page_size_param: size_param.unwrap_or_default(),
            page_size: size.unwrap_or(0),
            ..common
        },
        Strategy::LinkHeader => plan::Pagination {
            strategy: "link_header".to_owned(),
            ..common
        },
        Strategy::NextToken { path, param } => plan::Pagination {
            strategy: "next_token".to_owned(),
            token_path: path,
            token_param: param,
            ..common
        },
    }
}

fn compiled_step(step: &Step, names: &dyn Names) -> Result<plan::Step, Diagnostic> {
    Ok(plan::Step {
        name: step.name.clone(),
        entry: step.entry.clone(),
        action: step.slug.clone(),
        instance: names::step_instance(step, names)?.id,
        params: step.params.clone(),
        reject_on_failure: step.on_failure == OnFailure::Reject,
        when: text(step.when.as_ref()),
        success_when: text(step.success_when.as_ref()),
    })
}

fn compiled_target(target: &Target, names: &dyn Names) -> Result<plan::Target, Diagnostic> {
    Ok(plan::Target {
        instance: names::instance(&target.connector, names)?.id,
        endpoint: target.endpoint.text().to_owned(),
        method: target.method.clone(),
        headers: named_texts(&target.headers),
        timeout_ms: millis(target.timeout),
        success_when: text(target.success_when.as_ref()),
    })
}

pub(crate) fn compiled_mapping(fields: &[Field]) -> plan::Mapping {
    let field = |field: &Field| {
        let value = match &field.value {
            FieldValue::Expression(expression) => {
                plan::field::Value::Expression(expression.text().trim().to_owned())
            }
            FieldValue::Template(template) => {
                plan::field::Value::Template(template.text().to_owned())
            }
            FieldValue::Each { list, filter, map } => {
                let list = list.text().trim().to_owned();
                plan::field::Value::Each(plan::Each {
                    list,
                    map: Some(compiled_mapping(map)),
                    r#where: text(filter.as_ref()),
                })
            }
        };
        plan::Field {
            name: field.name.clone(),
            value: Some(value),
        }
    };
    plan::Mapping {
        fields: fields.iter().map(field).collect(),
    }
}

pub(crate) fn named_texts(texts: &[(String, Template)]) -> Vec<plan::NamedText> {
    let named = |(name, text): &(String, Template)| plan::NamedText {
        name: name.clone(),
        text: text.text().to_owned(),
    };
    texts.iter().map(named).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
