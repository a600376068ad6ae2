//! The records of a file as the JSON list that a batch job takes: NDJSON and CSV are changed on
//! their way.

use std::io::{BufRead, BufReader, Read};

use anyhow::Result;
use bytes::Bytes;
use futures::stream;
use serde::de::IgnoredAny;

use crate::client::BadInput;
use crate::commands::input;
use crate::exit::usage;
use crate::output::json::quote;

/// How the records of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A list of objects.
    Json,
    /// An object a line.
    Ndjson,
    /// A header line, and a line for each record; all values are texts.
    Csv,
}

type Item = Result<String, BadInput>;

impl Format {
    /// Returns the format by the end of a file's name: `.csv`, `.ndjson`, `.jsonl`, else JSON.
    pub fn of(file: &str) -> Self {
        let end = file
            .rsplit_once('.')
            .map(|(_, end)| end.to_ascii_lowercase())
            .unwrap_or_default();
        match end.as_str() {
            "csv" => Self::Csv,
            "ndjson" | "jsonl" => Self::Ndjson,
            _ => Self::Json,
        }
    }

    /// The records of `file` as a list between `before` and `after`, read while they are sent; `-`
    /// is standard input.
    pub async fn body(self, file: &str, before: String, after: String) -> Result<reqwest::Body> {
        let name = input::name(file).to_owned();
        let items: Box<dyn Iterator<Item = Item> + Send> = match self {
            Self::Json => return input::stream(file, before, after).await,
            Self::Ndjson => Box::new(lines(BufReader::new(open(file)?), name)),
            Self::Csv => Box::new(rows(open(file)?, name)?),
        };
        let separated = items.enumerate().map(|(index, item)| match index {
            0 => item,
            _ => item.map(|item| format!(",{item}")),
        });
        let end = |text: String| std::iter::once(Ok(text));
        let all = end(format!("{before}["))
            .chain(separated)
            .chain(end(format!("]{after}")));
        Ok(reqwest::Body::wrap_stream(stream::iter(
            all.map(|part| part.map(Bytes::from)),
        )))
    }
}

fn open(file: &str) -> Result<Box<dyn Read + Send>> {
    if file == "-" {
        return Ok(Box::new(std::io::stdin()));
    }
    let opened = std::fs::File::open(file);
    Ok(Box::new(opened.map_err(|error| {
        usage(format!("cannot read {file}: {error}"))
    })?))
}

/// The lines that are not blank, each of which has to be JSON.
fn lines(input: impl BufRead, name: String) -> impl Iterator<Item = Item> {
    let lines = input
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    let lines =
        lines.filter(|(_, line)| line.as_ref().map_or(true, |line| !line.trim().is_empty()));
    lines.map(move |(number, line)| {
        let wrong = |why: String| BadInput(format!("{name}, line {number}: {why}"));
        let line = line.map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str::<IgnoredAny>(&line)
            .map_err(|error| wrong(format!("is not JSON: {error}")))?;
        Ok(line)
    })
}

/// The rows below the header as objects of texts.
fn rows(input: impl Read, name: String) -> Result<impl Iterator<Item = Item>> {
    let mut reader = csv::Reader::from_reader(input);
    let wrong = |error: csv::Error| format!("{name}: {error}");
    let header = reader.headers().map_err(|error| usage(wrong(error)))?;
    let columns: Vec<String> = header
        .iter()
        .map(|column| column.trim_start_matches('\u{feff}').to_owned())
        .collect();
    if let [only] = columns.as_slice()
        && only.contains([';', '\t'])
    {
        return Err(usage(format!(
            "{name}: the columns are not separated by commas: {only:?} is the only one"
        )));
    }
    for (index, column) in columns.iter().enumerate() {
        if column.is_empty() {
            return Err(usage(format!("{name}: column {} has no name", index + 1)));
        }
        if columns[..index].contains(column) {
            return Err(usage(format!("{name}: two columns are called {column:?}")));
        }
    }
    Ok(reader.into_records().map(move |row| {
        let row = row.map_err(|error| BadInput(format!("{name}: {error}")))?;
        let members = columns
            .iter()
            .zip(&row)
            .map(|(column, value)| format!("{}:{}", quote(column), quote(value)));
        Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &'static str) -> Result<String> {
        let rows: Result<Vec<String>, BadInput> =
            rows(text.as_bytes(), "a.csv".to_owned())?.collect();
        Ok(rows?.join(","))
    }

    #[test]
    fn rows_become_objects_of_texts() {
        assert_eq!(
            csv("\u{feff}id,name\n007,\"a \"\"b\"\"\"\n").unwrap(),
            r#"{"id":"007","name":"a \"b\""}"#
        );
        assert_eq!(csv("id\n").unwrap(), "");
        assert!(
            csv("id;name\n1;a\n")
                .unwrap_err()
                .to_string()
                .contains("not separated by commas")
        );
    }

    #[test]
    fn rows_that_do_not_fit_are_reported_with_their_line() {
        let told = csv("id,name\n1,a\n2\n").unwrap_err().to_string();
        assert!(told.contains("a.csv") && told.contains("line: 3"), "{told}");
        assert!(
            csv("id,id\n")
                .unwrap_err()
                .to_string()
                .contains("two columns")
        );
        assert!(csv("id,\n").unwrap_err().to_string().contains("column 2"));
    }

    #[test]
    fn lines_keep_their_digits_and_name_their_faults() {
        let read = |text: &'static str| {
            lines(text.as_bytes(), "a.ndjson".to_owned()).collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(
            read("{\"n\":9007199254740993}\n\n{}\n").unwrap(),
            ["{\"n\":9007199254740993}", "{}"]
        );
        let told = read("{}\n\n{\"n\":}\n").unwrap_err().to_string();
        assert!(told.starts_with("a.ndjson, line 3: is not JSON"), "{told}");
    }

    #[test]
    fn the_name_of_a_file_decides_its_format() {
        for (file, format) in [
            ("a.CSV", Format::Csv),
            ("a.jsonl", Format::Ndjson),
            ("a", Format::Json),
        ] {
            assert_eq!(Format::of(file), format, "{file}");
        }
    }
}
