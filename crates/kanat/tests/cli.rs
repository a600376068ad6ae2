//! The binary from outside: its exit codes, its first line, its settings, and every client command
//! against a real service.

#[path = "cli/advice.rs"]
mod advice;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/definition.rs"]
mod definition;
#[path = "cli/dry_run.rs"]
mod dry_run;
#[path = "cli/mail.rs"]
mod mail;
#[path = "cli/process.rs"]
mod process;
#[cfg(test)]
#[path = "cli/service.rs"]
mod service;
