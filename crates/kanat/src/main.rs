//! `kanat`, the one binary: it reads the command line and hands over. What the commands do stands
//! in their own files.

mod allocator;
mod cli;
mod client;
mod commands;
mod control_plane;
mod data_plane;
mod demo;
mod exit;
mod monitoring;
mod output;
mod process;
mod settings;
mod traces;
mod up;
mod whole_file;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The service starts itself under this command; people do not, and it must not wait for a
    // parser of flags.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(kanat_script::worker::COMMAND) {
        return kanat_script::worker::main(arguments);
    }
    commands::answer_shell();
    let (cli, sources) = settings::Sources::read();
    if cli.command.serves() {
        allocator::give_back_soon();
    }
    exit::report(run(cli, sources))
}

fn run(cli: cli::Cli, sources: settings::Sources) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        match cli.command {
            cli::Command::Up(flags) => up::run(flags, sources).await,
            cli::Command::ControlPlane(flags) => control_plane::run(flags, sources).await,
            cli::Command::DataPlane(flags) => data_plane::run(flags, sources).await,
            cli::Command::Demo(flags) => {
                sources.check()?;
                demo::run(flags).await
            }
            cli::Command::Client(command) => {
                sources.check()?;
                commands::run(cli.connection, cli.output, command).await
            }
        }
    });
    // What still blocks a thread (a read of standard input, a slow name lookup) must not keep the
    // process.
    runtime.shutdown_background();
    done
}
