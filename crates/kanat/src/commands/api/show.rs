//! A published API in words.

use super::VERSIONS;
use crate::output::{Json, table};

const FIELDS: &str = "Name:name,Description:description,Method:method,Path:path,Url:url,\
                      Flow:flowName,Auth:authType,Issuer:oauth2.issuer,Request:request,\
                      Validation:validationMode,Answer:answer,Answer status:responseStatus,\
                      Answer headers:headers,Strict answer:strict,Deadline:deadline,\
                      On timeout:onTimeout,CORS origins:corsOrigins,CORS headers:corsHeaders,\
                      CORS exposes:corsExposes,CORS credentials:corsCredentials,\
                      CORS max age:corsMaxAge,Id:id,Updated:updatedAt";

/// Everything about one published API.
pub fn whole(api: &Json) -> String {
    let texts = [
        ("request", Some(request(api))),
        ("answer", Some(response(api))),
        ("headers", headers(api)),
        ("strict", strict(api)),
    ];
    let texts = texts.into_iter().chain(cors(api));
    let texts = texts.map(|(name, text)| (name, text.map(Json::Text)));
    let fields = table::fields(&api.clone().with(texts), FIELDS);
    let mapping = match api.at("responseMapping") {
        Some(Json::Text(text)) => table::section("Response mapping", text),
        Some(mapping) if api.has("responseMapping") => {
            table::section("Response mapping", &mapping.pretty())
        }
        Some(_) | None => String::new(),
    };
    let versions = table::rows(api.list("versions"), VERSIONS);
    let gap = match mapping.is_empty() {
        true => "",
        false => "\n",
    };
    format!("{fields}{mapping}{gap}\n{versions}")
}

/// Returns what the current version takes.
fn request(api: &Json) -> String {
    if api.has("requestSchema") {
        "what fits its schema".to_owned()
    } else {
        "anything: it has no schema".to_owned()
    }
}

/// Returns what the current version answers. Without a schema of answers a call does not wait for
/// the flow.
fn response(api: &Json) -> String {
    let mapping = match api.has("responseMapping") {
        true => " by a response mapping",
        false => "",
    };
    let form = match api.text("responseSchema").as_str() {
        "" => return "202 with the message's id".to_owned(),
        "true" => "of any form",
        _ => "with a schema",
    };
    format!("the flow's result{mapping}, {form}")
}

/// Returns whether an answer that does not fit its schema is refused; none where answers have no
/// schema.
fn strict(api: &Json) -> Option<String> {
    let is_strict = api.text("strictResponse") == "true";
    (is_strict || api.has("responseSchema")).then(|| is_strict.to_string())
}

/// Returns the headers of the answer.
fn headers(api: &Json) -> Option<String> {
    let headers = api.members("responseHeaders");
    let headers = headers.map(|(name, value)| match value.as_text() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {}", value.compact()),
    });
    let headers: Vec<String> = headers.collect();
    (!headers.is_empty()).then(|| headers.join(", "))
}

/// Returns the pages of other origins that may call, and what they may send and read.
fn cors(api: &Json) -> Vec<(&'static str, Option<String>)> {
    if !api.has("cors") {
        return Vec::new();
    }
    let texts = |path: &str| {
        let texts = api.texts(path).join(", ");
        (!texts.is_empty()).then_some(texts)
    };
    let max_age = api.text("cors.maxAgeSeconds");
    let origins = texts("cors.origins").unwrap_or_else(|| "none".to_owned());
    let has_credentials = api.text("cors.credentials") == "true";
    vec![
        ("corsOrigins", Some(origins)),
        ("corsHeaders", texts("cors.headers")),
        ("corsExposes", texts("cors.exposedHeaders")),
        (
            "corsCredentials",
            has_credentials.then(|| "true".to_owned()),
        ),
        ("corsMaxAge", Some(format!("{max_age} s"))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_a_schema_is_strict_or_not() {
        let shown = |members: &str| strict(&Json::parse(&format!("{{{members}}}")).unwrap());
        let schema = r#""responseSchema":{"type":"object"}"#;
        assert_eq!(shown(schema).as_deref(), Some("false"));
        let strict = format!(r#"{schema},"strictResponse":true"#);
        assert_eq!(shown(&strict).as_deref(), Some("true"));
        assert_eq!(shown(""), None);
    }

    #[test]
    fn says_what_an_api_answers() {
        let told = |members: &str| response(&Json::parse(&format!("{{{members}}}")).unwrap());
        assert_eq!(told(""), "202 with the message's id");
        assert_eq!(
            told(r#""responseSchema":true"#),
            "the flow's result, of any form"
        );
        let mapped = told(r#""responseSchema":{"type":"object"},"responseMapping":"source""#);
        assert_eq!(
            mapped,
            "the flow's result by a response mapping, with a schema"
        );
    }
}
