//! A Python with the packages of `tests/python/requirements.txt` and the stubs of `proto/`, in a
//! folder under `target/` that later runs find again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use tokio::sync::Mutex;

/// Held while the environment is made, so that tests that run at once make one.
static MAKING: Mutex<()> = Mutex::const_new(());

/// A Python whose path has the stubs of every public service.
pub struct Python {
    interpreter: PathBuf,
    stubs: tempfile::TempDir,
}

impl Python {
    /// Makes the environment if this machine has none for these requirements yet, and fresh stubs.
    ///
    /// # Errors
    /// When Python, its venv module or the package index cannot be used.
    pub async fn prepare() -> Result<Self> {
        let interpreter = environment().await?;
        let stubs = tempfile::tempdir()?;
        let proto = root().join("proto");
        let mut protoc = Command::new(&interpreter);
        protoc
            .args(["-m", "grpc_tools.protoc"])
            .arg("-I")
            .arg(&proto);
        for option in ["--python_out", "--grpc_python_out"] {
            protoc.arg(option).arg(stubs.path());
        }
        for folder in ["google/api", "kanat/v1"] {
            for file in std::fs::read_dir(proto.join(folder))? {
                protoc.arg(file?.path());
            }
        }
        run(&mut protoc).await?;
        Ok(Self { interpreter, stubs })
    }

    /// Returns the folder of the interpreter, under the name `python3` too.
    pub fn folder(&self) -> &Path {
        self.interpreter.parent().unwrap_or(&self.interpreter)
    }

    /// Runs a script of `tests/python/`; gives what it printed.
    ///
    /// # Errors
    /// When it fails; the error has what it wrote to standard error.
    pub async fn run(&self, script: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.interpreter);
        command
            .arg(root().join("tests/python").join(script))
            .args(arguments)
            .env("PYTHONPATH", self.stubs.path());
        run(&mut command).await
    }
}

async fn environment() -> Result<PathBuf> {
    let requirements = root().join("tests/python/requirements.txt");
    let mut hasher = DefaultHasher::new();
    std::fs::read_to_string(&requirements)?.hash(&mut hasher);
    let folder = crate::app::build_folder().join(format!("python-{:x}", hasher.finish()));
    let interpreter = folder.join("bin/python");
    let ready = folder.join("ready");
    let _making = MAKING.lock().await;
    if !ready.exists() {
        // What an earlier run left half-made is made anew.
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder))
        .await?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ];
        run(Command::new(&interpreter).args(pip).arg(&requirements)).await?;
        std::fs::write(ready, "")?;
    }
    Ok(interpreter)
}

async fn run(command: &mut Command) -> Result<String> {
    let output = command
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {command:?}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed:\n{error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The workspace.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
