//! Entries as CSV text with the columns `key` and `value`.

use kanat_model::csv::{QuoteCheck, lines_short};
use kanat_model::{Error, FieldError, Result};
use kanat_store::lookup_table::entry::Entry;

use crate::app::formula::{mark, unmark};

const MAX_REPORTED: usize = 100;

/// Fields of a line. One that has more is refused before it is taken apart: each of its commas
/// would cost memory.
const MAX_FIELDS: usize = 100;

/// Reads entries; the columns may stand in any order. Errors name each wrong line, up to the first
/// one that cannot be taken apart.
pub fn read(text: &str) -> Result<Vec<Entry>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let broken = broken_line(text);
    let sound = match &broken {
        Some(broken) if broken.record == 0 => return Err(wrong(vec![broken.fault.clone()])),
        Some(broken) => &text[..broken.record],
        None => text,
    };
    let mut reader = ::csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(sound.as_bytes());
    let header = reader
        .headers()
        .map_err(|error| Error::field("csv", error.to_string()))?
        .clone();
    let (key, value) = columns(&header)?;
    let lines_short = lines_short(text.as_bytes());
    let mut entries = Vec::new();
    let mut faults = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| Error::field("csv", error.to_string()))?;
        let line = row.position().map_or(0, ::csv::Position::line) + lines_short;
        match (row.len(), row.get(key), row.get(value)) {
            (2, Some("" | "'"), Some(_)) => faults.push(fault(line, "the key is empty")),
            (2, Some(key), Some(value)) => {
                entries.push(Entry {
                    key: unmark(key).to_owned(),
                    value: unmark(value).to_owned(),
                });
            }
            (found, _, _) => faults.push(fault(
                line,
                &format!("has {found} fields, and should have 2"),
            )),
        }
        if faults.len() == MAX_REPORTED {
            break;
        }
    }
    faults.extend(broken.map(|broken| broken.fault));
    faults.truncate(MAX_REPORTED);
    if !faults.is_empty() {
        return Err(wrong(faults));
    }
    Ok(entries)
}

fn wrong(faults: Vec<FieldError>) -> Error {
    Error::invalid("some lines of the CSV are wrong", faults)
}

/// Writes entries with a header.
pub fn write(entries: &[Entry]) -> Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(["key", "value"]).and_then(|()| {
        entries
            .iter()
            .try_for_each(|entry| writer.write_record([&*mark(&entry.key), &*mark(&entry.value)]))
    });
    // A `Vec` takes all that is written, and what goes in is text.
    written.map_err(|_| Error::internal())?;
    let bytes = writer.into_inner().map_err(|_| Error::internal())?;
    String::from_utf8(bytes).map_err(|_| Error::internal())
}

fn columns(header: &::csv::StringRecord) -> Result<(usize, usize)> {
    let names: Vec<String> = header
        .iter()
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    match names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["key", "value"] => Ok((0, 1)),
        ["value", "key"] => Ok((1, 0)),
        found => {
            let found = found.join(",");
            Err(Error::field(
                "csv",
                format!("the first line must be key,value, and is {found:?}"),
            ))
        }
    }
}

/// Line that cannot be taken apart, and the lines behind it with it.
struct BrokenLine {
    /// Offset of the first byte of its record.
    record: usize,
    fault: FieldError,
}

/// Returns the first line that cannot be taken apart: its quoting is broken, or it has far too many
/// fields.
fn broken_line(text: &str) -> Option<BrokenLine> {
    let mut quotes = QuoteCheck::default();
    let mut fields = 1;
    let mut record = 0;
    let at = |record, line, message: String| {
        Some(BrokenLine {
            record,
            fault: fault(line, &message),
        })
    };
    for (offset, byte) in text.bytes().enumerate() {
        let line = quotes.line();
        if let Err(broken) = quotes.take(byte) {
            return at(record, broken.line, broken.fault.to_string());
        }
        match byte {
            b'\n' | b'\r' if !quotes.is_quoted() => {
                fields = 1;
                record = offset + 1;
            }
            b',' if !quotes.is_quoted() => fields += 1,
            _ => {}
        }
        if fields > MAX_FIELDS {
            let message = format!("has more than {MAX_FIELDS} fields, and should have 2");
            return at(record, line, message);
        }
    }
    let broken = quotes.finish().err()?;
    at(record, broken.line, broken.fault.to_string())
}

fn fault(line: u64, message: &str) -> FieldError {
    FieldError::new("csv", format!("line {line}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn reads_back_what_it_writes() {
        let entries = [
            entry("DE", "Germany"),
            entry("a,b", "say \"hi\"\nthere"),
            entry("ä", ""),
        ];
        assert_eq!(read(&write(&entries).unwrap()).unwrap(), entries);
        assert_eq!(read(&write(&[]).unwrap()).unwrap(), []);
    }

    #[test]
    fn takes_the_columns_in_any_order_and_a_byte_order_mark() {
        assert_eq!(
            read("\u{feff}Value, KEY\r\nGermany,DE\r\n").unwrap(),
            [entry("DE", "Germany")]
        );
    }

    #[test]
    fn a_quoted_field_that_never_ends_is_not_taken_for_the_rest_of_the_file() {
        let error = read("key,value\nDE,Germany\nFR,\"France\nIT,Italy\n").unwrap_err();
        assert_eq!(
            error.details[0].message,
            "line 3: a quoted field begins here and never ends"
        );
        for (broken, line) in [
            ("DE,\"Germany\"x\n", 2),
            ("DE,Germany\n\"F\nR\" ,France\n", 4),
            ("\"a\"b\",c\n", 2),
        ] {
            let error = read(&format!("key,value\n{broken}")).unwrap_err();
            let expected = format!(
                "line {line}: a quoted field ends before its cell does: a quote within it is \
                 written twice"
            );
            assert_eq!(error.details[0].message, expected, "{broken}");
        }
        let sound = read("key,value\nA,x\"y\nB,\"a \"\"b\"\" c\"\n\"C\",\"\"\n").unwrap();
        assert_eq!(
            sound,
            [entry("A", "x\"y"), entry("B", "a \"b\" c"), entry("C", "")]
        );
    }

    #[test]
    fn faults_name_their_lines_whatever_ends_these() {
        for end in ["\n", "\r\n"] {
            let text = ["key,value", "a,b", "c", ",x"].join(end);
            let error = read(&text).unwrap_err();
            let messages: Vec<_> = error.details.iter().map(|it| it.message.as_str()).collect();
            let expected = [
                "line 3: has 1 fields, and should have 2",
                "line 4: the key is empty",
            ];
            assert_eq!(messages, expected, "{end:?}");
        }
    }

    #[test]
    fn a_line_of_commas_is_not_taken_apart() {
        for head in ["", "key,value\n"] {
            let error = read(&format!("{head}{}", ",".repeat(1 << 20))).unwrap_err();
            let line = head.lines().count() + 1;
            assert_eq!(
                error.details[0].message,
                format!("line {line}: has more than 100 fields, and should have 2")
            );
        }
        let error = read(&format!(
            "key,value\nDE,\"{}\"\n{}\n",
            ",".repeat(200),
            ",".repeat(99)
        ))
        .unwrap_err();
        assert_eq!(
            error.details[0].message,
            "line 3: has 100 fields, and should have 2"
        );
    }

    #[test]
    fn formulas_go_out_as_texts_and_come_back_as_they_were() {
        let entries = [
            entry("=1+1", "-5"),
            entry("'s-Hertogenbosch", "-5+1"),
            entry("@a", "\tb"),
        ];
        let text = write(&entries).unwrap();
        assert_eq!(
            text,
            "key,value\n'=1+1,-5\n''s-Hertogenbosch,'-5+1\n'@a,'\tb\n"
        );
        assert_eq!(read(&text).unwrap(), entries);
        assert_eq!(read("key,value\n'a,''b\n").unwrap(), [entry("a", "'b")]);
        assert_eq!(
            read("key,value\n',b\n").unwrap_err().details[0].message,
            "line 2: the key is empty"
        );
    }

    #[test]
    fn names_every_wrong_line() {
        let error = read("key,value\nDE,Germany\nFR\n,x\na,b,c\n").unwrap_err();
        let messages: Vec<_> = error
            .details
            .iter()
            .map(|detail| detail.message.as_str())
            .collect();
        assert_eq!(
            messages,
            [
                "line 3: has 1 fields, and should have 2",
                "line 4: the key is empty",
                "line 5: has 3 fields, and should have 2",
            ]
        );
        let error = read("key,value\na,b,c\nFR\nIT,\"Italy\nES,Spain\n").unwrap_err();
        let messages: Vec<_> = error
            .details
            .iter()
            .map(|detail| detail.message.as_str())
            .collect();
        assert_eq!(
            messages,
            [
                "line 2: has 3 fields, and should have 2",
                "line 3: has 1 fields, and should have 2",
                "line 4: a quoted field begins here and never ends",
            ]
        );
        for wrong in ["", "name,value\na,b\n", "key\nx\n"] {
            assert_eq!(
                read(wrong).unwrap_err().details[0].field,
                "csv",
                "{wrong:?}"
            );
        }
    }
}
