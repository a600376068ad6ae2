//! The client commands: each noun in its file.

mod adapter;
mod api;
mod api_key;
mod audit;
mod batch;
mod completion;
mod confirm;
mod connector;
mod environment;
mod eval;
mod flow;
mod hint;
mod input;
mod key;
mod login;
mod logout;
mod logs;
mod lookup;
mod member;
mod message;
mod node;
mod policy;
mod program;
mod restore_point;
mod rotation;
mod schedule;
mod search;
mod secrets;
mod session;
mod since;
mod version;
mod whoami;

use anyhow::Result;
use clap::Subcommand;

use crate::cli::Connection;
use crate::output::Format;
pub use completion::answer_shell;
use hint::EnvironmentOption;
pub use message::show::trace;
use session::{Page, Query, Session, query};

/// Commands of clients.
#[derive(Subcommand)]
pub enum Command {
    /// Remember the service's address, and an API key or a person's login.
    Login(login::Login),
    /// Forget what `kanat login` remembers.
    Logout(logout::Logout),
    /// Show the service that commands speak to, and as whom.
    Whoami(whoami::Whoami),
    /// Create, test, deploy and run flows.
    #[command(subcommand)]
    Flow(flow::Command),
    /// Evaluate an expression or a template, without a service.
    Eval(eval::Eval),
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
    /// Find flows, connectors, adapters, published APIs and lookup tables by their words.
    Search(search::Search),
    /// Keys of the account, which open the management API.
    #[command(subcommand)]
    ApiKey(api_key::Command),
    /// People of the account, and invitations to it.
    #[command(subcommand)]
    Member(member::Command),
    /// Places in which flows, tables and connectors live, apart from each other.
    #[command(subcommand, visible_alias = "env")]
    Environment(environment::Command),
    /// Governance policies: rules for flows, kept for reading; nothing evaluates them yet.
    #[command(subcommand)]
    Policy(policy::Command),
    /// The audit log: who did what, and who was not allowed to.
    #[command(subcommand)]
    Audit(audit::Command),
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
    // Runs the commands of these nouns in a session.
    macro_rules! run {
        ($($noun:ident),* $(,)?) => {
            match command {
                Command::Completion(completion) => completion.run(),
                Command::RestorePoint(restore) => restore.run().await,
                Command::Eval(eval) => eval.run(connection.env.as_deref()),
                Command::Login(login) => login.run(connection).await,
                Command::Logout(logout) => logout.run().await,
                Command::Version { command: None } => program::print(format),
                Command::Version { command: Some(command) } => {
                    command.run(&Session::new(connection, format, chosen)?).await
                }
                $(Command::$noun(command) => {
                    command.run(&Session::new(connection, format, chosen)?).await
                })*
            }
        };
    }
    run!(
        Whoami,
        ApiKey,
        Member,
        Environment,
        Policy,
        Audit,
        Node,
        Secrets,
        Flow,
        Logs,
        Message,
        Schedule,
        Batch,
        Lookup,
        Connector,
        Api,
        Key,
        Adapter,
        Search,
    )
}
