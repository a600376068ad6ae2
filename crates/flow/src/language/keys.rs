//! Keys of definitions.

use super::{Key, Kind};

const fn required(path: &'static str, kind: Kind, text: &'static str) -> Key {
    Key {
        required: true,
        ..optional(path, kind, text)
    }
}

const fn optional(path: &'static str, kind: Kind, text: &'static str) -> Key {
    Key {
        path,
        kind,
        text,
        required: false,
        default: None,
    }
}

const fn with_default(
    path: &'static str,
    kind: Kind,
    text: &'static str,
    default: &'static str,
) -> Key {
    Key {
        default: Some(default),
        ..optional(path, kind, text)
    }
}

/// The keys, each map before its members.
pub static KEYS: &[Key] = &[
    optional(
        "flow",
        Kind::Text,
        "Name of the flow; `name` may stand in its place",
    ),
    optional(
        "name",
        Kind::Text,
        "Name of the flow, in the place of `flow`",
    ),
    with_default(
        "version",
        Kind::Whole {
            least: 1,
            most: 1_000_000_000,
        },
        "Version that you give to the definition; nothing reads it, and versions that run are \
         counted at deploys",
        "1",
    ),
    optional("description", Kind::Text, "What the flow is for"),
    required("source", Kind::Map, "What starts the flow"),
    optional(
        "source.connector",
        Kind::Text,
        "Connector instance whose fields are `instance` in the source's templates; `poll` needs it",
    ),
    required(
        "source.trigger",
        Kind::Words(&["webhook", "schedule", "poll", "manual", "api"]),
        "Event or time that starts the flow",
    ),
    optional(
        "source.verify",
        Kind::Map,
        "How an inbound webhook proves its sender",
    ),
    required(
        "source.verify.scheme",
        Kind::Words(&[
            "token",
            "hmac-sha256",
            "hmac-sha1",
            "hmac-sha512",
            "standard-webhooks",
            "github",
            "stripe",
            "shopify",
            "slack",
            "meta",
            "basic",
        ]),
        "The provider's way to sign, or a general one",
    ),
    optional(
        "source.verify.secret",
        Kind::Templates,
        "The secret, or a list while secrets are rotated",
    ),
    optional(
        "source.verify.header",
        Kind::Text,
        "Header that carries the token or signature",
    ),
    optional(
        "source.verify.query",
        Kind::Text,
        "Query parameter that carries the token",
    ),
    optional(
        "source.verify.prefix",
        Kind::Text,
        "Text before the signature in its header",
    ),
    with_default(
        "source.verify.encoding",
        Kind::Words(&["hex", "base64"]),
        "Encoding of the signature",
        "hex",
    ),
    optional(
        "source.verify.verify_token",
        Kind::Template,
        "Token that a subscription challenge must carry",
    ),
    optional(
        "source.verify.username",
        Kind::Template,
        "User name of the scheme `basic`",
    ),
    optional(
        "source.verify.password",
        Kind::Template,
        "Password of the scheme `basic`",
    ),
    with_default(
        "source.verify.tolerance",
        Kind::Tolerance,
        "How far a timestamp may lie from now",
        "300s",
    ),
    optional(
        "source.schedule",
        Kind::Text,
        "Five fields of cron, for the triggers `schedule` and `poll`",
    ),
    with_default(
        "source.timezone",
        Kind::Text,
        "IANA time zone of the schedule",
        "UTC",
    ),
    optional(
        "source.poll",
        Kind::Map,
        "What is polled, for the trigger `poll`",
    ),
    required(
        "source.poll.url",
        Kind::Template,
        "Absolute address; `instance` and `state` are known in it",
    ),
    with_default(
        "source.poll.method",
        Kind::Methods(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
        "Method of the requests; no body is sent",
        "GET",
    ),
    optional(
        "source.poll.headers",
        Kind::TemplateMap,
        "Headers of each request",
    ),
    optional(
        "source.poll.params",
        Kind::TemplateMap,
        "Parameters of the query; one that renders to nothing is not sent",
    ),
    optional(
        "source.poll.records_path",
        Kind::Text,
        "Dotted path to the list of records in the answer; without it the answer is the list",
    ),
    optional(
        "source.poll.pagination",
        Kind::Map,
        "How the next page is found; without it there is one page",
    ),
    required(
        "source.poll.pagination.strategy",
        Kind::Words(&["cursor", "offset", "link_header", "next_token", "page"]),
        "The way to the next page",
    ),
    optional(
        "source.poll.pagination.max_pages",
        Kind::Whole {
            least: 1,
            most: 1_000_000,
        },
        "Most pages of a cycle",
    ),
    optional(
        "source.poll.pagination.cursor_path",
        Kind::Text,
        "Path of the cursor in the answer, of `cursor`",
    ),
    optional(
        "source.poll.pagination.cursor_param",
        Kind::Text,
        "Parameter that sends the cursor, of `cursor`",
    ),
    optional(
        "source.poll.pagination.offset_param",
        Kind::Text,
        "Parameter of the offset, of `offset`",
    ),
    optional(
        "source.poll.pagination.page_size",
        Kind::Whole {
            least: 1,
            most: 1_000_000,
        },
        "Records of a full page, of `offset` and of `page`, where it is at most 10,000",
    ),
    optional(
        "source.poll.pagination.total_path",
        Kind::Text,
        "Path of the count of all records, of `offset`",
    ),
    optional(
        "source.poll.pagination.token_path",
        Kind::Text,
        "Path of the token in the answer, of `next_token`",
    ),
    optional(
        "source.poll.pagination.token_param",
        Kind::Text,
        "Parameter that sends the token, of `next_token`",
    ),
    optional(
        "source.poll.pagination.page_param",
        Kind::Text,
        "Parameter of the page's number, of `page`",
    ),
    with_default(
        "source.poll.pagination.first_page",
        Kind::Whole {
            least: 0,
            most: 1_000_000_000,
        },
        "Number of the first page, of `page`",
        "1",
    ),
    optional(
        "source.poll.pagination.page_size_param",
        Kind::Text,
        "Parameter that asks for `page_size`, of `page`",
    ),
    optional(
        "source.poll.record_id",
        Kind::Text,
        "Dotted path to the id of a record; one seen in the last 30 days, unchanged, is skipped",
    ),
    with_default(
        "source.poll.interval",
        Kind::Duration,
        "Time from one cycle to the next, at least 1s; `source.schedule` may stand in its place",
        "5m",
    ),
    optional(
        "adapter",
        Kind::Text,
        "JavaScript adapter that reshapes the payload before the mapping",
    ),
    optional(
        "when",
        Kind::Expression,
        "Condition; a message for which it is false ends as `filtered`",
    ),
    optional(
        "steps",
        Kind::List,
        "Calls of catalog actions before the target, in order",
    ),
    required(
        "steps[].name",
        Kind::Name,
        "Name of the step; `steps.<name>` in later expressions",
    ),
    required(
        "steps[].action",
        Kind::Text,
        "`<catalog entry>.<action>`, as in `email-delivery.send-email`",
    ),
    optional(
        "steps[].connector",
        Kind::Text,
        "Connector instance; may be left out when the environment has one of the entry",
    ),
    optional(
        "steps[].params",
        Kind::AnyMap,
        "Params of the action; their texts may be templates",
    ),
    optional(
        "steps[].on_failure",
        Kind::Words(&["reject"]),
        "A failure ends the message at once",
    ),
    optional(
        "steps[].when",
        Kind::Expression,
        "Condition; without it the step runs for every message",
    ),
    optional(
        "steps[].success_when",
        Kind::Expression,
        "Condition that a 2xx answer has to satisfy",
    ),
    optional("target", Kind::Map, "Receiver of the mapping's output"),
    required("target.connector", Kind::Text, "Connector instance"),
    required(
        "target.endpoint",
        Kind::Template,
        "Path under the connector's base URL",
    ),
    with_default(
        "target.method",
        Kind::Methods(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
        "Method of the request",
        "POST",
    ),
    optional(
        "target.headers",
        Kind::TemplateMap,
        "Headers of the request",
    ),
    with_default(
        "target.timeout",
        Kind::Duration,
        "How long an attempt may take",
        "30s",
    ),
    optional(
        "target.success_when",
        Kind::Expression,
        "Condition that a 2xx answer has to satisfy",
    ),
    optional(
        "mapping",
        Kind::Fields,
        "Fields of the output, by dotted names; without it the payload is delivered as it came",
    ),
    optional(
        "mapping.*",
        Kind::Expression,
        "Expression, text with `{{ }}`, or a map with `each`",
    ),
    required(
        "mapping.*.each",
        Kind::Expression,
        "List that is mapped item by item",
    ),
    optional(
        "mapping.*.where",
        Kind::Expression,
        "Condition of the items that are mapped",
    ),
    required(
        "mapping.*.map",
        Kind::Fields,
        "Fields of each item; `item` is the item",
    ),
    optional(
        "ordering_key",
        Kind::Expression,
        "Messages with the same key are delivered one at a time, in order of arrival",
    ),
    optional(
        "idempotency_key",
        Kind::Expression,
        "A second message with the same key within 24 h is a duplicate",
    ),
    optional(
        "backlog_age",
        Kind::Duration,
        "How long the oldest message may wait before the webhook answers 503",
    ),
    optional("on_error", Kind::Map, "What becomes of failed attempts"),
    with_default(
        "on_error.retry",
        Kind::Retry,
        "How often a failed attempt is repeated, and after which waits",
        "3x exponential(30s)",
    ),
    with_default(
        "on_error.then",
        Kind::Words(&["dead-letter"]),
        "What becomes of a message after its last attempt",
        "dead-letter",
    ),
    optional(
        "on_error.retry_on",
        Kind::Words(&["transient"]),
        "Only failures that may pass are retried",
    ),
];
