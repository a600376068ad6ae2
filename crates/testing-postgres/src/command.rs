//! Runs the programs of PostgreSQL, and says what they said when they fail.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use crate::Error;

/// Runs to its end; its output is part of the error only.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|cause| Error::Run {
        program: program.clone(),
        cause,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stdout));
    Err(Error::Failed {
        program,
        output: said.trim().to_owned(),
    })
}

/// Runs to its end on this input; gives its output.
pub(crate) fn pipe(command: &mut Command, input: &[u8]) -> Result<Vec<u8>, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |cause| Error::Run {
        program: program.clone(),
        cause,
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let output = thread::scope(|threads| {
        // A program that reads no input, or fails, closes its end early; its status says so.
        threads.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
        let said = threads.spawn(|| {
            let mut said = String::new();
            let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut said));
            said
        });
        let output = child.wait_with_output().map_err(failed)?;
        Ok((output, said.join().unwrap_or_default()))
    });
    let (output, said) = output?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Error::Failed {
            program,
            output: said.trim().to_owned(),
        })
    }
}

/// Runs a program that starts another one, whose output must not block the caller.
pub(crate) fn launch(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Failed {
            program,
            output: status.to_string(),
        }),
        Err(cause) => Err(Error::Run { program, cause }),
    }
}
