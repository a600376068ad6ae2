//! Files and standard input that commands read.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde::de::IgnoredAny;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use crate::exit::usage;
use crate::output::Json;

/// The text of the file `path`; `-` is standard input.
pub fn text(path: &str) -> Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| usage(format!("{} is not UTF-8", name(path))))
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
    let is_document = path.trim_start().starts_with(['{', '[']) && !Path::new(path).exists();
    let (text, name) = if is_document {
        (path.to_owned(), "the argument")
    } else {
        (text(path)?, name(path))
    };
    Json::parse(&text).map_err(|error| usage(format!("{name} is not JSON: {error}")))
}

/// Returns where the file `path` stops being JSON; nothing when it is JSON or cannot be read again.
pub fn json_fault(path: &str) -> Option<String> {
    let file = File::open(path).ok()?;
    let error = serde_json::from_reader::<_, IgnoredAny>(BufReader::new(file)).err()?;
    Some(format!("{path} is not JSON: {error}"))
}

/// The bytes of the file `path` while they are read, between `before` and `after`; `-` is standard
/// input.
pub async fn stream(path: &str, before: String, after: String) -> Result<reqwest::Body> {
    let file: Box<dyn AsyncRead + Send + Unpin> = match path {
        "-" => Box::new(tokio::io::stdin()),
        _ => {
            let file = tokio::fs::File::open(path).await;
            Box::new(file.map_err(|error| unreadable(path, &error))?)
        }
    };
    let around = |text: String| stream::iter([Ok::<_, std::io::Error>(Bytes::from(text))]);
    Ok(reqwest::Body::wrap_stream(
        around(before)
            .chain(ReaderStream::new(file))
            .chain(around(after)),
    ))
}

/// Returns the name of the file in messages.
pub fn name(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
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
    }
}
