//! Runs the programs of PostgreSQL, and says what they said when they fail.

use std::process::{Command, Stdio};

use crate::Error;

/// Runs to its end; its output is part of the error only.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|cause| Error::Run { program: program.clone(), cause })?;
    if output.status.success() {
        return Ok(());
    }
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stdout));
    Err(Error::Failed { program, output: said.trim().to_owned() })
}

/// Runs a program that leaves another one behind, whose output must not keep ours waiting.
pub(crate) fn launch(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Failed { program, output: status.to_string() }),
        Err(cause) => Err(Error::Run { program, cause }),
    }
}
