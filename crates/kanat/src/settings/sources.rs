//! Command line and environment: the command, the source of each setting, and the variables whose
//! values are of a wrong type.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use anyhow::Result;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory};

use super::{Problems, environment};
use crate::cli::Cli;
use crate::cli::misuse::{self, NO_DIGIT, WHOLE_NUMBER};

/// Parsed command line and environment, without the file.
#[derive(Default)]
pub struct Sources {
    /// Flags and variables of the command.
    pub(super) matches: ArgMatches,
    /// The flag or variable that each setting comes from, as in `KANAT_LISTEN` for `listen`.
    pub(super) names: BTreeMap<String, String>,
    /// Variables whose values cannot be read, each with what is wrong.
    pub(super) faults: Vec<String>,
}

impl Sources {
    /// Reads the command line and the environment. A variable whose value cannot be read counts as
    /// not set, and is a fault of what is returned: it must not hide other faults. A command line
    /// that is wrong ends the process.
    pub fn read() -> (Cli, Self) {
        let (mut command, faults) =
            without_wrong_values(Cli::command(), |name| std::env::var_os(name));
        let matches = command
            .try_get_matches_from_mut(std::env::args_os())
            .unwrap_or_else(|error| misuse::explained(error, &command).exit());
        let cli = Cli::of(&matches).unwrap_or_else(|error| error.format(&mut command).exit());
        (cli, Self::of(&command, &matches, faults))
    }

    /// Takes the names of what `matches` has, and the faults of the command that was called.
    fn of(command: &Command, matches: &ArgMatches, faults: Vec<Fault>) -> Self {
        let called = matches.subcommand();
        let name = called.map(|(name, _)| name);
        // A flag stands in the place of its variable, whatever that says.
        let is_overridden = |fault: &Fault| {
            let matches = if fault.command.is_some() {
                called.map(|(_, matches)| matches)
            } else {
                Some(matches)
            };
            matches.is_some_and(|matches| {
                matches.value_source(&fault.argument) == Some(ValueSource::CommandLine)
            })
        };
        let faults = faults.into_iter().filter(|fault| {
            fault.command.as_deref().is_none_or(|of| Some(of) == name) && !is_overridden(fault)
        });
        let mut sources = Self {
            faults: faults.map(|fault| fault.text).collect(),
            ..Self::default()
        };
        let Some((called, matches)) =
            called.and_then(|(name, matches)| Some((command.find_subcommand(name)?, matches)))
        else {
            return sources;
        };
        for argument in called.get_arguments() {
            let id = argument.get_id().as_str();
            let name = match matches.value_source(id) {
                Some(ValueSource::CommandLine) => {
                    argument.get_long().map(|long| format!("--{long}"))
                }
                Some(ValueSource::EnvVariable) => variable(argument),
                Some(_) | None => None,
            };
            sources.names.extend(name.map(|name| (id.to_owned(), name)));
        }
        sources.matches = matches.clone();
        sources
    }

    /// Checks what a command reads that has no settings.
    ///
    /// # Errors
    /// A variable whose value cannot be read, or whose name is a slip of one that such commands
    /// read.
    pub fn check(self) -> Result<()> {
        let mut problems = Problems::of(&self);
        environment::check_client(&mut problems);
        problems.finish()
    }
}

/// A variable whose value cannot be read.
struct Fault {
    /// The command that reads the variable; all do when there is none.
    command: Option<String>,
    /// Id of the argument.
    argument: String,
    text: String,
}

/// Returns the command without the variables whose values cannot be read, and what is wrong with
/// these.
fn without_wrong_values(
    command: Command,
    value: impl Fn(&str) -> Option<OsString>,
) -> (Command, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut check = |of: Option<&str>, argument: Arg| {
        let Some(problem) = problem(&argument, &value) else {
            return argument;
        };
        let id = argument.get_id().to_string();
        faults.push(Fault {
            command: of.map(str::to_owned),
            argument: id,
            text: problem,
        });
        argument.env(None::<&'static str>)
    };
    let command = command
        .mut_args(|argument| check(None, argument))
        .mut_subcommands(|command| {
            let name = command.get_name().to_owned();
            command.mut_args(|argument| check(Some(&name), argument))
        });
    (command, faults)
}

/// Returns what is wrong with the value of an argument's variable, under its name.
fn problem(argument: &Arg, value: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let name = variable(argument)?;
    let long = argument.get_long()?;
    let value = value(&name)?;
    let mut flag = OsString::from(format!("--{long}="));
    flag.push(&value);
    let alone = Command::new("kanat")
        .no_binary_name(true)
        .arg(argument.clone().env(None::<&'static str>));
    let error = alone.try_get_matches_from([flag]).err()?;
    Some(format!("{name}: {}", reason(argument, &value, &error)))
}

/// Returns why a value cannot be read. A secret is not repeated.
fn reason(argument: &Arg, value: &OsStr, error: &clap::Error) -> String {
    let Some(value) = value.to_str() else {
        return "is no text in UTF-8".to_owned();
    };
    let reason = match (
        error.get(ContextKind::ValidValue),
        error.source().map(ToString::to_string),
    ) {
        _ if value.is_empty() => return "is empty".to_owned(),
        (Some(ContextValue::Strings(valid)), _) if !valid.is_empty() => {
            format!("expected one of {}", valid.join(", "))
        }
        (_, Some(source)) if source == NO_DIGIT => WHOLE_NUMBER.to_owned(),
        (_, Some(source)) => source,
        (_, None) => "cannot be read".to_owned(),
    };
    if argument.is_hide_env_values_set() {
        reason
    } else {
        format!("invalid value {value:?}: {reason}")
    }
}

fn variable(argument: &Arg) -> Option<String> {
    Some(argument.get_env()?.to_str()?.to_owned())
}

/// Reads a command line alone.
#[cfg(test)]
pub(super) fn of_command_line(arguments: &[&str]) -> Sources {
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(arguments).unwrap();
    Sources::of(&command, &matches, Vec::new())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    /// Reads a command line beside these variables. Only their faults are looked at: their values
    /// are not read.
    fn given(arguments: &[&str], variables: &[(&str, &[u8])]) -> Sources {
        let value = |name: &str| {
            let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
            Some(OsString::from_vec(value.to_vec()))
        };
        let (mut command, faults) = without_wrong_values(Cli::command(), value);
        let matches = command.try_get_matches_from_mut(arguments).unwrap();
        Sources::of(&command, &matches, faults)
    }

    #[test]
    fn every_variable_of_a_wrong_type_is_named() {
        let wrong: [(&str, &[u8]); 6] = [
            ("KANAT_DATA_DIR", b""),
            ("KANAT_RETENTION_DAYS", b"ten"),
            ("KANAT_DRAIN_SECONDS", b""),
            ("KANAT_SEND_SECRETS_UNENCRYPTED", b"yes"),
            ("KANAT_OUTPUT", b"xml"),
            ("KANAT_MASTER_KEY", b"hunter\xff"),
        ];
        let mut faults = given(&["kanat", "up"], &wrong).faults;
        faults.sort_unstable();
        assert_eq!(
            faults,
            [
                "KANAT_DATA_DIR: is empty",
                "KANAT_DRAIN_SECONDS: is empty",
                "KANAT_MASTER_KEY: is no text in UTF-8",
                "KANAT_OUTPUT: invalid value \"xml\": expected one of table, json, yaml",
                "KANAT_RETENTION_DAYS: invalid value \"ten\": expected a whole number that is not \
                 negative",
                "KANAT_SEND_SECRETS_UNENCRYPTED: invalid value \"yes\": expected one of true, \
                 false",
            ]
        );
    }

    #[test]
    fn a_command_has_the_faults_of_the_variables_that_it_reads() {
        let wrong: [(&str, &[u8]); 2] = [
            ("KANAT_RETENTION_DAYS", b"ten"),
            ("KANAT_LEASE_SECONDS", b"ten"),
        ];
        let faults = given(&["kanat", "data-plane"], &wrong).faults;
        assert_eq!(
            faults,
            [
                "KANAT_LEASE_SECONDS: invalid value \"ten\": expected a whole number that is not \
                 negative"
            ]
        );
        assert_eq!(given(&["kanat", "flow", "list"], &wrong).faults, [""; 0]);
        assert_eq!(
            given(
                &[
                    "kanat",
                    "up",
                    "--retention-days",
                    "7",
                    "--lease-seconds",
                    "7"
                ],
                &wrong
            )
            .faults,
            [""; 0]
        );
        assert_eq!(
            given(
                &["kanat", "flow", "list", "-o", "json"],
                &[("KANAT_OUTPUT", b"xml")]
            )
            .faults,
            [""; 0]
        );
    }

    #[test]
    fn a_setting_is_named_by_its_flag() {
        let names = given(&["kanat", "up", "--retention", "7", "--listen", "x"], &[]).names;
        assert_eq!(names["retention_days"], "--retention-days");
        assert_eq!(names["listen"], "--listen");
        assert!(!names.contains_key("drain_seconds"));
    }
}
