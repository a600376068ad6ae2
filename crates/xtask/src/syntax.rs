//! Rust files of the workspace, parsed, and which of their items are product code.

use std::path::Path;

use anyhow::{Context, Result};
use syn::{Attribute, Item, Meta};

use crate::workspace::SourceFile;

/// A parsed file.
pub struct ParsedFile {
    /// From the root, with `/`.
    pub path: String,
    pub text: String,
    pub syntax: syn::File,
}

impl ParsedFile {
    /// Returns whether the file is part of the product: tests, benchmarks and tasks are not.
    pub fn is_product(&self) -> bool {
        const NOT_PRODUCT: [&str; 6] = [
            "tests/",
            "crates/bench/",
            "crates/fuzz/",
            "crates/failpoint/",
            "crates/testing-",
            "crates/xtask/",
        ];
        let is_elsewhere = NOT_PRODUCT
            .iter()
            .any(|folder| self.path.starts_with(folder));
        let parts = Path::new(&self.path)
            .iter()
            .filter_map(|part| part.to_str());
        let is_test = parts.into_iter().any(|part| {
            matches!(
                part,
                "benches"
                    | "tests"
                    | "tests.rs"
                    | "testing.rs"
                    | "contract"
                    | "contract.rs"
                    | "fuzz.rs"
            )
        });
        !is_elsewhere && !is_test
    }
}

/// Parses files.
///
/// # Errors
/// A file that is not Rust.
pub fn parse(files: Vec<SourceFile>) -> Result<Vec<ParsedFile>> {
    let parsed = files.into_iter().map(|SourceFile { path, text }| {
        let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {path}"))?;
        Ok(ParsedFile { path, text, syntax })
    });
    parsed.collect()
}

/// Returns whether an item is compiled for tests alone.
pub fn is_for_tests(item: &Item) -> bool {
    attributes(item)
        .iter()
        .any(|attribute| match &attribute.meta {
            Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
            Meta::Path(path) => path.is_ident("test"),
            Meta::NameValue(_) => false,
        })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
