//! Files and standard input that commands read.

use std::io::Read;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use crate::exit::usage;

/// The text of the file `path`; `-` is standard input.
pub fn text(path: &str) -> Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| usage(format!("{} is not UTF-8", name(path))))
}

/// The bytes of the file `path`; `-` is standard input.
pub fn bytes(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        _ => std::fs::read(path).map(|content| bytes = content),
    };
    read.map_err(|error| usage(format!("cannot read {}: {error}", name(path))))?;
    Ok(bytes)
}

/// The JSON document in the file `path`, untouched; `-` is standard input.
pub fn json(path: &str) -> Result<Box<RawValue>> {
    let text = text(path)?;
    serde_json::from_str(&text)
        .map_err(|error| usage(format!("{} is not JSON: {error}", name(path))))
}

/// The bytes of the file `path` while they are read, between `before` and `after`; `-` is standard
/// input.
pub async fn stream(path: &str, before: String, after: String) -> Result<reqwest::Body> {
    let file: Box<dyn AsyncRead + Send + Unpin> = match path {
        "-" => Box::new(tokio::io::stdin()),
        _ => {
            let file = tokio::fs::File::open(path).await;
            Box::new(file.map_err(|error| usage(format!("cannot read {}: {error}", name(path))))?)
        }
    };
    let around = |text: String| stream::iter([Ok::<_, std::io::Error>(Bytes::from(text))]);
    Ok(reqwest::Body::wrap_stream(
        around(before)
            .chain(ReaderStream::new(file))
            .chain(around(after)),
    ))
}

/// What to call the file in a message.
pub fn name(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}
