//! The command line as a whole: the table of contents of the binary.

pub mod misuse;
#[cfg(test)]
mod tests;

use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand};
use kanat_model::Secret;

use crate::commands;
use crate::output::Format;
use crate::settings;

/// Takes data from a source, maps it, and delivers it to a target; what was accepted is not lost.
#[derive(Parser)]
#[command(name = "kanat", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,
    /// How client commands print what they got.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t = Format::Table,
        env = "KANAT_OUTPUT",
        help_heading = "Client options"
    )]
    pub output: Format,
    #[command(subcommand)]
    pub command: Command,
}

/// Address of the service, and credential and environment of a client command.
#[derive(Args)]
pub struct Connection {
    /// Address of the service [default: that of `kanat login`, else http://127.0.0.1:8080].
    #[arg(
        long,
        global = true,
        env = "KANAT_URL",
        help_heading = "Client options"
    )]
    pub url: Option<String>,
    /// API key [default: that of `kanat login`].
    #[arg(
        long,
        global = true,
        env = "KANAT_API_KEY",
        hide_env_values = true,
        help_heading = "Client options",
        value_parser = secret
    )]
    pub api_key: Option<Secret<String>>,
    /// Environment, by id or name [default: the key's, else the account's default].
    #[arg(
        long,
        global = true,
        env = "KANAT_ENV",
        help_heading = "Client options"
    )]
    pub env: Option<String>,
    /// True if the command is to change nothing, because it has `--dry-run`.
    #[arg(skip)]
    pub is_dry_run: bool,
}

/// Id of the flag `--dry-run` of commands.
const DRY_RUN: &str = "dry_run";

impl Cli {
    /// Takes what the command line and the environment have given.
    ///
    /// # Errors
    ///
    /// Returns the error of clap where an argument is missing or cannot be read.
    pub fn of(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        cli.connection.is_dry_run = is_dry_run(matches);
        Ok(cli)
    }
}

/// Returns whether the command that was called has the flag `--dry-run`.
fn is_dry_run(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, called)) => is_dry_run(called),
        None => matches!(matches.try_get_one::<bool>(DRY_RUN), Ok(Some(true))),
    }
}

/// Commands of the binary: the processes of the service and those of clients.
#[derive(Subcommand)]
pub enum Command {
    /// Run the whole service in one process: both planes, one port, one folder.
    Up(settings::up::Flags),
    /// Run a control plane alone, on PostgreSQL; several may run on one database.
    ControlPlane(settings::control_plane::Flags),
    /// Run a data-plane node alone: it gets its plans from control planes, and shares their
    /// PostgreSQL.
    DataPlane(settings::data_plane::Flags),
    /// Show the service at work on sample orders, in a folder of its own.
    Demo(settings::demo::Flags),
    #[command(flatten)]
    Client(commands::Command),
}

impl Command {
    /// Returns whether the command is a process of the service.
    pub fn serves(&self) -> bool {
        match self {
            Self::Up(_) | Self::ControlPlane(_) | Self::DataPlane(_) => true,
            Self::Demo(_) | Self::Client(_) => false,
        }
    }
}

/// Takes any text for a secret; a parser of its own, because clap must not print it.
#[expect(clippy::unnecessary_wraps, reason = "the form of a clap value parser")]
pub fn secret(text: &str) -> Result<Secret<String>, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}
