//! Conversion of an inbound body to the JSON of a flow, by its content type: JSON unchanged, a form
//! as an object, text and XML as a string, anything else as `{"base64": "..."}`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use kanat_engine::form::{self, FormError};
use kanat_mapping::json;
use kanat_model::media_type;

/// Kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Form,
    Text(Charset),
    Opaque,
    /// No content type: JSON if it parses, else text.
    Undeclared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Latin1,
    Windows1252,
    /// An unsupported charset: the bytes are kept.
    Other,
}

/// A body that contradicts its content type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PayloadError {
    #[error("the body is not valid JSON: {message} at line {line}, column {column}")]
    Json {
        line: usize,
        column: usize,
        message: String,
    },
    #[error(transparent)]
    Form(#[from] FormError),
}

/// Returns the payload of `body`; `None` when the body is the payload.
pub(crate) fn payload(
    content_type: Option<&str>,
    body: &Bytes,
) -> Result<Option<Bytes>, PayloadError> {
    match kind(content_type) {
        Kind::Json | Kind::Undeclared if body.is_empty() => Ok(Some(Bytes::from_static(b"null"))),
        Kind::Json => check(body).map(|()| None),
        Kind::Form => Ok(Some(form::payload(body)?)),
        Kind::Text(charset) => Ok(Some(text(charset, body))),
        Kind::Opaque => Ok(Some(base64(body))),
        // White space is neither JSON nor a meaningful text.
        Kind::Undeclared if is_blank(body) => check(body).map(|()| None),
        Kind::Undeclared => match check(body) {
            Ok(()) => Ok(None),
            Err(_) => Ok(Some(text(Charset::Utf8, body))),
        },
    }
}

/// Advice for a JSON body that was sent as a form, as `curl -d` does.
pub(crate) const JSON_SENT_AS_FORM: &str =
    "the body came as a form, and looks like JSON: send content-type: application/json";

/// Returns whether a payload is a form whose only field looks like JSON.
pub(crate) fn is_json_sent_as_form(
    payload: &[u8],
    content_type: impl FnOnce() -> Option<HeaderValue>,
) -> bool {
    let is_json = payload.starts_with(b"{\"{") || payload.starts_with(b"{\"[");
    is_json && content_type().is_some_and(|declared| kind(declared.to_str().ok()) == Kind::Form)
}

/// Body of a call: JSON or a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallBody {
    /// The body is the payload if it is JSON. The reader checks that, and reports errors by
    /// [`no_json`].
    Json,
    /// There is no body.
    Nothing,
    Form(Vec<(String, Vec<String>)>),
}

/// Reason why the body of a call is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallBodyError {
    #[error(
        "the body must be JSON or a form: application/json or application/x-www-form-urlencoded"
    )]
    Type,
    #[error(transparent)]
    Malformed(#[from] PayloadError),
}

/// Classifies the body of a call of a published API.
pub(crate) fn of_call(content_type: Option<&str>, body: &[u8]) -> Result<CallBody, CallBodyError> {
    match kind(content_type) {
        Kind::Json | Kind::Undeclared | Kind::Form if is_blank(body) => Ok(CallBody::Nothing),
        Kind::Json | Kind::Undeclared => Ok(CallBody::Json),
        Kind::Form => Ok(form::fields(body)
            .map(CallBody::Form)
            .map_err(PayloadError::from)?),
        Kind::Text(_) | Kind::Opaque => Err(CallBodyError::Type),
    }
}

/// Returns the error of a body that was read as JSON and is none.
pub(crate) fn no_json(content_type: Option<&str>, error: json::JsonError) -> CallBodyError {
    match kind(content_type) {
        Kind::Undeclared => CallBodyError::Type,
        Kind::Json | Kind::Form | Kind::Text(_) | Kind::Opaque => PayloadError::from(error).into(),
    }
}

fn kind(content_type: Option<&str>) -> Kind {
    let Some(content_type) = content_type.map(str::trim).filter(|text| !text.is_empty()) else {
        return Kind::Undeclared;
    };
    let charset = charset(content_type.split(';').skip(1));
    match media_type::essence(content_type)
        .to_ascii_lowercase()
        .as_str()
    {
        json if media_type::is_json(json) => Kind::Json,
        form::CONTENT_TYPE => Kind::Form,
        "application/xml" => Kind::Text(charset),
        other if other.starts_with("text/") || other.ends_with("+xml") => Kind::Text(charset),
        _ => Kind::Opaque,
    }
}

fn charset<'a>(parameters: impl Iterator<Item = &'a str>) -> Charset {
    let named = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
    match named.as_deref() {
        None | Some("" | "utf-8" | "utf8" | "us-ascii" | "ascii") => Charset::Utf8,
        Some("iso-8859-1" | "latin1") => Charset::Latin1,
        Some("windows-1252" | "cp1252") => Charset::Windows1252,
        Some(_) => Charset::Other,
    }
}

fn is_blank(body: &[u8]) -> bool {
    body.iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

impl From<json::JsonError> for PayloadError {
    fn from(error: json::JsonError) -> Self {
        Self::Json {
            line: error.line,
            column: error.column,
            message: error.message,
        }
    }
}

fn check(body: &[u8]) -> Result<(), PayloadError> {
    Ok(json::check(body, json::MAX_DEPTH)?)
}

fn text(charset: Charset, body: &[u8]) -> Bytes {
    let decoded = match charset {
        Charset::Utf8 => std::str::from_utf8(body).ok().map(str::to_owned),
        Charset::Latin1 => Some(body.iter().map(|byte| char::from(*byte)).collect()),
        Charset::Windows1252 => Some(body.iter().map(|byte| windows_1252(*byte)).collect()),
        Charset::Other => None,
    };
    let Some(decoded) = decoded else {
        return base64(body);
    };
    let mut out = Vec::with_capacity(decoded.len() + decoded.len() / 8 + 2);
    json::write_string(&decoded, &mut out);
    out.into()
}

/// Characters of windows-1252 from 0x80 to 0x9F; all others are those of iso-8859-1.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn windows_1252(byte: u8) -> char {
    let special = byte.checked_sub(0x80).map(usize::from);
    let special = special.and_then(|index| WINDOWS_1252.get(index));
    special.copied().unwrap_or(char::from(byte))
}

fn base64(body: &[u8]) -> Bytes {
    format!("{{\"base64\":\"{}\"}}", BASE64_STANDARD.encode(body)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content_type: &str, body: &[u8]) -> String {
        let body = Bytes::copy_from_slice(body);
        let made = payload((!content_type.is_empty()).then_some(content_type), &body).unwrap();
        String::from_utf8(made.unwrap_or(body).to_vec()).unwrap()
    }

    #[test]
    fn a_call_brings_json_or_a_form() {
        let of = |content_type: &str, body: &str| {
            of_call(
                (!content_type.is_empty()).then_some(content_type),
                body.as_bytes(),
            )
        };
        assert_eq!(of("application/problem+json", "[1]"), Ok(CallBody::Json));
        assert_eq!(of("", "{}"), Ok(CallBody::Json));
        assert_eq!(of("application/json", " "), Ok(CallBody::Nothing));
        let form = vec![("a".to_owned(), vec!["1".to_owned(), "2".to_owned()])];
        assert_eq!(
            of("application/x-www-form-urlencoded", "a=1&a=2"),
            Ok(CallBody::Form(form))
        );
        for (content_type, body) in [("text/plain", "{}"), ("application/xml", ""), ("a/b", "{}")] {
            assert_eq!(
                of(content_type, body),
                Err(CallBodyError::Type),
                "{content_type}"
            );
        }
        let error = json::check(b"{", json::MAX_DEPTH).unwrap_err();
        assert_eq!(no_json(None, error.clone()), CallBodyError::Type);
        assert!(matches!(
            no_json(Some("application/json"), error),
            CallBodyError::Malformed(PayloadError::Json { .. })
        ));
    }

    #[test]
    fn json_stays_as_it_came() {
        let body = r#" {"a": 9007199254740993, "b": 1.10} "#;
        for content_type in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.api+json",
            "",
        ] {
            assert_eq!(of(content_type, body.as_bytes()), body);
        }
    }

    #[test]
    fn an_empty_body_is_null() {
        assert_eq!([of("application/json", b""), of("", b"")], ["null"; 2]);
        assert_eq!(of("text/plain", b""), r#""""#);
        assert_eq!(of("application/x-www-form-urlencoded", b""), "{}");
        assert_eq!(of("application/octet-stream", b""), r#"{"base64":""}"#);
    }

    #[test]
    fn a_body_of_blanks_alone_is_no_json() {
        for content_type in [
            Some("application/json"),
            Some("application/vnd.api+json"),
            None,
        ] {
            let refused = payload(content_type, &Bytes::from_static(b" \n\t")).unwrap_err();
            assert!(
                matches!(refused, PayloadError::Json { .. }),
                "{content_type:?}: {refused}"
            );
        }
        assert_eq!(of("text/plain", b" \n"), r#"" \n""#);
    }

    #[test]
    fn a_form_field_that_is_no_utf_8_is_refused() {
        let form = Some("application/x-www-form-urlencoded");
        let refused = |body: &'static [u8]| {
            payload(form, &Bytes::from_static(body))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(b"a=1&name=caf%E9&b=2"),
            "the form field \"name\" is not UTF-8"
        );
        assert_eq!(
            refused(b"caf\xe9=1"),
            "the form field \"caf\u{fffd}\" is not UTF-8"
        );
        assert!(of_call(form, b"a=%ff").is_err());
        let sent = "a=\u{fffd}&b=%EF%BF%BD+x";
        assert_eq!(
            of("application/x-www-form-urlencoded", sent.as_bytes()),
            "{\"a\":\"\u{fffd}\",\"b\":\"\u{fffd} x\"}"
        );
    }

    #[test]
    fn malformed_json_is_refused_with_its_place() {
        let refused = payload(
            Some("application/json"),
            &Bytes::from_static(b"{\n  \"a\": tru\n}"),
        )
        .unwrap_err();
        assert!(
            matches!(refused, PayloadError::Json { line: 2, .. }),
            "{refused}"
        );
        for body in [
            b"{'a':1}".as_slice(),
            b"[1,]",
            b"{}{}",
            b"\"\xff\"",
            b"NaN",
            b"01",
        ] {
            assert!(
                payload(Some("application/json"), &Bytes::copy_from_slice(body)).is_err(),
                "{body:?}"
            );
        }
    }

    #[test]
    fn a_form_is_an_object_whose_repeated_names_are_lists() {
        let body = b"z=1&a=caf%C3%A9+noir&z=2&empty=&flag&q=%22";
        let expected = r#"{"z":["1","2"],"a":"café noir","empty":"","flag":"","q":"\""}"#;
        assert_eq!(
            of("application/x-www-form-urlencoded; charset=UTF-8", body),
            expected
        );
    }

    #[test]
    fn a_form_has_at_most_ten_thousand_fields() {
        let body = |fields: usize| Bytes::from("a=1&".repeat(fields));
        let form = Some("application/x-www-form-urlencoded");
        assert!(payload(form, &body(10_000)).is_ok());
        assert_eq!(
            payload(form, &body(10_001)),
            Err(FormError::TooManyFields.into())
        );
    }

    #[test]
    fn text_and_xml_are_strings() {
        assert_eq!(of("text/csv", "a;\"ü\"\n".as_bytes()), r#""a;\"ü\"\n""#);
        assert_eq!(of("application/soap+xml", b"<a/>"), r#""<a/>""#);
        assert_eq!(of("text/plain; charset=iso-8859-1", b"\xfc"), r#""ü""#);
        assert_eq!(
            of(
                "text/csv; charset=windows-1252",
                b"\x80;caf\xe9;\x9f;\x93x\x94"
            ),
            "\"€;café;Ÿ;“x”\""
        );
        assert_eq!(of("text/plain", b"\xff"), r#"{"base64":"/w=="}"#);
        assert_eq!(
            of("text/plain; charset=utf-16", b"a\0"),
            r#"{"base64":"YQA="}"#
        );
    }

    #[test]
    fn without_a_content_type_it_is_json_if_it_parses_else_a_string() {
        assert_eq!(of("", b"[1]"), "[1]");
        assert_eq!(of("", b"[1"), r#""[1""#);
        assert_eq!(of("", b"\xff\xfe"), r#"{"base64":"//4="}"#);
    }

    #[test]
    fn anything_else_is_base64() {
        assert_eq!(of("image/png", b"\x89PNG"), r#"{"base64":"iVBORw=="}"#);
        assert_eq!(
            of("multipart/form-data; boundary=x", b"--x--"),
            r#"{"base64":"LS14LS0="}"#
        );
    }
}
