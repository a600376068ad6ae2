//! A definition that is right in itself: every text parsed into what it means. What it names may
//! not exist.

use std::time::Duration;

use jiff::tz::TimeZone;
use kanat_catalog::MASK;
use kanat_catalog::redact::is_secret_header;
use kanat_mapping::{Expression, JsonTemplate, Template};

use crate::diagnostic::{Diagnostic, Position};
use crate::fields::FieldUse;
use crate::literal;
use crate::retry;
use crate::schedule::CronExpression;
use crate::yaml::Node;

/// A flow as its definition says it.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The text of `flow`, or of `name`.
    pub name: String,
    /// 1 when the definition has none.
    pub version: u32,
    /// Empty when the definition has none.
    pub description: String,
    /// Trigger and source of its payloads.
    pub source: Source,
    /// A JavaScript adapter that reshapes the payload first.
    pub adapter: Option<LocatedName>,
    /// A message for which it is false ends as `filtered`.
    pub when: Option<Expression>,
    /// In the order in which they run.
    pub steps: Vec<Step>,
    /// Receiver of the mapping's output.
    pub target: Option<Target>,
    /// Absent when the payload goes out as it came.
    pub mapping: Option<Vec<Field>>,
    /// Messages with the same key go out one at a time, in order.
    pub ordering_key: Option<Expression>,
    /// A second message with the same key within a day is a duplicate.
    pub idempotency_key: Option<Expression>,
    /// How long its oldest message may wait for its first attempt before its intake is refused.
    pub backlog_age: Option<Duration>,
    /// Retries of a failed attempt; after the last one the message is a dead letter.
    pub retry: retry::Policy,
    /// Parts that are valid and do not do what they seem to do.
    pub warnings: Vec<Diagnostic>,
    /// Tables, adapters and variables that its expressions name.
    pub(crate) references: Vec<(ReferenceKind, LocatedName)>,
    /// Fields of connector instances that its expressions name.
    pub(crate) fields: Vec<FieldUse>,
    /// All of it as it was written.
    pub(crate) tree: Node,
}

impl Definition {
    /// Returns the names that it has for connector instances.
    pub fn instances(&self) -> impl Iterator<Item = &str> {
        let steps = self.steps.iter().filter_map(|step| step.connector.as_ref());
        let target = self.target.iter().map(|target| &target.connector);
        self.source
            .connector
            .iter()
            .chain(steps)
            .chain(target)
            .map(|named| named.name.as_str())
    }

    /// The names of the lookup tables that its expressions read, each once.
    pub fn tables(&self) -> Vec<&str> {
        self.named(ReferenceKind::Table)
    }

    /// The names of the variables of the environment that its expressions read, each once.
    pub fn variables(&self) -> Vec<&str> {
        self.named(ReferenceKind::Variable)
    }

    /// The names of one kind, each once, in their order.
    fn named(&self, wanted: ReferenceKind) -> Vec<&str> {
        let found = self.references.iter().filter(|(kind, _)| *kind == wanted);
        let mut names: Vec<&str> = found.map(|(_, named)| named.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Kind of a resource that an expression names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Table,
    Adapter,
    Variable,
}

/// A name of something outside the definition, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedName {
    /// As it is written.
    pub name: String,
    pub(crate) path: String,
    pub(crate) at: Position,
}

/// Source of a flow's payloads.
#[derive(Debug, Clone)]
pub struct Source {
    /// The connector instance whose config is `instance` in the source's templates.
    pub connector: Option<LocatedName>,
    /// Event or time that starts the flow.
    pub trigger: Trigger,
}

/// The five triggers.
#[derive(Debug, Clone)]
pub enum Trigger {
    /// An inbound HTTP POST.
    Webhook {
        /// How the sender proves itself.
        verify: Option<Verify>,
    },
    /// The clock.
    Schedule(Schedule),
    /// A URL asked again and again.
    Poll(Box<Poll>),
    /// A person or a program, through the API.
    Manual,
    /// A published API.
    Api,
}

impl Trigger {
    /// `webhook`, `schedule`, `poll`, `manual` or `api`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Schedule(_) => "schedule",
            Self::Poll(_) => "poll",
            Self::Manual => "manual",
            Self::Api => "api",
        }
    }
}

/// When a flow is due.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The five fields.
    pub cron: CronExpression,
    /// Time zone in which the fields are read.
    pub timezone: TimeZone,
    /// Its IANA name.
    pub timezone_name: String,
}

/// How an inbound webhook proves its sender. What a scheme does not use is empty.
#[derive(Debug, Clone)]
pub struct Verify {
    /// As in the flow language's table.
    pub scheme: String,
    /// Any of them is accepted.
    pub secrets: Vec<Template>,
    /// The header that carries the token or signature.
    pub header: String,
    /// The query parameter that carries the token.
    pub query: String,
    /// Text before the signature in its header.
    pub prefix: String,
    /// `hex` or `base64`.
    pub encoding: String,
    /// Token that a subscription challenge must carry.
    pub verify_token: Option<Template>,
    /// For `basic`.
    pub username: Option<Template>,
    /// For `basic`.
    pub password: Option<Template>,
    /// How far a timestamp may lie from now.
    pub tolerance: Duration,
}

/// How a URL is polled.
#[derive(Debug, Clone)]
pub struct Poll {
    /// Absolute, http or https.
    pub url: Template,
    /// In capitals.
    pub method: String,
    /// In the order of the definition.
    pub headers: Vec<(String, Template)>,
    /// Query parameters, in the order of the definition.
    pub params: Vec<(String, Template)>,
    /// Dotted path to the record array; empty when the answer is the array.
    pub records_path: String,
    /// Absent when there is one page.
    pub pagination: Option<Pagination>,
    /// Dotted path to the id of a record; empty when none is skipped.
    pub record_id: String,
    /// When it polls.
    pub timing: PollTiming,
}

/// When a poll is due.
#[derive(Debug, Clone)]
pub enum PollTiming {
    /// So long after the last one began.
    Interval(Duration),
    /// At these times.
    Schedule(Schedule),
}

/// How the pages of an answer follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pagination {
    /// Way to find the next page.
    pub strategy: Strategy,
    /// The most pages of a cycle; absent when the definition sets no cap.
    pub max_pages: Option<u32>,
}

/// The five strategies, each with its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// The answer holds the next cursor.
    Cursor {
        /// Path of the value in the answer.
        path: String,
        /// The request parameter that carries it.
        param: String,
    },
    /// The request counts records.
    Offset {
        /// The request parameter for the offset.
        param: String,
        /// Its increment.
        page_size: u32,
        /// Path of the total count in the answer; empty when it has none.
        total_path: String,
    },
    /// The request counts pages.
    Page {
        /// The request parameter for the number of the page.
        param: String,
        /// Number of the first page.
        first: u32,
        /// The request parameter for the size of a page, when it is sent.
        size_param: Option<String>,
        /// Number of records of a full page; absent when only an empty page is the last.
        size: Option<u32>,
    },
    /// The `Link` header with `rel=next`.
    LinkHeader,
    /// The answer holds the token of the next page.
    NextToken {
        /// Path of the value in the answer.
        path: String,
        /// The request parameter that carries it.
        param: String,
    },
}

/// A call of a catalog entry's action.
#[derive(Debug, Clone)]
pub struct Step {
    /// Unique in the flow; `steps.<name>` in later expressions.
    pub name: String,
    /// `<entry>.<slug>`.
    pub action: LocatedName,
    /// The catalog entry.
    pub entry: String,
    /// The entry's action.
    pub slug: String,
    /// Absent when the environment has one instance of the entry.
    pub connector: Option<LocatedName>,
    /// JSON text whose strings may be templates.
    pub params: String,
    pub(crate) params_node: Option<Node>,
    pub(crate) params_template: JsonTemplate,
    /// Effect of a failure.
    pub on_failure: OnFailure,
    /// It runs only when this is true.
    pub when: Option<Expression>,
    /// Condition that a successful answer has to satisfy.
    pub success_when: Option<Expression>,
}

impl Step {
    /// The params, parsed.
    pub fn params_template(&self) -> &JsonTemplate {
        &self.params_template
    }
}

/// Effect of a step's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The flow's retries apply.
    Retry,
    /// The message fails at once.
    Reject,
}

/// Receiver of the output.
#[derive(Debug, Clone)]
pub struct Target {
    /// The connector instance.
    pub connector: LocatedName,
    /// A path under the instance's base URL.
    pub endpoint: Template,
    /// In capitals.
    pub method: String,
    /// In the order of the definition.
    pub headers: Vec<(String, Template)>,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// Condition that a successful answer has to satisfy.
    pub success_when: Option<Expression>,
}

/// A field of the output.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its dots nest.
    pub name: String,
    /// Source of its value.
    pub value: FieldValue,
}

/// Source of a field's value.
#[derive(Debug, Clone)]
pub enum FieldValue {
    /// An expression.
    Expression(Expression),
    /// A text with `{{ }}`.
    Template(Template),
    /// A list, mapped item by item.
    Each {
        /// The list.
        list: Expression,
        /// Condition of the items that are mapped.
        filter: Option<Expression>,
        /// Fields of each item of the output.
        map: Vec<Field>,
    },
}

/// The definition as a JSON tree, keys in the order in which they were written; literal secrets are
/// masked, as in the plan.
pub fn config_json(definition: &Definition) -> String {
    let json = definition.tree.to_json_with(|path, text| {
        let shown = literal::shown(path, text);
        match path {
            ["source", "verify", "secret" | "verify_token" | "password"] => {
                masked(&shown).to_owned()
            }
            ["target", "headers", name] if is_secret_header(name) => masked(&shown).to_owned(),
            _ => shown,
        }
    });
    literal::masked_texts(json, &literal::mask_of(definition))
}

/// A template shows where the secret comes from; a literal is the secret.
pub(crate) fn masked(secret: &str) -> &str {
    let is_template = secret.trim_start().starts_with("{{") && secret.trim_end().ends_with("}}");
    if secret.is_empty() || is_template {
        secret
    } else {
        MASK
    }
}
