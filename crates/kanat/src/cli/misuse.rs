//! Errors of a command line that is wrong, with what the command takes.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// The standard library's text for a number that is none.
pub const NO_DIGIT: &str = "invalid digit found in string";

pub const WHOLE_NUMBER: &str = "expected a whole number that is not negative";

/// Number of flags that an error names; a command with more refers to its help.
const MAX_NAMED: usize = 16;

/// Returns the error with the flags or the subcommands that the command takes where one is wrong,
/// and with the number that a flag takes where its value is none.
pub fn explained(mut error: Error, command: &Command) -> Error {
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            // A value that begins with a dash, which clap takes a wrong flag for, is never meant.
            error.remove(ContextKind::Suggested);
            if let Some(tip) = taken(&error, command) {
                let tips = ContextValue::StyledStrs(vec![tip.into()]);
                error.insert(ContextKind::Suggested, tips);
            }
            error
        }
        _ => of_number(error, command),
    }
}

/// Returns what the called command takes in the place of what is wrong.
fn taken(error: &Error, command: &Command) -> Option<String> {
    let (path, command) = called(error, command)?;
    let names: Vec<String> = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let subcommands = command.get_subcommands();
            let shown = subcommands
                .filter(|command| !command.is_hide_set() && command.get_name() != "help");
            shown.map(|command| command.get_name().to_owned()).collect()
        }
        _ if is_argument(error) => {
            let value = with_equals_sign(error, command);
            return value.or_else(|| Some(arguments(&path, command)));
        }
        _ => {
            let own = command.get_arguments().filter(|argument| {
                !argument.is_global_set() && !argument.is_hide_set() && argument.get_id() != "help"
            });
            let flags = own.filter_map(clap::Arg::get_long);
            flags.map(|long| format!("--{long}")).collect()
        }
    };
    match names.len() {
        0 => Some(format!("`{path} --help` shows what it takes")),
        1..=MAX_NAMED => Some(format!("`{path}` takes {}", names.join(", "))),
        _ if command.has_subcommands() => Some(format!("`{path} --help` lists the commands")),
        _ => Some(format!("`{path} --help` lists its flags")),
    }
}

/// Returns whether the wrong word is no flag.
fn is_argument(error: &Error) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => !word.starts_with('-'),
        Some(_) | None => false,
    }
}

/// Returns the form of the flag that a wrong word is meant as the value of, where the command has
/// one that takes `true` or `false` after an equals sign alone.
fn with_equals_sign(error: &Error, command: &Command) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if !["true", "false"].contains(&word.as_str()) {
        return None;
    }
    let mut flags = command.get_arguments();
    let flag = flags.find(|flag| flag.is_require_equals_set())?;
    Some(format!("write `--{}={word}`", flag.get_long()?))
}

/// Returns the arguments that a command takes beside its flags.
fn arguments(path: &str, command: &Command) -> String {
    let names = command.get_positionals().filter_map(|argument| {
        let name = argument.get_value_names()?.first()?;
        Some(format!("<{name}>"))
    });
    let names: Vec<_> = names.collect();
    match names.as_slice() {
        [] => format!("`{path}` takes flags alone"),
        [one] => format!("`{path}` takes one {one} at a time"),
        several => format!("`{path}` takes {} and no more", several.join(" ")),
    }
}

/// Returns the command that an error is of, by its usage, and its path.
fn called<'c>(error: &Error, command: &'c Command) -> Option<(String, &'c Command)> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return None;
    };
    let usage = usage.to_string();
    let mut words = usage.split_whitespace();
    words.find(|word| *word == command.get_name())?;
    let mut path = command.get_name().to_owned();
    let mut found = command;
    for word in words {
        let Some(next) = found.find_subcommand(word) else {
            break;
        };
        path = format!("{path} {word}");
        found = next;
    }
    Some((path, found))
}

/// Returns the error of a value that is no number, with what is expected.
fn of_number(error: Error, command: &Command) -> Error {
    match (
        error.source(),
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) {
        (Some(source), Some(flag), Some(value)) if source.to_string() == NO_DIGIT => {
            let message = format!(
                "invalid value '{value}' for '{flag}': {WHOLE_NUMBER}\n\nFor more information, \
                 try '--help'.\n"
            );
            Error::raw(error.kind(), message).with_cmd(command)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Returns what a wrong command line is answered with.
    fn explain(arguments: &str) -> String {
        let mut command = Cli::command();
        let error = command
            .try_get_matches_from_mut(arguments.split(' '))
            .unwrap_err();
        explained(error, &command).to_string()
    }

    #[test]
    fn a_wrong_flag_is_answered_with_those_there_are() {
        let told = explain("kanat schedule update nightly --expression x");
        assert!(told.contains("'--expression'"), "{told}");
        assert!(
            told.contains("tip: `kanat schedule update` takes --cron, --timezone"),
            "{told}"
        );
        assert!(!told.contains("as a value"), "{told}");
    }

    #[test]
    fn a_slip_in_a_flag_still_names_the_near_one() {
        let told = explain("kanat --env staging flow list --serach x");
        assert!(told.contains("'--search'"), "{told}");
        assert!(told.contains("`kanat flow list` takes --status"), "{told}");
    }

    #[test]
    fn an_argument_too_many_is_answered_with_those_there_are() {
        let told = explain("kanat flow validate a.yaml b.yaml");
        assert!(
            told.contains("tip: `kanat flow validate` takes one <PATH> at a time"),
            "{told}"
        );
        let told = explain("kanat flow update orders a.yaml b.yaml");
        assert!(told.contains("takes <FLOW> <FILE> and no more"), "{told}");
    }

    #[test]
    fn a_value_without_its_equals_sign_is_answered_with_it() {
        let told = explain("kanat environment update production --protected false");
        assert!(told.contains("tip: write `--protected=false`"), "{told}");
        let told = explain("kanat environment update production staging");
        assert!(told.contains("takes one <ENVIRONMENT> at a time"), "{told}");
    }

    #[test]
    fn a_wrong_subcommand_is_answered_with_those_there_are() {
        let told = explain("kanat lookup unset colours red");
        assert!(told.contains("`kanat lookup` takes create, list"), "{told}");
        assert!(told.contains("remove"), "{told}");
    }

    #[test]
    fn a_number_that_is_none_is_refused_without_the_usage_of_another_command() {
        let told = explain("kanat key create tax acme --daily 60x");
        assert!(
            told.starts_with("error: invalid value '60x' for '--daily <DAILY>': expected a whole"),
            "{told}"
        );
        assert!(!told.contains("Usage: kanat [OPTIONS] <COMMAND>"), "{told}");
        assert!(
            told.ends_with("\n\nFor more information, try '--help'.\n"),
            "{told}"
        );
    }
}
