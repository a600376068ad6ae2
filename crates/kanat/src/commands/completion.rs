//! `kanat completion SHELL`, and what shells ask this program then: subcommands, flags, and names
//! of the service's things.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::cli::{Cli, Connection};
use crate::client::Client;
use crate::client::name::{ADAPTER, API, ENVIRONMENT, FLOW, INSTANCE, MEMBER, Noun, TABLE};

/// The variable that a shell sets when it asks this program.
const VARIABLE: &str = "COMPLETE";

/// Time that a shell waits for names.
const NAMES_TIMEOUT: Duration = Duration::from_millis(800);

/// Arguments of `kanat completion`.
#[derive(clap::Args)]
pub struct Completion {
    shell: Shell,
}

impl Completion {
    pub fn run(self) -> Result<()> {
        let shells = Shells::builtins();
        let name = self.shell.to_string();
        let shell = shells
            .completer(&name)
            .with_context(|| format!("no completion is known for {name}"))?;
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "kanat", "kanat", "kanat", &mut script)?;
        crate::output::line(&String::from_utf8_lossy(&script))
    }
}

/// Answers a shell and ends the process, when it is a shell that asks.
pub fn answer_shell() {
    CompleteEnv::with_factory(|| with_names(Cli::command()))
        .var(VARIABLE)
        .complete();
}

/// Has every argument that is a name completed by the names there are.
fn with_names(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match noun(arg.get_id().as_str()) {
        Some(noun) => arg.add(ArgValueCandidates::new(move || names(noun))),
        None => arg,
    });
    command.mut_subcommands(with_names)
}

fn noun(argument: &str) -> Option<&'static Noun> {
    match argument {
        "flow" | "of_flow" => Some(&FLOW),
        "table" => Some(&TABLE),
        "instance" => Some(&INSTANCE),
        "api" => Some(&API),
        "adapter" => Some(&ADAPTER),
        "member" => Some(&MEMBER),
        "env" | "environment" => Some(&ENVIRONMENT),
        _ => None,
    }
}

/// The names there are; none when the service cannot be asked in time.
fn names(noun: &Noun) -> Vec<CompletionCandidate> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let connection = Connection {
        url: set("KANAT_URL"),
        api_key: set("KANAT_API_KEY").map(kanat_model::Secret::new),
        env: set("KANAT_ENV"),
        is_dry_run: false,
    };
    let ask = || -> Result<Vec<CompletionCandidate>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let client = Client::new(connection)?;
        let asked = runtime.block_on(async {
            let client = client.without_renewal().await;
            tokio::time::timeout(NAMES_TIMEOUT, client.all(noun.path, &[])).await
        });
        let items = asked??.into_iter();
        Ok(items
            .map(|item| CompletionCandidate::new(noun.name_of(&item)))
            .collect())
    };
    ask().unwrap_or_default()
}
