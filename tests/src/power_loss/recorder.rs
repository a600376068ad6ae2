//! The library that records: its build and its parameters.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::app::build_folder;

/// Bytes of the file by which calls are made to fail.
const FAILURES_BYTES: usize = 4_096;
/// Offset of the text, after the number of the request and the number of failed calls.
const TEXT_AT: u64 = 8;

/// A recorder for one folder.
pub struct Recorder {
    library: PathBuf,
    folder: PathBuf,
    trace: PathBuf,
    failures: PathBuf,
    /// Syncs of files of this name leave no record.
    ignored_sync: Option<&'static str>,
}

/// Calls on one file that end with EIO.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// "write" or "sync".
    pub operation: &'static str,
    /// Name below the folder.
    pub file: &'static str,
    /// Number of calls.
    pub count: usize,
}

impl Recorder {
    /// Builds the library where that was not done, and begins a new trace of this name beside the
    /// folder.
    ///
    /// # Errors
    ///
    /// There is no C compiler, or nothing can be written beside the folder.
    pub fn new(folder: &Path, name: &str, ignored_sync: Option<&'static str>) -> Result<Self> {
        let recorder = Self {
            library: build(&build_folder())?,
            folder: folder.to_owned(),
            trace: folder.with_file_name(format!("{name}.trace")),
            failures: folder.with_file_name(format!("{name}.failures")),
            ignored_sync,
        };
        fs::write(&recorder.trace, "")?;
        fs::write(&recorder.failures, [0; FAILURES_BYTES])?;
        Ok(recorder)
    }

    /// Returns the variables by which a process is recorded.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut environment = vec![
            ("LD_PRELOAD", path(&self.library)),
            ("POWER_LOSS_FOLDER", path(&self.folder)),
            ("POWER_LOSS_TRACE", path(&self.trace)),
            ("POWER_LOSS_FAIL", path(&self.failures)),
        ];
        environment.extend(
            self.ignored_sync
                .map(|name| ("POWER_LOSS_IGNORE_SYNC", name.to_owned())),
        );
        environment
    }

    pub fn trace(&self) -> &Path {
        &self.trace
    }

    /// Has the next calls fail; those of an earlier request do no more.
    pub fn fail(&self, failure: Failure) -> Result<()> {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(&self.failures)?;
        let mut request = [0; 4];
        file.read_exact_at(&mut request, 0)?;
        let text = format!("{} {} {}\0", failure.operation, failure.file, failure.count);
        file.write_all_at(text.as_bytes(), TEXT_AT)?;
        let request = u32::from_le_bytes(request) + 1;
        Ok(file.write_all_at(&request.to_le_bytes(), 0)?)
    }

    /// Returns how many calls have failed so far.
    pub fn failed(&self) -> Result<u32> {
        let mut failed = [0; 4];
        fs::File::open(&self.failures)?.read_exact_at(&mut failed, 4)?;
        Ok(u32::from_le_bytes(failed))
    }
}

/// Builds the library in this folder, unless it is there.
fn build(folder: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("power-loss/record.c");
    let library = folder.join("power-loss-record.so");
    let written = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    if written(&library).is_ok_and(|library| written(&source).is_ok_and(|source| source < library))
    {
        return Ok(library);
    }
    // Tests of one process and of several may build it at the same time, each a file of its own.
    let own = tempfile::Builder::new().suffix(".so").tempfile_in(folder)?;
    let mut compiler = Command::new("cc");
    compiler
        .args([
            "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o",
        ])
        .arg(own.path())
        .arg(&source);
    let output = compiler.output().context("cannot run cc, the C compiler")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    own.persist(&library)?;
    Ok(library)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn tests_that_build_the_library_at_once_all_have_it() {
        let folder = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            let builds = [(); 4].map(|()| scope.spawn(|| build(folder.path())));
            for build in builds {
                let library = build.join().unwrap().unwrap();
                assert_eq!(library, folder.path().join("power-loss-record.so"));
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
