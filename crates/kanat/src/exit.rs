//! How the process ends: 0 when all went well, 1 on a failure, 2 when the command or the settings
//! are wrong or cannot be met. The error goes to standard error, with what to do next.

use std::process::ExitCode;

/// A failure whose text is all that there is to say, because the details were printed already or
/// none are needed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// The command line, the settings or a file given to a command are wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// The end of a command that was only to say what it would do: no failure.
#[derive(Debug, thiserror::Error)]
#[error("nothing was done: this is a dry run")]
pub struct DryRun;

/// An error of [`Usage`].
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// An error of [`Failure`].
pub fn failure(message: impl Into<String>) -> anyhow::Error {
    Failure(message.into()).into()
}

/// Prints what went wrong, if anything did.
pub fn report(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    // The reader of our output went away (`kanat logs | head`): nothing is wrong and nobody is
    // there to be told.
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    if causes.any(|cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<DryRun>() {
        eprintln!("{error}");
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {error:#}");
    if error.downcast_ref::<Usage>().is_some() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}
