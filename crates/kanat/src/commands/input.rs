//! Files and standard input that commands read.

use std::io::Read;

use anyhow::Result;
use serde_json::value::RawValue;

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
    serde_json::from_str(&text).map_err(|error| usage(format!("{} is not JSON: {error}", name(path))))
}

/// What to call the file in a message.
pub fn name(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}
