//! A plan for people to read: no token hashes, no secrets. Written as text, so that the params of
//! steps keep their digits.

use kanat_catalog::redact::is_secret_header;
use kanat_proto::plan::v1 as plan;
use serde_json::value::RawValue;

use crate::definition::masked;
use crate::literal;
use crate::retry;

/// The plan as a JSON object. What is empty is left out; literal secrets are masked.
pub fn plan_json(plan: &plan::FlowPlan) -> String {
    let kind = plan
        .trigger
        .as_ref()
        .and_then(|trigger| trigger.kind.as_ref());
    let verify = match kind {
        Some(plan::trigger::Kind::Webhook(webhook)) => webhook.verify.as_ref(),
        Some(
            plan::trigger::Kind::Manual(_)
            | plan::trigger::Kind::Schedule(_)
            | plan::trigger::Kind::Poll(_)
            | plan::trigger::Kind::Api(_),
        )
        | None => None,
    };
    let of_senders = verify.into_iter().flat_map(|verify| {
        let single = [&verify.verify_token, &verify.password];
        verify.secrets.iter().chain(single)
    });
    let of_senders = of_senders.filter(|secret| masked(secret) != secret.as_str());
    let mask = literal::everywhere(plan.literal_secrets.iter().chain(of_senders));
    literal::masked_texts(written(plan), &mask)
}

fn written(plan: &plan::FlowPlan) -> Json {
    object([
        ("flowId", text(&plan.flow_id)),
        ("flowName", text(&plan.flow_name)),
        ("environmentId", text(&plan.environment_id)),
        ("version", Some(plan.version.to_string())),
        ("paused", Some(plan.paused.to_string())),
        (
            "trigger",
            plan.trigger
                .as_ref()
                .and_then(|trigger| trigger.kind.as_ref())
                .map(trigger),
        ),
        ("sourceInstance", text(&plan.source_instance)),
        ("adapter", text(&plan.adapter)),
        ("when", text(&plan.when)),
        ("steps", list(plan.steps.iter().map(step))),
        ("mapping", plan.mapping.as_ref().and_then(mapping)),
        ("target", plan.target.as_ref().map(target)),
        ("orderingKey", text(&plan.ordering_key)),
        ("idempotencyKey", text(&plan.idempotency_key)),
        ("backlogAgeMs", number(plan.backlog_age_ms)),
        (
            "variables",
            list(plan.variables.iter().map(|name| quoted(name))),
        ),
        ("retry", plan.retry.as_ref().map(retry)),
    ])
}

/// JSON text.
type Json = String;

/// An object of the members that are there.
fn object<'m>(members: impl IntoIterator<Item = (&'m str, Option<Json>)>) -> Json {
    let kept = members
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{}:{}", quoted(name), value?)));
    format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
}

/// A list that is not empty.
fn list(items: impl IntoIterator<Item = Json>) -> Option<Json> {
    let items: Vec<Json> = items.into_iter().collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

/// A text that is not empty.
fn text(text: &str) -> Option<Json> {
    (!text.is_empty()).then(|| quoted(text))
}

fn secret(secret: &str) -> Option<Json> {
    text(masked(secret))
}

/// A number that is not zero.
fn number(number: u64) -> Option<Json> {
    (number != 0).then(|| number.to_string())
}

fn quoted(text: &str) -> Json {
    serde_json::Value::from(text).to_string()
}

fn trigger(kind: &plan::trigger::Kind) -> Json {
    match kind {
        plan::trigger::Kind::Webhook(webhook) => object([
            ("type", text("webhook")),
            ("verify", webhook.verify.as_ref().map(verify)),
        ]),
        plan::trigger::Kind::Manual(_) => object([("type", text("manual"))]),
        plan::trigger::Kind::Schedule(due) => object([
            ("type", text("schedule")),
            ("cron", text(&due.cron)),
            ("timezone", text(&due.timezone)),
        ]),
        plan::trigger::Kind::Poll(due) => poll(due),
        plan::trigger::Kind::Api(_) => object([("type", text("api"))]),
    }
}

fn verify(verify: &plan::Verify) -> Json {
    object([
        ("scheme", text(&verify.scheme)),
        (
            "secrets",
            list(verify.secrets.iter().filter_map(|text| secret(text))),
        ),
        ("header", text(&verify.header)),
        ("query", text(&verify.query)),
        ("prefix", text(&verify.prefix)),
        ("encoding", text(&verify.encoding)),
        ("verifyToken", secret(&verify.verify_token)),
        ("username", text(&verify.username)),
        ("password", secret(&verify.password)),
        ("toleranceSeconds", number(verify.tolerance_seconds.into())),
    ])
}

fn poll(poll: &plan::Poll) -> Json {
    let schedule = |due: &plan::Schedule| {
        object([("cron", text(&due.cron)), ("timezone", text(&due.timezone))])
    };
    object([
        ("type", text("poll")),
        (
            "url",
            text(&literal::shown(&["source", "poll", "url"], &poll.url)),
        ),
        ("method", text(&poll.method)),
        ("headers", named_texts(&poll.headers)),
        ("params", named_texts(&poll.params)),
        ("recordsPath", text(&poll.records_path)),
        ("pagination", poll.pagination.as_ref().map(pagination)),
        ("recordId", text(&poll.record_id)),
        ("intervalMs", number(poll.interval_ms)),
        ("schedule", poll.schedule.as_ref().map(schedule)),
    ])
}

fn pagination(pagination: &plan::Pagination) -> Json {
    object([
        ("strategy", text(&pagination.strategy)),
        ("maxPages", number(pagination.max_pages.into())),
        ("cursorPath", text(&pagination.cursor_path)),
        ("cursorParam", text(&pagination.cursor_param)),
        ("offsetParam", text(&pagination.offset_param)),
        ("pageSize", number(pagination.page_size.into())),
        ("totalPath", text(&pagination.total_path)),
        ("tokenPath", text(&pagination.token_path)),
        ("tokenParam", text(&pagination.token_param)),
        ("pageParam", text(&pagination.page_param)),
        ("pageSizeParam", text(&pagination.page_size_param)),
        (
            "firstPage",
            (pagination.strategy == "page").then(|| pagination.first_page.to_string()),
        ),
    ])
}

fn step(step: &plan::Step) -> Json {
    let is_json = serde_json::from_str::<&RawValue>(&step.params).is_ok();
    object([
        ("name", text(&step.name)),
        ("action", text(&format!("{}.{}", step.entry, step.action))),
        ("instance", text(&step.instance)),
        (
            "params",
            if is_json {
                Some(literal::shown_params(&step.params))
            } else {
                text(&step.params)
            },
        ),
        ("rejectOnFailure", Some(step.reject_on_failure.to_string())),
        ("when", text(&step.when)),
        ("successWhen", text(&step.success_when)),
    ])
}

fn mapping(mapping: &plan::Mapping) -> Option<Json> {
    list(mapping.fields.iter().map(field))
}

fn field(field: &plan::Field) -> Json {
    let (kind, value) = match &field.value {
        Some(plan::field::Value::Expression(expression)) => (
            "expression",
            text(&literal::shown(
                &["mapping", field.name.as_str()],
                expression,
            )),
        ),
        Some(plan::field::Value::Template(template)) => (
            "template",
            text(&literal::shown(&["mapping", field.name.as_str()], template)),
        ),
        Some(plan::field::Value::Each(each)) => {
            let map = each.map.as_ref().and_then(mapping);
            (
                "each",
                Some(object([
                    ("list", text(&each.list)),
                    ("where", text(&each.r#where)),
                    ("map", map),
                ])),
            )
        }
        None => ("expression", None),
    };
    object([("name", text(&field.name)), (kind, value)])
}

fn target(target: &plan::Target) -> Json {
    object([
        ("instance", text(&target.instance)),
        (
            "endpoint",
            text(&literal::shown(&["target", "endpoint"], &target.endpoint)),
        ),
        ("method", text(&target.method)),
        ("headers", named_texts(&target.headers)),
        ("timeoutMs", Some(target.timeout_ms.to_string())),
        ("successWhen", text(&target.success_when)),
    ])
}

/// Headers and parameters; those whose names say that they carry a credential show only templates.
fn named_texts(texts: &[plan::NamedText]) -> Option<Json> {
    let shown = |named: &plan::NamedText| {
        if is_secret_header(&named.name) {
            let keys = ["target", "headers", named.name.as_str()];
            secret(&literal::shown(&keys, &named.text))
        } else {
            Some(quoted(&named.text))
        }
    };
    (!texts.is_empty()).then(|| {
        object(
            texts
                .iter()
                .map(|named| (named.name.as_str(), shown(named))),
        )
    })
}

fn retry(retry: &plan::Retry) -> Json {
    let policy = retry::Policy::from_plan(retry);
    object([
        ("count", Some(policy.count.to_string())),
        ("backoff", text(policy.backoff.as_str())),
        ("durationMs", Some(retry.duration_ms.to_string())),
        ("transientOnly", Some(policy.transient_only.to_string())),
    ])
}
