//! The command line is well formed, and docs/CLI.md lists its commands.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::*;
use crate::client::Client;
use crate::exit::DryRun;

/// Heading of the part of the page that is made from the definitions of the commands. It ends the
/// page.
const HEADING: &str = "## Commands\n";

const INTRODUCTION: &str = "
This part is made from the definitions of the commands by `cargo xtask commands`. \
`kanat COMMAND --help` explains the flags. Every
command also takes `--help` and the [options of all commands](#options-of-all-commands).
";

/// Number of flags from which on a command is one whose flags are settings.
const SETTINGS: usize = 30;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

/// With `UPDATE_PAGES` set, the page is written instead.
#[test]
fn the_page_has_every_command_with_its_flags() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CLI.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, _) = page.split_once(HEADING).expect("the page has its heading");
    let expected = format!("{start}{HEADING}{INTRODUCTION}{}", commands());
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert_eq!(page, expected, "run `cargo xtask commands`");
    }
}

/// Returns the list of all commands.
fn commands() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = String::new();
    let alone = |command: &&Command| !command.has_subcommands();
    page += "\n### Single commands\n\n";
    for command in shown(&command).filter(alone) {
        page += &line(&format!("kanat {}", command.get_name()), command);
    }
    for noun in shown(&command).filter(|command| command.has_subcommands()) {
        let path = format!("kanat {}", noun.get_name());
        let aliases = noun.get_visible_aliases();
        let aliases: String = aliases
            .map(|alias| format!(" or `kanat {alias}`"))
            .collect();
        let _ = write!(page, "\n### `{path}`{aliases}\n\n{}\n\n", about(noun));
        for command in shown(noun) {
            page += &line(&format!("{path} {}", command.get_name()), command);
        }
    }
    page
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// Returns the first sentences of a command's help in one line.
fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let about = about.expect("a command says what it does");
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}.", about.trim_end_matches('.'))
}

/// Returns the line of a command: its arguments, what it does, its flags.
fn line(path: &str, command: &Command) -> String {
    let mut head = path.to_owned();
    for argument in command.get_positionals() {
        let _ = write!(head, " {}", placeholder(argument));
    }
    let own = command.get_arguments().filter(|argument| {
        let is_own = !argument.is_global_set() && argument.get_id() != "help";
        is_own && !argument.is_hide_set() && !argument.is_positional()
    });
    let flags: Vec<String> = own.map(flag).collect();
    let flags = match flags.len() {
        0 => String::new(),
        1..SETTINGS => format!(" Flags: {}.", flags.join(", ")),
        _ => " Its flags are [settings](OPERATIONS.md#settings).".to_owned(),
    };
    let aliases = command.get_visible_aliases();
    let aliases: String = aliases.map(|alias| format!(" (or `{alias}`)")).collect();
    format!("- `{head}`{aliases}: {}{flags}\n", about(command))
}

/// Returns an argument without a flag, in brackets where it may be left out.
fn placeholder(argument: &Arg) -> String {
    let name = argument.get_id().as_str().to_uppercase();
    let ends = argument.get_num_args().map(|range| range.max_values());
    let more = if ends.is_some_and(|most| most > 1) {
        "..."
    } else {
        ""
    };
    match argument.is_required_set() {
        true => format!("{name}{more}"),
        false => format!("[{name}]{more}"),
    }
}

fn flag(argument: &Arg) -> String {
    let long = argument.get_long().expect("a flag has a long name");
    let short = argument.get_short().map(|short| format!("-{short}, "));
    let others = argument.get_visible_aliases().unwrap_or_default();
    let others = others.iter().map(|alias| format!("--{alias}, "));
    let names = short.into_iter().chain(others).collect::<String>();
    let value = match argument.get_action().takes_values() {
        true => argument.get_value_names().unwrap_or_default(),
        false => &[],
    };
    // The value may be left out, and is told from the next argument by the equals sign.
    let value: String = match argument.is_require_equals_set() {
        true => value.iter().map(|name| format!("[={name}]")).collect(),
        false => value.iter().map(|name| format!(" {name}")).collect(),
    };
    format!("`{names}--{long}{value}`")
}

/// A command of the tree that has `--dry-run`.
struct DryRunCommand {
    /// Words of the command line, with an argument wherever one is required.
    line: Vec<String>,
}

/// Adds the commands below `command` that have `--dry-run`.
fn add_dry_runs(command: &Command, path: &[String], found: &mut Vec<DryRunCommand>) {
    let path = [path, &[command.get_name().to_owned()]].concat();
    if command
        .get_arguments()
        .any(|argument| argument.get_id() == DRY_RUN)
    {
        let required = command.get_positionals();
        let required = required.filter(|argument| argument.is_required_set());
        // A number is a name as well.
        let arguments = required.map(|_| "1".to_owned());
        let mut line = path.clone();
        line.extend(arguments);
        found.push(DryRunCommand { line });
    }
    for command in command.get_subcommands() {
        add_dry_runs(command, &path, found);
    }
}

#[tokio::test]
async fn no_command_with_dry_run_can_send_a_change() {
    let mut command = Cli::command();
    command.build();
    let mut found = Vec::new();
    add_dry_runs(&command, &[], &mut found);
    assert!(found.len() >= 19, "{}", found.len());
    for DryRunCommand { line } in found {
        let options = ["--api-key", "kanat_ak_test", "--dry-run"].map(str::to_owned);
        let line = [line, options.to_vec()].concat();
        let matches = Cli::command().try_get_matches_from(&line).unwrap();
        let client = Client::new(Cli::of(&matches).unwrap().connection).unwrap();
        let sent = client.delete("/flows/flw_1").await.unwrap_err();
        assert!(sent.is::<DryRun>(), "{line:?}: {sent}");
    }
}
