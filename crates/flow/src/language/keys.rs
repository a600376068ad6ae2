//! Keys of definitions.

use super::Kind::{
    AnyMap, Duration, Expression, Fields, List, Map, Methods, Name, Retry, Template, TemplateMap,
    Templates, Text, Tolerance, Whole, Words,
};
use super::{Key, Kind};

/// Methods of requests to connectors.
const HTTP_METHODS: Kind = Methods(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);

/// Declares the keys. A row has the path of a key, whether its map must have it, its values, the
/// value of a definition without it, and a sentence.
macro_rules! keys {
    ($(
        $path:literal: $presence:ident $kind:expr $(, default $default:literal)?, $text:literal;
    )*) => {
        /// The keys, each map before its members.
        pub static KEYS: &[Key] = &[$(
            Key::$presence($path, $kind, $text)$(.with_default($default))?
        ),*];
    };
}

keys! {
    "flow": optional Text, "Name of the flow; `name` may stand in its place";
    "name": optional Text, "Name of the flow, in the place of `flow`";
    "version": optional Whole { least: 1, most: 1_000_000_000 }, default "1",
        "Version that you give to the definition; nothing reads it, and versions that run are \
         counted at deploys";
    "description": optional Text, "What the flow is for";
    "source": required Map, "What starts the flow";
    "source.connector": optional Text,
        "Connector instance whose fields are `instance` in the source's templates; `poll` needs it";
    "source.trigger": required Words(&["webhook", "schedule", "poll", "manual", "api"]),
        "Event or time that starts the flow";
    "source.verify": optional Map, "How an inbound webhook proves its sender";
    "source.verify.scheme": required Words(&[
        "token", "hmac-sha256", "hmac-sha1", "hmac-sha512", "standard-webhooks", "github", "stripe",
        "shopify", "slack", "meta", "basic",
    ]), "The provider's way to sign, or a general one";
    "source.verify.secret": optional Templates, "The secret, or a list while secrets are rotated";
    "source.verify.header": optional Text, "Header that carries the token or signature";
    "source.verify.query": optional Text, "Query parameter that carries the token";
    "source.verify.prefix": optional Text, "Text before the signature in its header";
    "source.verify.encoding": optional Words(&["hex", "base64"]), default "hex",
        "Encoding of the signature";
    "source.verify.verify_token": optional Template,
        "Token that a subscription challenge must carry";
    "source.verify.username": optional Template, "User name of the scheme `basic`";
    "source.verify.password": optional Template, "Password of the scheme `basic`";
    "source.verify.tolerance": optional Tolerance, default "300s",
        "How far a timestamp may lie from now";
    "source.schedule": optional Text, "Five fields of cron, for the triggers `schedule` and `poll`";
    "source.timezone": optional Text, default "UTC", "IANA time zone of the schedule";
    "source.poll": optional Map, "What is polled, for the trigger `poll`";
    "source.poll.url": required Template,
        "Absolute address; `instance` and `state` are known in it";
    "source.poll.method": optional HTTP_METHODS, default "GET",
        "Method of the requests; no body is sent";
    "source.poll.headers": optional TemplateMap, "Headers of each request";
    "source.poll.params": optional TemplateMap,
        "Parameters of the query; one that renders to nothing is not sent";
    "source.poll.records_path": optional Text,
        "Dotted path to the list of records in the answer; without it the answer is the list";
    "source.poll.pagination": optional Map,
        "How the next page is found; without it there is one page";
    "source.poll.pagination.strategy": required Words(&[
        "cursor", "offset", "link_header", "next_token", "page",
    ]), "The way to the next page";
    "source.poll.pagination.max_pages": optional Whole { least: 1, most: 1_000_000 },
        "Most pages of a cycle";
    "source.poll.pagination.cursor_path": optional Text,
        "Path of the cursor in the answer, of `cursor`";
    "source.poll.pagination.cursor_param": optional Text,
        "Parameter that sends the cursor, of `cursor`";
    "source.poll.pagination.offset_param": optional Text, "Parameter of the offset, of `offset`";
    "source.poll.pagination.page_size": optional Whole { least: 1, most: 1_000_000 },
        "Records of a full page, of `offset` and of `page`, where it is at most 10,000";
    "source.poll.pagination.total_path": optional Text,
        "Path of the count of all records, of `offset`";
    "source.poll.pagination.token_path": optional Text,
        "Path of the token in the answer, of `next_token`";
    "source.poll.pagination.token_param": optional Text,
        "Parameter that sends the token, of `next_token`";
    "source.poll.pagination.page_param": optional Text, "Parameter of the page's number, of `page`";
    "source.poll.pagination.first_page": optional Whole { least: 0, most: 1_000_000_000 },
        default "1", "Number of the first page, of `page`";
    "source.poll.pagination.page_size_param": optional Text,
        "Parameter that asks for `page_size`, of `page`";
    "source.poll.record_id": optional Text,
        "Dotted path to the id of a record; one seen in the last 30 days, unchanged, is skipped";
    "source.poll.interval": optional Duration, default "5m",
        "Time from one cycle to the next, at least 1s; `source.schedule` may stand in its place";
    "adapter": optional Text, "JavaScript adapter that reshapes the payload before the mapping";
    "when": optional Expression, "Condition; a message for which it is false ends as `filtered`";
    "steps": optional List, "Calls of catalog actions before the target, in order";
    "steps[].name": required Name, "Name of the step; `steps.<name>` in later expressions";
    "steps[].action": required Text,
        "`<catalog entry>.<action>`, as in `email-delivery.send-email`";
    "steps[].connector": optional Text,
        "Connector instance; may be left out when the environment has one of the entry";
    "steps[].params": optional AnyMap, "Params of the action; their texts may be templates";
    "steps[].on_failure": optional Words(&["reject"]), "A failure ends the message at once";
    "steps[].when": optional Expression, "Condition; without it the step runs for every message";
    "steps[].success_when": optional Expression, "Condition that a 2xx answer has to satisfy";
    "target": optional Map, "Receiver of the mapping's output";
    "target.connector": required Text, "Connector instance";
    "target.endpoint": required Template, "Path under the connector's base URL";
    "target.method": optional HTTP_METHODS, default "POST", "Method of the request";
    "target.headers": optional TemplateMap, "Headers of the request";
    "target.timeout": optional Duration, default "30s", "How long an attempt may take";
    "target.success_when": optional Expression, "Condition that a 2xx answer has to satisfy";
    "mapping": optional Fields,
        "Fields of the output, by dotted names; without it the payload is delivered as it came";
    "mapping.*": optional Expression, "Expression, text with `{{ }}`, or a map with `each`";
    "mapping.*.each": required Expression, "List that is mapped item by item";
    "mapping.*.where": optional Expression, "Condition of the items that are mapped";
    "mapping.*.map": required Fields, "Fields of each item; `item` is the item";
    "ordering_key": optional Expression,
        "Messages with the same key are delivered one at a time, in order of arrival";
    "idempotency_key": optional Expression,
        "A second message with the same key within 24 h is a duplicate";
    "backlog_age": optional Duration,
        "How long the oldest message may wait before the webhook answers 503";
    "on_error": optional Map, "What becomes of failed attempts";
    "on_error.retry": optional Retry, default "3x exponential(30s)",
        "How often a failed attempt is repeated, and after which waits";
    "on_error.then": optional Words(&["dead-letter"]), default "dead-letter",
        "What becomes of a message after its last attempt";
    "on_error.retry_on": optional Words(&["transient"]), "Only failures that may pass are retried";
}

impl Key {
    const fn required(path: &'static str, kind: Kind, text: &'static str) -> Self {
        Self {
            required: true,
            ..Self::optional(path, kind, text)
        }
    }

    const fn optional(path: &'static str, kind: Kind, text: &'static str) -> Self {
        Self {
            path,
            kind,
            text,
            required: false,
            default: None,
        }
    }

    /// Sets the value of a definition without the key.
    const fn with_default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }
}
