//! A reader of pages, in a checkout and a home of its own, with a built `kanat` and two free ports.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::terminal::{Environment, Group, Shell};
use super::{Block, blocks, output};
use crate::app::binary;
use crate::python::root;
use crate::wait::{DEADLINE, until};

/// The ports that pages name: the service's and the target's.
const SHOWN_PORTS: [&str; 2] = ["8080", "9000"];

/// Ports below those that systems give to connections, which no other test asks for.
const PORTS: Range<u32> = 20_000..32_000;

/// Number of ports that one process of tests is likely to ask for.
const PORTS_A_PROCESS: u32 = 32;

/// Number of ports that this process has tried.
static NEXT_ADDRESS: AtomicU32 = AtomicU32::new(0);

/// Time within which a block has to end.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Builds nothing: what pages build is there already.
const CARGO: &str = "#!/bin/sh\n\
    case \"$*\" in\n\
    'build'*) ;;\n\
    'run --release -- '*) shift 3; exec KANAT \"$@\" ;;\n\
    'run -- '*) shift 2; exec KANAT \"$@\" ;;\n\
    *) echo \"cargo $*: not in a page\" >&2; exit 1 ;;\n\
    esac\n";

/// A reader of a page with its terminals. Its processes are killed and its folders removed when it
/// is dropped.
pub struct Reader {
    /// The first terminal.
    shell: Shell,
    others: Vec<Group>,
    environment: Environment,
    ports: [u16; 2],
    scripts: usize,
    folder: TempDir,
}

impl Reader {
    /// Opens the first terminal.
    pub fn new() -> Self {
        Self::with_programs(None)
    }

    /// Opens the first terminal, where programs of this folder come before those of the system.
    pub fn with_programs(programs: Option<&Path>) -> Self {
        let folder = TempDir::with_prefix("kanat-reader-").expect("a temporary folder can be made");
        let checkout = checkout(folder.path());
        let ports = [free_port(), free_port()];
        let service = format!("127.0.0.1:{}", ports[0]);
        let mut path = vec![folder.path().join("bin")];
        path.extend(programs.map(Path::to_owned));
        path.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path = std::env::join_paths(path).expect("folders have plain names");
        let home = folder.path().join("home");
        let variables = [
            ("HOME", home.display().to_string()),
            ("PATH", path.to_string_lossy().into_owned()),
            ("NO_PROXY", "*".to_owned()),
            ("KANAT_LISTEN", service.clone()),
            ("KANAT_URL", format!("http://{service}")),
        ];
        let variables = variables
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec();
        let environment = Environment {
            folder: checkout,
            variables,
        };
        let shell = Shell::open(&environment);
        Self {
            shell,
            others: Vec::new(),
            environment,
            ports,
            scripts: 0,
            folder,
        }
    }

    /// Types the blocks of a page that are marked `sh`, and those only of a section where one is
    /// given.
    ///
    /// # Panics
    /// A block fails, or prints something else than the page shows.
    pub async fn follow(&mut self, page: &str, section: Option<&str>) {
        let text = std::fs::read_to_string(root().join(page))
            .unwrap_or_else(|error| panic!("{page}: {error}"));
        let typed = blocks(&text)
            .into_iter()
            .filter(|block| block.language == "sh");
        let typed: Vec<_> = typed
            .filter(|block| section.is_none_or(|section| block.section == section))
            .collect();
        assert!(!typed.is_empty(), "{page} has no such block");
        for block in typed {
            let place = format!("{page}:{}", block.line);
            let done = tokio::time::timeout(COMMAND_TIMEOUT, self.run(&place, &block)).await;
            assert!(done.is_ok(), "{place} does not end");
        }
    }

    async fn run(&mut self, place: &str, block: &Block) {
        if block.words.iter().any(|word| word.starts_with("terminal=")) {
            return self.start(place, block).await;
        }
        let begun = Instant::now();
        loop {
            let (script, printed) = self.write(block);
            let succeeded = self.shell.run(&script, &printed).await;
            let printed = std::fs::read_to_string(printed).expect("what a block prints is UTF-8");
            assert!(succeeded, "{place} fails:\n{printed}");
            match output::compare(block.output.as_deref().unwrap_or_default(), &printed) {
                Ok(()) => return,
                Err(_) if block.says("repeat") && begun.elapsed() < DEADLINE => {
                    tokio::time::sleep(Duration::from_millis(50)).await
                }
                Err(line) => panic!("{place} does not print {line:?} there, but:\n{printed}"),
            }
        }
    }

    /// Starts what goes on in a terminal of its own, and waits until it listens.
    async fn start(&mut self, place: &str, block: &Block) {
        let before = self.listening();
        let (script, printed) = self.write(block);
        let mut process = Group::start(&self.environment, &script, &printed);
        let read = || std::fs::read_to_string(&printed).unwrap_or_default();
        until(&format!("{place} listens"), || {
            assert!(!process.has_ended(), "{place} ends:\n{}", read());
            let shown = output::compare(block.output.as_deref().unwrap_or_default(), &read());
            let listens = self.listening() > before && shown.is_ok();
            async move { listens.then_some(()) }
        })
        .await;
        self.others.push(process);
    }

    fn listening(&self) -> usize {
        self.ports
            .iter()
            .filter(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, **port)).is_ok())
            .count()
    }

    /// Writes the script of a block; gives its place, and that of what it prints.
    fn write(&mut self, block: &Block) -> (PathBuf, PathBuf) {
        self.scripts += 1;
        let ports = SHOWN_PORTS.iter().zip(self.ports);
        let text = ports.fold(block.text.clone(), |text, (shown, port)| {
            text.replace(shown, &port.to_string())
        });
        let script = self.folder.path().join(format!("{}.sh", self.scripts));
        std::fs::write(&script, text).expect("the folder can be written");
        let printed = script.with_extension("out");
        (script, printed)
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a checkout with a built program, a home, and a `cargo` that takes it from there.
fn checkout(folder: &Path) -> PathBuf {
    let checkout = folder.join("checkout");
    for made in ["home", "bin", "checkout/target/release"] {
        std::fs::create_dir_all(folder.join(made)).expect("the folder can be written");
    }
    for there in ["examples", "proto", "docs", "deploy"] {
        symlink(root().join(there), checkout.join(there)).expect("a link can be made");
    }
    let program = checkout.join("target/release/kanat");
    symlink(binary(), &program).expect("a link can be made");
    // As on a terminal, where curl shows no progress beside what it prints.
    std::fs::write(folder.join("home/.curlrc"), "silent\nshow-error\n")
        .expect("the folder can be written");
    let cargo = folder.join("bin/cargo");
    std::fs::write(
        &cargo,
        CARGO.replace("KANAT", &program.display().to_string()),
    )
    .expect("the folder can be written");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755))
        .expect("a file's mode can be set");
    checkout
}

/// Another process of tests begins its search elsewhere.
fn free_port() -> u16 {
    loop {
        let number = std::process::id()
            .wrapping_mul(PORTS_A_PROCESS)
            .wrapping_add(NEXT_ADDRESS.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + number % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).expect("the range is one of ports");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
