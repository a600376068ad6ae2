//! The settings file. A table's name is the first part of its settings' names: `cert` in `[tls]` is
//! `tls_cert`. Every fault is reported with its line, and no fault hides another one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kanat_model::nearest;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table};

use super::{Problems, Sources};
use crate::exit::usage;

const DEFAULT_FILE: &str = "kanat.toml";

/// Settings that are flags and nothing else.
const FLAGS_ONLY: [&str; 4] = ["config", "print_config", "write_plan_file", "drain_node"];

/// Settings that the file alone has: lists of tables.
const FILE_ONLY: [&str; 2] = ["nodes", "oidc"];

/// Reads the settings file: the one that is named, which must exist, or `kanat.toml` in the working
/// folder, which may be missing. `problems` learns the line that each setting comes from.
///
/// # Errors
/// A file that cannot be read. Faults of its settings are added to `problems`.
pub(super) fn read<T>(sources: &Sources, named: Option<&Path>, problems: &mut Problems) -> Result<T>
where
    T: clap::Args + DeserializeOwned + Default,
{
    let path = named.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_path_buf);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            String::new()
        }
        Err(error) => {
            let name = sources.names.get("config").map(|name| format!("{name}: "));
            return Err(usage(format!(
                "{}cannot read {}: {error}",
                name.unwrap_or_default(),
                path.display()
            )));
        }
    };
    Ok(parse(&text, &path.display().to_string(), problems))
}

/// Returns the settings of a file's text that have no fault, and adds the faults of the others to
/// `problems`.
pub(super) fn parse<T>(text: &str, file: &str, problems: &mut Problems) -> T
where
    T: clap::Args + DeserializeOwned + Default,
{
    let (table, faults) = DeTable::parse_recoverable(text);
    let command = T::augment_args(clap::Command::new("kanat"));
    let known = command
        .get_arguments()
        .map(|argument| argument.get_id().as_str());
    let known = known
        .filter(|setting| !FLAGS_ONLY.contains(setting))
        .chain(FILE_ONLY.into_iter().filter(takes::<T>));
    let known = known.collect();
    let mut reader = Reader {
        text,
        file,
        known,
        settings: Table::new(),
        problems,
        check_types: check_types::<T>,
    };
    for fault in &faults {
        let at = fault.span().map_or(0, |span| span.start);
        reader.fault(at, &format!("{}{}", fault.message(), unquoted(text, at)));
    }
    // What follows a fault of the syntax may have been misread.
    if faults.is_empty() {
        reader.table(table.get_ref(), &[]);
    }
    reader.settings.try_into().unwrap_or_default()
}

/// Returns the hint for a line whose value is a text without quotes, which is the usual reason why
/// a file cannot be read; empty for other lines. `at` is a byte of the line.
fn unquoted(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    match line
        .split_once('=')
        .map(|(name, value)| (name.trim(), value.trim()))
    {
        Some((name, value)) if !value.is_empty() && !value.contains(['"', '\'', '[', '{']) => {
            format!("; a text stands in quotes: {name} = {value:?}")
        }
        Some(_) | None => String::new(),
    }
}

/// Returns whether a process has a setting that is no flag: one that it has not is passed over,
/// whatever its type is.
fn takes<T: DeserializeOwned>(setting: &&str) -> bool {
    check_types::<T>(Table::from_iter([((*setting).to_owned(), true.into())])).is_err()
}

/// Checks the types of some settings; an error is the text of the deserializer.
fn check_types<T: DeserializeOwned>(settings: Table) -> Result<(), String> {
    settings
        .try_into::<T>()
        .map(drop)
        .map_err(|error| error.message().to_owned())
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    known: Vec<&'a str>,
    settings: Table,
    problems: &'a mut Problems,
    check_types: fn(Table) -> Result<(), String>,
}

impl Reader<'_> {
    /// Takes the settings of the table that `names` lead to.
    fn table(&mut self, table: &DeTable<'_>, names: &[&str]) {
        let mut members: Vec<_> = table.iter().collect();
        members.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in members {
            let names = [names, &[&**name.get_ref()]].concat();
            match value.get_ref() {
                DeValue::Table(inner) => self.table(inner, &names),
                found => self.setting(&names, name.span().start, found, &self.text[value.span()]),
            }
        }
    }

    /// Takes the setting that `names` lead to; `source` is its value as the file has it.
    fn setting(&mut self, names: &[&str], at: usize, found: &DeValue<'_>, source: &str) {
        let setting = names.join("_");
        if !self.known.contains(&setting.as_str()) {
            let last = names.last().copied().unwrap_or_default();
            let near = nearest::nearest(&setting, self.known.iter().copied());
            let near = near.or_else(|| nearest::nearest(last, self.known.iter().copied()));
            let near = near
                .map(|near| format!("; did you mean {near:?}?"))
                .unwrap_or_default();
            return self.fault(
                at,
                &format!("there is no setting {:?}{near}", names.join(".")),
            );
        }
        if self.settings.contains_key(&setting) {
            return self.fault(at, &format!("{setting}: is given twice"));
        }
        if let DeValue::Array(items) = found
            && !self.are_tables_right(&setting, items)
        {
            return;
        }
        let at_start = Spanned::new(0..0, found.clone());
        let value = toml::Value::deserialize(ValueDeserializer::from(at_start));
        let alone = match value {
            Ok(value) => Table::from_iter([(setting.clone(), value)]),
            Err(error) => return self.fault(at, &format!("{setting}: {}", error.message())),
        };
        match (self.check_types)(alone.clone()) {
            Ok(()) => {
                let name = format!("{}: {setting}", self.place(at));
                self.problems.names.insert(setting, name);
                self.settings.extend(alone);
            }
            Err(problem) => self.fault(
                at,
                &format!("{setting}: {}", type_fault(&problem, found, source)),
            ),
        }
    }

    /// Checks each key of the tables of a list by itself, so that a fault has its line and its
    /// name. Items that are no tables are not looked at.
    fn are_tables_right(&mut self, setting: &str, items: &[Spanned<DeValue<'_>>]) -> bool {
        let faults = self.problems.texts.len();
        for item in items {
            let DeValue::Table(table) = item.get_ref() else {
                continue;
            };
            for (name, value) in table {
                let key = name.get_ref().to_string();
                let at_start = Spanned::new(0..0, value.get_ref().clone());
                let read = toml::Value::deserialize(ValueDeserializer::from(at_start));
                let Ok(read) = read else { continue };
                let alone = toml::Value::Table(Table::from_iter([(key.clone(), read)]));
                let alone = Table::from_iter([(setting.to_owned(), vec![alone].into())]);
                if let Err(problem) = (self.check_types)(alone) {
                    let source = &self.text[value.span()];
                    let problem = type_fault(&problem, value.get_ref(), source);
                    let at = name.span().start;
                    self.fault(at, &format!("{setting}: {key}: {problem}"));
                }
            }
        }
        self.problems.texts.len() == faults
    }

    fn fault(&mut self, at: usize, problem: &str) {
        let place = self.place(at);
        self.problems.texts.push(format!("{place}: {problem}"));
    }

    /// The place of a byte of the text, as in `kanat.toml:3`.
    fn place(&self, at: usize) -> String {
        let line = 1 + self.text[..at].matches('\n').count();
        format!("{}:{line}", self.file)
    }
}

/// The text of a fault whose value is of another type than its setting. Only numbers are repeated:
/// a text may be a secret.
fn type_fault(problem: &str, found: &DeValue<'_>, source: &str) -> String {
    // A key of a table in a list.
    if problem.starts_with("unknown field") {
        return problem.to_owned();
    }
    let expected = problem
        .rsplit_once("expected ")
        .map_or(problem, |(_, expected)| expected);
    let (expected, is_number) = match expected {
        "u16" | "u32" | "u64" | "usize" => ("a whole number that is not negative", true),
        "a string" | "path string" => ("a text in quotes", false),
        "a boolean" => ("true or false", false),
        "a sequence" => ("a list in brackets", false),
        other => (other, false),
    };
    match found {
        DeValue::Integer(_) | DeValue::Float(_) if is_number => {
            format!("expected {expected}, found {source}")
        }
        _ => format!("expected {expected}, found {}", found.type_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::resolve;
    use crate::settings::sources::of_command_line;
    use crate::settings::up::Flags;

    fn faults(text: &str) -> Vec<String> {
        let mut problems = Problems::default();
        parse::<Flags>(text, "kanat.toml", &mut problems);
        problems.texts
    }

    /// Reads a text without a fault.
    fn read(text: &str) -> Flags {
        let mut problems = Problems::default();
        let settings = parse(text, "kanat.toml", &mut problems);
        problems.finish().unwrap();
        settings
    }

    #[test]
    fn every_fault_is_reported_with_its_line_and_the_name_of_its_setting() {
        let text = "listen = \"127.0.0.1:8080\"\n\nretention_days = \"7\"\nretention_day = \
                    7\nbody_limit = -1\negress_allow = \"10.0.0.0/8\"\nmaster_key = 7\n";
        assert_eq!(
            faults(text),
            [
                "kanat.toml:3: retention_days: expected a whole number that is not negative, \
                 found string",
                "kanat.toml:4: there is no setting \"retention_day\"; did you mean \
                 \"retention_days\"?",
                "kanat.toml:5: body_limit: expected a whole number that is not negative, found -1",
                "kanat.toml:6: egress_allow: expected a list in brackets, found string",
                "kanat.toml:7: master_key: expected a text in quotes, found integer",
            ]
        );
    }

    #[test]
    fn faults_of_syntax_have_their_lines() {
        let found = faults("listen = \"127.0.0.1:8080\"\nlog = info\nlog = \"info\"\n");
        assert!(
            !found.is_empty() && found[0].starts_with("kanat.toml:2: "),
            "{found:?}"
        );
    }

    #[test]
    fn a_text_without_quotes_is_shown_with_them() {
        let found = faults("retention_days = 7\nlisten = 127.0.0.1:8126\n");
        assert!(found[0].starts_with("kanat.toml:2: "), "{found:?}");
        assert!(
            found[0].ends_with("; a text stands in quotes: listen = \"127.0.0.1:8126\""),
            "{found:?}"
        );
    }

    #[test]
    fn the_name_of_a_table_is_the_first_part_of_its_settings_names() {
        let settings = read(
            "data_plane_listen = \"127.0.0.1:1\"\ntls.cert = \"c.pem\"\n[drain]\nseconds = \
             7\n[adapter]\nmemory = 8\n",
        );
        assert_eq!(
            settings.process.tls_cert.as_deref(),
            Some(Path::new("c.pem"))
        );
        assert_eq!(settings.process.drain_seconds, Some(7));
        assert_eq!(settings.process.adapters.adapter_memory, Some(8));
        assert_eq!(
            faults(
                "tls_cert = \"c.pem\"\n[tls]\ncert = \"d.pem\"\n[server]\nlisten = \
                 \"127.0.0.1:1\"\n"
            ),
            [
                "kanat.toml:3: tls_cert: is given twice",
                "kanat.toml:5: there is no setting \"server.listen\"; did you mean \"listen\"?",
            ]
        );
    }

    #[test]
    fn a_value_that_is_out_of_range_is_reported_beside_the_others_and_only_where_the_file_gives_it()
    {
        let text = "lisen = \"127.0.0.1:1\"\nlease_seconds = 0\ndrain_seconds = 9999\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kanat.toml");
        std::fs::write(&path, text).unwrap();
        let mut flags = Flags::default();
        flags.process.config = Some(path.clone());
        let mut sources = of_command_line(&["kanat", "up", "--drain-seconds", "8888"]);
        let name = "KANAT_DRAIN_SECONDS".to_owned();
        sources.names.insert("drain_seconds".to_owned(), name);
        sources.faults = vec!["KANAT_RETENTION_DAYS: invalid value".to_owned()];
        let error = resolve(&flags, sources).err().unwrap().to_string();
        let file = path.display();
        assert_eq!(
            error,
            format!(
                "bad settings:\n  KANAT_RETENTION_DAYS: invalid value\n  {file}:1: there is no \
                 setting \"lisen\"; did you mean \"listen\"?\n  KANAT_DRAIN_SECONDS: 8888 s is \
                 not between 0 and 3600\n  {file}:2: lease_seconds: 0 s is not between 1 and 3600"
            )
        );
    }

    #[test]
    fn lists_of_tables_are_settings_of_the_processes_that_have_them() {
        let digest = "0f".repeat(32);
        let entry =
            format!("[[nodes]]\ntoken_sha256 = \"{digest}\"\nenvironments = [\"staging\"]\n");
        let text = format!("listen = \"127.0.0.1:1\"\n{entry}{entry}");
        let settings = read(&text);
        let nodes = settings.control.nodes.unwrap();
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes[1].token_sha256.as_deref(), Some(digest.as_str()));
        let found =
            faults("[[nodes]]\ntoken = \"0123456789abcdef\"\nenvironments = [\"staging\"]\n");
        assert!(
            found.len() == 1 && found[0].starts_with("kanat.toml:2: nodes: token: "),
            "{found:?}"
        );
        assert!(!found[0].contains("0123456789abcdef"), "{found:?}");
        let mut problems = Problems::default();
        parse::<crate::settings::data_plane::Flags>(&entry, "kanat.toml", &mut problems);
        assert_eq!(
            problems.texts,
            ["kanat.toml:1: there is no setting \"nodes\""]
        );
    }
}
