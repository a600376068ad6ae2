//! Files and standard input that commands read.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, stream};
use kanat_model::media_type;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, AsyncRead};
use tokio_util::io::ReaderStream;

use crate::exit::usage;
use crate::output::Json;

/// Name of the standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// The text of the file `path`; `-` is standard input.
pub fn text(path: &str) -> Result<String> {
    let name = name(path);
    String::from_utf8(bytes(path)?).map_err(|_| usage(format!("{name} {}", not_utf8(name))))
}

/// Says of the file `name` that it is not UTF-8, and how it becomes so.
pub fn not_utf8(name: &str) -> String {
    let file = match name == STANDARD_INPUT {
        true => String::new(),
        false => format!(" {name}"),
    };
    format!("is not UTF-8; convert it first, from Latin-1 with `iconv -f LATIN1 -t UTF-8{file}`")
}

/// The bytes of the file `path`; `-` is standard input.
pub fn bytes(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(path)?.read_to_end(&mut bytes);
    read.map_err(|error| unreadable(path, &error))?;
    Ok(bytes)
}

/// The file `path`, to be read; `-` is standard input.
pub fn open(path: &str) -> Result<Box<dyn Read + Send>> {
    if path == "-" {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(file))
}

fn unreadable(path: &str, error: &std::io::Error) -> anyhow::Error {
    usage(format!("cannot read {}: {error}", name(path)))
}

/// The JSON document in the file `path`, with its digits; `-` is standard input. An object or a
/// list may stand in the place of the path.
pub fn json(path: &str) -> Result<Json> {
    let (text, name) = match inline(path) {
        Some(document) => (document.to_owned(), "the argument"),
        None => (text(path)?, name(path)),
    };
    Json::parse(without_mark(&text)).map_err(|error| usage(format!("{name} is not JSON: {error}")))
}

/// Returns the argument itself when it is an object or a list in the place of a path.
pub fn inline(path: &str) -> Option<&str> {
    let is_document = path.trim_start().starts_with(['{', '[']) && !Path::new(path).exists();
    is_document.then_some(path)
}

/// Returns a text without the byte order mark that some editors put before it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Ends of the names of files that hold a text.
const TEXT_ENDS: [&str; 3] = ["csv", "tsv", "xml"];

/// Returns whether the file `path` holds a payload that is a text, by the content type that came
/// with it, or by the end of its name.
pub fn is_text(path: &str, content_type: Option<&str>) -> bool {
    let Some(content_type) = content_type else {
        let end = Path::new(path).extension().and_then(OsStr::to_str);
        return end.is_some_and(|end| TEXT_ENDS.iter().any(|text| end.eq_ignore_ascii_case(text)));
    };
    let essence = media_type::essence(content_type).to_ascii_lowercase();
    let is_xml = essence == "application/xml" || essence.ends_with("+xml");
    let is_text = essence.starts_with("text/") && !media_type::is_json(&essence);
    is_xml || is_text || is_form(&essence)
}

/// Returns whether a content type is that of forms.
fn is_form(content_type: &str) -> bool {
    media_type::essence(content_type).eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The payload in the file `path`: a text where [`is_text`] says so, else JSON.
pub fn payload(path: &str, content_type: Option<&str>) -> Result<Json> {
    if is_text(path, content_type) {
        let mut text = text(path)?;
        // Editors end a file with a line end, which no sender puts into a form.
        if content_type.is_some_and(is_form) {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        return Ok(Json::Text(text));
    }
    json(path).map_err(|error| match error.to_string() {
        fault if fault.contains("is not JSON") => usage(format!("{fault}\n{TEXT_HINT}")),
        _ => error,
    })
}

/// Hint at what makes a text of a payload.
pub const TEXT_HINT: &str = "a file whose name ends with .csv, .tsv or .xml is taken as a text, as \
                             is one that `kanat flow test` gets with --header \
                             content-type:text/csv, or \
                             content-type:application/x-www-form-urlencoded for a form";

/// Returns where the file `path` stops being JSON; nothing when it is JSON, or is a pipe, which
/// gives its bytes once.
pub fn json_fault(path: &str) -> Option<String> {
    let file = File::open(path).ok()?;
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    let error = serde_json::from_reader::<_, IgnoredAny>(BufReader::new(file)).err()?;
    Some(format!("{path} is not JSON: {error}"))
}

/// The bytes of the file `path` while they are read, without a byte order mark, between `before`
/// and `after`; `-` is standard input.
pub async fn stream(path: &str, before: String, after: String) -> Result<reqwest::Body> {
    let file: Box<dyn AsyncRead + Send + Unpin> = match path {
        "-" => Box::new(tokio::io::stdin()),
        _ => {
            let file = tokio::fs::File::open(path).await;
            Box::new(file.map_err(|error| unreadable(path, &error))?)
        }
    };
    let mut file = tokio::io::BufReader::new(file);
    let begin = file.fill_buf().await;
    let begin = begin.map_err(|error| unreadable(path, &error))?;
    if begin.starts_with("\u{feff}".as_bytes()) {
        file.consume("\u{feff}".len());
    }
    let around = |text: String| stream::iter([Ok::<_, std::io::Error>(Bytes::from(text))]);
    Ok(reqwest::Body::wrap_stream(
        around(before)
            .chain(ReaderStream::new(file))
            .chain(around(after)),
    ))
}

/// Returns the name of the file in messages.
pub fn name(path: &str) -> &str {
    if path == "-" { STANDARD_INPUT } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_may_stand_in_the_place_of_a_file() {
        assert_eq!(json("{\"n\":1.10}").unwrap().compact(), "{\"n\":1.10}");
        let error = json("{\"n\":}").unwrap_err().to_string();
        assert!(error.starts_with("the argument is not JSON: "), "{error}");
        let error = json("missing.json").unwrap_err().to_string();
        assert!(error.starts_with("cannot read missing.json: "), "{error}");
    }

    #[test]
    fn a_payload_is_a_text_by_its_name_or_its_content_type() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let csv = file("sales.CSV", "sku\na\n");
        let read = |path: &str, content_type| payload(path, content_type).map(|it| it.compact());
        assert_eq!(read(&csv, None).unwrap(), r#""sku\na\n""#);
        let other = file("sales", "sku\na\n");
        let fault = read(&other, None).unwrap_err().to_string();
        assert!(
            fault.contains("sales is not JSON: ") && fault.contains(TEXT_HINT),
            "{fault}"
        );
        for text in [
            "text/csv; charset=utf-8",
            "Text/Plain",
            "application/soap+xml",
        ] {
            assert_eq!(read(&other, Some(text)).unwrap(), r#""sku\na\n""#);
        }
        let form = file("form", "a=1&b=x+y\r\n");
        let declared = "Application/x-www-form-urlencoded; charset=utf-8";
        assert_eq!(read(&form, Some(declared)).unwrap(), r#""a=1&b=x+y""#);
        let json = file("sales.json", "[1.10]");
        assert_eq!(read(&json, None).unwrap(), "[1.10]");
        for declared in ["text/json", "text/vnd.shop+json"] {
            assert_eq!(read(&json, Some(declared)).unwrap(), "[1.10]", "{declared}");
        }
        let fault = read("missing", None).unwrap_err().to_string();
        assert!(!fault.contains(TEXT_HINT), "{fault}");
    }

    #[test]
    fn a_fault_of_a_file_has_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("records.json");
        let path = file.to_str().unwrap();
        std::fs::write(&file, "[{\"id\":1},\n{\"id\":}]").unwrap();
        let fault = json_fault(path).unwrap();
        assert!(fault.contains("records.json is not JSON: "), "{fault}");
        assert!(fault.contains("line 2"), "{fault}");
        std::fs::write(&file, "[]").unwrap();
        assert_eq!(json_fault(path), None);
        assert_eq!(json_fault("/dev/null"), None);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_document() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        std::fs::write(&file, "\u{feff}[1.10]").unwrap();
        let read = json(file.to_str().unwrap()).unwrap();
        assert_eq!(read.compact(), "[1.10]");
    }
}
