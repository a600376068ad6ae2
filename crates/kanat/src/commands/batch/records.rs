//! The records of a file as the JSON list that a batch job takes: NDJSON and CSV are changed on
//! their way.

use std::io::{BufRead, BufReader, Read};

use anyhow::Result;
use bytes::Bytes;
use futures::stream;
use kanat_model::csv::{BrokenQuote, QuoteCheck, lines_short};
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
            Self::Ndjson => Box::new(lines(BufReader::new(input::open(file)?), name)),
            Self::Csv => Box::new(rows(input::open(file)?, name)?),
        };
        let mut items = items.peekable();
        if items.peek().is_none() {
            return Err(usage(format!("{} has no records", input::name(file))));
        }
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

/// The lines that are not blank, each of which has to be a JSON object.
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
        let line = match number {
            1 => input::without_mark(&line).to_owned(),
            _ => line,
        };
        serde_json::from_str::<IgnoredAny>(&line).map_err(|error| {
            let why = error.to_string();
            let column = error.column();
            let why = why.strip_suffix(&format!(" at line 1 column {column}"));
            let why = why.map(|why| format!("{why} at column {column}"));
            wrong(format!("is not JSON: {}", why.unwrap_or(error.to_string())))
        })?;
        if !line.trim_start().starts_with('{') {
            return Err(wrong("must be an object".to_owned()));
        }
        Ok(line)
    })
}

/// A text that is read by others, whose quotes are checked on the way.
struct Quotes<R> {
    input: R,
    check: QuoteCheck,
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.input.read(buffer)?;
        let mut bytes = buffer[..length].iter();
        let checked = match length {
            0 => self.check.finish(),
            _ => bytes.try_for_each(|byte| self.check.take(*byte)),
        };
        let told = |BrokenQuote { line, fault }| format!("line {line}: {fault}");
        checked.map_err(|broken| std::io::Error::other(told(broken)))?;
        Ok(length)
    }
}

/// Says where a text is no CSV, and why; `name` is that of its file.
fn fault(name: &str, error: &csv::Error, lines_short: u64) -> String {
    let line = error.position().map_or(0, csv::Position::line) + lines_short;
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("line {line}: has {len} fields, and should have {expected_len}"),
        csv::ErrorKind::Utf8 { .. } => format!("line {line}: {}", input::not_utf8(name)),
        csv::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    }
}

/// The rows below the header as objects of texts.
fn rows(input: impl Read, name: String) -> Result<impl Iterator<Item = Item>> {
    let mut input = BufReader::new(input);
    let lines_short = lines_short(input.fill_buf().unwrap_or_default());
    let check = QuoteCheck::default();
    let mut reader = csv::Reader::from_reader(Quotes { input, check });
    let wrong = |error: csv::Error| format!("{name}, {}", fault(&name, &error, 0));
    let header = reader.headers().map_err(|error| usage(wrong(error)))?;
    let columns: Vec<String> = header
        .iter()
        .map(|column| column.trim_start_matches('\u{feff}').to_owned())
        .collect();
    if let [only] = columns.as_slice()
        && let Some(separator) = only.chars().find(|c| [';', '\t'].contains(c))
    {
        let seen = only.split(separator).map(|column| format!("{column:?}"));
        return Err(usage(format!(
            "{name}: the columns {} are separated by {separator:?}, and not by commas: save the \
             file with commas, or give the records as NDJSON",
            seen.collect::<Vec<_>>().join(", ")
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
        let wrong = |error| BadInput(format!("{name}, {}", fault(&name, &error, lines_short)));
        let row = row.map_err(wrong)?;
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
    }

    #[test]
    fn a_file_of_another_form_is_refused_with_the_next_step() {
        assert_eq!(
            csv("id;name\n1;a\n").unwrap_err().to_string(),
            "a.csv: the columns \"id\", \"name\" are separated by ';', and not by commas: save the \
             file with commas, or give the records as NDJSON"
        );
        let latin: &[u8] = b"id,name\n1,J\xfcrgen\n";
        let mut rows = rows(latin, "a.csv".to_owned()).unwrap();
        let fault = rows.next().unwrap().unwrap_err().to_string();
        assert_eq!(
            fault,
            "a.csv, line 2: is not UTF-8; convert it first, from Latin-1 with `iconv -f LATIN1 -t \
             UTF-8 a.csv`"
        );
    }

    #[test]
    fn rows_that_do_not_fit_are_reported_with_their_line() {
        let fault = |text| csv(text).unwrap_err().to_string();
        assert_eq!(
            fault("id,name\n1,a\n2\n"),
            "a.csv, line 3: has 1 fields, and should have 2"
        );
        assert_eq!(
            fault("id,name\r\n1,a\r\n2\r\n"),
            "a.csv, line 3: has 1 fields, and should have 2"
        );
        assert_eq!(
            fault("id,name\nA,\"broken\nB,two\n"),
            "a.csv, line 2: a quoted field begins here and never ends"
        );
        assert!(fault("id,name\nA,\"x\"y\n").contains("line 2: a quoted field ends before"));
        assert!(fault("id,\"name\n").contains("line 1: a quoted field begins here"));
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
            read("\u{feff}{\"n\":9007199254740993}\n\n{}\n").unwrap(),
            ["{\"n\":9007199254740993}", "{}"]
        );
        let told = read("{}\n\n{\"n\":}\n").unwrap_err().to_string();
        assert_eq!(
            told,
            "a.ndjson, line 3: is not JSON: expected value at column 6"
        );
        let told = read("[]\n").unwrap_err().to_string();
        assert_eq!(told, "a.ndjson, line 1: must be an object");
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
