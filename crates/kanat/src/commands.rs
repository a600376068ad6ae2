//! The client commands: each noun in its file.

mod adapter;
mod api;
mod api_key;
mod batch;
mod completion;
mod confirm;
mod connector;
mod environment;
mod flow;
mod hint;
mod input;
mod key;
mod login;
mod logout;
mod logs;
mod lookup;
mod message;
mod node;
mod policy;
mod program;
mod restore_point;
mod rotation;
mod schedule;
mod secrets;
mod since;
mod version;
mod whoami;

use anyhow::Result;
use clap::Subcommand;

use crate::cli::Connection;
use crate::client::Client;
use crate::client::name::{Noun, segment};
use crate::commands::confirm::{Consent, Decision};
use crate::commands::hint::EnvironmentOption;
use crate::output::{self, Format, Json, table};
pub use completion::answer_shell;
pub use message::show::trace;

/// Commands of clients.
#[derive(Subcommand)]
pub enum Command {
    /// Remember the service's address and an API key.
    Login(login::Login),
    /// Forget the address and the API key of `kanat login`.
    Logout(logout::Logout),
    /// Show the service that commands speak to, and as whom.
    Whoami(whoami::Whoami),
    /// Create, test, deploy and run flows.
    #[command(subcommand)]
    Flow(flow::Command),
    /// Print the messages of a flow as they come and go.
    Logs(logs::Logs),
    /// Look at messages; retry, replay or discard them.
    #[command(subcommand)]
    Message(message::Command),
    /// When flows are due that the clock starts.
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// One message for each of many records.
    #[command(subcommand)]
    Batch(batch::Command),
    /// Lookup tables and their entries.
    #[command(subcommand)]
    Lookup(lookup::Command),
    /// The catalog of connectors, and instances of its entries.
    #[command(subcommand)]
    Connector(connector::Command),
    /// Flows as endpoints that consumers call.
    #[command(subcommand)]
    Api(api::Command),
    /// Consumer keys, which open a published API to its consumers.
    #[command(subcommand)]
    Key(key::Command),
    /// Versions of published APIs; alone, the version of this program.
    Version {
        #[command(subcommand)]
        command: Option<version::Command>,
    },
    /// JavaScript that reshapes payloads.
    #[command(subcommand)]
    Adapter(adapter::Command),
    /// Keys of the account, which open the management API.
    #[command(subcommand)]
    ApiKey(api_key::Command),
    /// Places in which flows, tables and connectors live, apart from each other.
    #[command(subcommand, visible_alias = "env")]
    Environment(environment::Command),
    /// Governance policies: rules for flows, kept for reading; nothing evaluates them yet.
    #[command(subcommand)]
    Policy(policy::Command),
    /// Data-plane nodes.
    #[command(subcommand)]
    Node(node::Command),
    /// The master key, under which everything secret is sealed at rest.
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Tell a database that was restored, so that running nodes drop what they hold of before.
    RestorePoint(restore_point::RestorePoint),
    /// Print a completion script for a shell.
    Completion(completion::Completion),
}

/// Runs one command against the service.
pub async fn run(connection: Connection, format: Format, command: Command) -> Result<()> {
    let chosen = EnvironmentOption::of(connection.env.as_deref());
    let done = answer(connection, format, &chosen, command).await;
    done.map_err(|error| chosen.repeat_in_error(error))
}

async fn answer(
    connection: Connection,
    format: Format,
    chosen: &EnvironmentOption,
    command: Command,
) -> Result<()> {
    let session = |connection| {
        let client = Client::new(connection)?;
        Ok::<_, anyhow::Error>(Session {
            client,
            format,
            chosen: chosen.clone(),
        })
    };
    match command {
        Command::Completion(completion) => completion.run(),
        Command::RestorePoint(restore) => restore.run().await,
        Command::Login(login) => login.run(connection).await,
        Command::Logout(logout) => logout.run(),
        Command::Version { command: None } => program::print(format),
        Command::Whoami(whoami) => whoami.run(&session(connection)?).await,
        Command::ApiKey(command) => command.run(&session(connection)?).await,
        Command::Environment(command) => command.run(&session(connection)?).await,
        Command::Policy(command) => command.run(&session(connection)?).await,
        Command::Node(command) => command.run(&session(connection)?).await,
        Command::Secrets(command) => command.run(&session(connection)?).await,
        Command::Flow(command) => command.run(&session(connection)?).await,
        Command::Logs(logs) => logs.run(&session(connection)?).await,
        Command::Message(command) => command.run(&session(connection)?).await,
        Command::Schedule(command) => command.run(&session(connection)?).await,
        Command::Batch(command) => command.run(&session(connection)?).await,
        Command::Lookup(command) => command.run(&session(connection)?).await,
        Command::Connector(command) => command.run(&session(connection)?).await,
        Command::Api(command) => command.run(&session(connection)?).await,
        Command::Key(command) => command.run(&session(connection)?).await,
        Command::Version {
            command: Some(command),
        } => command.run(&session(connection)?).await,
        Command::Adapter(command) => command.run(&session(connection)?).await,
    }
}

/// Client and output options of one command.
pub struct Session {
    client: Client,
    format: Format,
    chosen: EnvironmentOption,
}

impl Session {
    fn print(&self, answer: &Json, table: impl FnOnce(&Json) -> String) -> Result<()> {
        self.format.print(answer, table)
    }

    /// Prints a page of a list, and the command for the next page.
    fn list(&self, answer: &Json, columns: &[table::Column]) -> Result<()> {
        self.print(answer, |answer| table::list(answer, columns))?;
        if let Some(more) = table::more(answer) {
            self.hint(&more);
        }
        Ok(())
    }

    /// Deletes the thing that `text` names, with consent; `what` says what goes with it, and what
    /// the service refuses it for.
    async fn delete(&self, noun: &Noun, text: &str, what: &str, consent: Consent) -> Result<()> {
        let id = self.client.id(noun, text).await?;
        let name = if id == text {
            text.to_owned()
        } else {
            format!("{text} ({id})")
        };
        let told = format!("{} {name} {} be deleted {what}", noun.name, consent.will());
        if consent.ask(&told)? == Decision::Act {
            self.client
                .delete(&format!("{}/{}", noun.path, segment(&id)))
                .await?;
            self.done(&format!("{} {text} is deleted", noun.name))?;
        }
        Ok(())
    }

    /// Prints advice on the next step for a person, and nothing for programs.
    fn hint(&self, text: &str) {
        if self.format == Format::Table {
            output::hint(&self.chosen.repeat(text));
        }
    }

    /// Prints an error of a command that goes on.
    fn complain(&self, text: &str) {
        output::hint(&self.chosen.repeat(&format!("error: {text}")));
    }

    /// Prints that something was done that has no answer of its own; programs see the exit code.
    fn done(&self, text: &str) -> Result<()> {
        if self.format == Format::Table {
            output::line(text)
        } else {
            Ok(())
        }
    }
}

/// The part of a list that is asked for.
#[derive(clap::Args)]
pub struct Page {
    /// How many at most.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// How many to pass over.
    #[arg(long, default_value_t = 0)]
    offset: u32,
}

impl Page {
    fn query(&self) -> Vec<(&'static str, String)> {
        vec![
            ("limit", self.limit.to_string()),
            ("offset", self.offset.to_string()),
        ]
    }
}

/// `pairs` that have a value.
fn given<const N: usize>(
    pairs: [(&'static str, &Option<String>); N],
) -> Vec<(&'static str, String)> {
    pairs
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect()
}
