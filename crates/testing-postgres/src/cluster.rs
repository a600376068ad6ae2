//! A PostgreSQL server of our own in a temporary folder, which can be stopped, killed, held still
//! and started again.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Programs, command};

/// Another process may take the free port before the server does.
const TRIES: u32 = 5;

/// Tests run side by side, as many as there are cores, and some have three processes of twenty
/// connections. Without a free one the pools only report a timeout, after trying until their time
/// is over.
const CONNECTIONS: u32 = 1_000;

/// Longest that a server may take to get into a state.
const WAIT_AT_MOST: Duration = Duration::from_secs(60);
/// Pause between two questions, or two looks at processes that are about to end.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits for the end of our process, however it ends, then takes everything away, also a server
/// that is held still.
const WATCH: &str = r#"cat >/dev/null; kill -CONT "$(head -n 1 "$1/data/postmaster.pid")"
"$0" stop --silent --mode=immediate -D "$1/data"; rm -rf "$1""#;

/// Mounts a disk of some MiB for a user and its group at a folder, and starts a server beside it as
/// that user.
const SMALL_DISK: &str = concat!(
    r#"mount -t tmpfs -o "size=$1m,mode=0700,uid=$2,gid=$3" tmpfs "$4" &&"#,
    "\n",
    r#"exec setpriv --reuid "$2" --regid "$3" --clear-groups "#,
    r#""$5" -D "$6" start --silent --wait -o "$7" -l "$8""#
);

const END_CONNECTIONS: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :'database'";

/// Durability of a commit when the machine loses power. The end of a process loses no commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    OnDisk,
    /// Quicker, for tests of everything else.
    InMemory,
}

/// How the server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Connections are ended, transactions rolled back.
    Fast,
    /// At once, as after a crash.
    Immediate,
}

/// A running server; it and its folder are gone when this is dropped or our process ends.
#[derive(Debug)]
pub struct Cluster {
    programs: Programs,
    folder: PathBuf,
    port: u16,
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    process: Child,
    /// Its end is what the process waits for.
    line: ChildStdin,
}

impl Cluster {
    /// Makes a cluster and starts it; ready for connections when this returns.
    pub fn start(programs: Programs, durability: Durability) -> Result<Self, Error> {
        Self::made_by(programs, |cluster| cluster.make(durability))
    }

    /// Copies this server into a standby and starts it. From then on every commit here waits for
    /// the standby.
    pub fn synchronous_standby(&self) -> Result<Self, Error> {
        let standby = Self::made_by(self.programs.clone(), |standby| {
            let mut copy = self.programs.command("pg_basebackup");
            copy.arg("-d")
                .arg(self.url("postgres"))
                .arg("-D")
                .arg(standby.data());
            command::run(copy.args([
                "--write-recovery-conf",
                "--wal-method=stream",
                "--checkpoint=fast",
                "--no-sync",
            ]))
        })?;
        self.wait_for_standby()?;
        Ok(standby)
    }

    /// Has every commit wait for a standby, from the moment that one is connected.
    pub fn wait_for_standby(&self) -> Result<(), Error> {
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.execute("SELECT pg_reload_conf()")?;
        self.wait_until(
            "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')",
        )
    }

    /// Makes a standby a primary; it takes writes when this returns.
    pub fn promote(&self) -> Result<(), Error> {
        command::launch(self.control().args(["promote", "--silent", "--wait"]))
    }

    /// Starts a stopped server as a standby of another one that was promoted in its place.
    pub fn start_as_standby_of(&self, primary: &Self) -> Result<(), Error> {
        // Until its next checkpoint, a promoted server reports its former timeline.
        primary.execute("CHECKPOINT")?;
        let mut rewind = self.programs.command("pg_rewind");
        rewind
            .arg("--target-pgdata")
            .arg(self.data())
            .arg("--source-server")
            .arg(primary.url("postgres"));
        command::run(rewind.args(["--write-recovery-conf", "--no-sync"]))?;
        self.start_again()
    }

    /// Runs statements, in the database that every server has.
    pub fn execute(&self, statements: &str) -> Result<String, Error> {
        self.execute_in("postgres", statements)
    }

    /// Runs statements in one of its databases; gives their output without headers.
    pub fn execute_in(&self, database: &str, statements: &str) -> Result<String, Error> {
        let mut psql = self.programs.command("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
        ]);
        let answer = command::pipe(
            psql.args(["--command", statements]).arg(self.url(database)),
            &[],
        )?;
        Ok(String::from_utf8_lossy(&answer).trim().to_owned())
    }

    fn wait_until(&self, question: &str) -> Result<(), Error> {
        let begun = Instant::now();
        while self.execute(question)? != "t" {
            if begun.elapsed() > WAIT_AT_MOST {
                return Err(Error::Failed {
                    program: "psql".to_owned(),
                    output: format!("not true: {question}"),
                });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn made_by(
        programs: Programs,
        make: impl FnOnce(&Self) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("kanat-postgres-").tempdir();
        let folder = folder
            .map_err(|cause| Error::Folder {
                path: std::env::temp_dir(),
                cause,
            })?
            .keep();
        programs.give(&folder)?;
        let watch = Watch::begin(&programs, &folder)?;
        let mut cluster = Self {
            programs,
            folder,
            port: 0,
            watch: Some(watch),
        };
        make(&cluster)?;
        let mut last = None;
        for _ in 0..TRIES {
            cluster.port = free_port()?;
            match cluster.start_again() {
                Ok(()) => return Ok(cluster),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(Error::NotInstalled))
    }

    /// The address of one of its databases.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Stops it; connections to it break.
    pub fn stop(&self, stop: Stop) -> Result<(), Error> {
        let mode = match stop {
            Stop::Fast => "--mode=fast",
            Stop::Immediate => "--mode=immediate",
        };
        command::launch(self.control().args(["stop", "--silent", "--wait", mode]))
    }

    /// Kills all its processes, and waits until they are gone: one that is left would keep it from
    /// starting again.
    pub fn kill(&self) -> Result<(), Error> {
        // While the first one stands still it starts no other.
        self.pause()?;
        let processes = self.processes()?;
        for process in &processes {
            // A process that has ended meanwhile needs no signal.
            let _ = command::run(Command::new("kill").arg("-KILL").arg(process.to_string()));
        }
        while processes.iter().any(|process| runs(*process)) {
            thread::sleep(PAUSE);
        }
        // A process that has ended keeps its number until it is reaped, and these files would name
        // a running one.
        for path in [
            self.process_file(),
            self.folder.join(format!(".s.PGSQL.{}.lock", self.port)),
        ] {
            fs::remove_file(&path).map_err(|cause| Error::Folder { path, cause })?;
        }
        Ok(())
    }

    /// Ends all connections to one of its databases, as an operator can.
    pub fn end_connections(&self, database: &str) -> Result<(), Error> {
        let mut psql = self.programs.command("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--output=/dev/null",
            "--set=ON_ERROR_STOP=1",
        ]);
        psql.arg(format!("--set=database={database}"))
            .arg(self.url("postgres"));
        command::pipe(&mut psql, END_CONNECTIONS.as_bytes()).map(drop)
    }

    /// Starts it after a stop, at the same address.
    pub fn start_again(&self) -> Result<(), Error> {
        let log = self.folder.join("log");
        command::launch(
            self.control()
                .args(["start", "--silent", "--wait", "-o", &self.options(), "-l"])
                .arg(log),
        )
    }

    /// Holds all its processes still, as a machine without time for them would.
    pub fn pause(&self) -> Result<(), Error> {
        // The first one starts the others, so it comes first.
        self.signal("-STOP")
    }

    /// Lets it run again.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal("-CONT")
    }

    /// The ids of its processes; first the one that starts the others.
    pub fn processes(&self) -> Result<Vec<u32>, Error> {
        let first = self.first_process()?;
        Ok(std::iter::once(first).chain(children(first)).collect())
    }

    /// Starts the server again with a small disk of its own, for databases that are made on it. The
    /// disk is in memory, in a mount namespace that ends with the server. Only root may mount one.
    pub fn restart_with_small_disk(&self, mebibytes: u32) -> Result<(), Error> {
        let (uid, gid) = self.programs.ids().ok_or(Error::NoMount)?;
        let disk = self.disk();
        fs::create_dir(&disk).map_err(|cause| Error::Folder {
            path: disk.clone(),
            cause,
        })?;
        self.stop(Stop::Fast)?;
        let mut start = Command::new("unshare");
        start
            .args(["--mount", "sh", "-c", SMALL_DISK, "sh"])
            .args([mebibytes, uid, gid].map(|number| number.to_string()));
        start
            .arg(disk)
            .arg(self.programs.command("pg_ctl").get_program())
            .arg(self.data());
        command::launch(start.arg(self.options()).arg(self.folder.join("log")))
    }

    /// Gives the small disk of a server another size.
    pub fn resize_small_disk(&self, mebibytes: u32) -> Result<(), Error> {
        let mut resize = Command::new("nsenter");
        resize
            .arg("--target")
            .arg(self.first_process()?.to_string())
            .args(["--mount", "mount", "-o"]);
        command::run(
            resize
                .arg(format!("remount,size={mebibytes}m"))
                .arg(self.disk()),
        )
    }

    /// Makes an empty database on the small disk.
    pub fn create_database_on_small_disk(&self, name: &str) -> Result<(), Error> {
        self.execute(&format!(
            "CREATE TABLESPACE small LOCATION '{}'",
            self.disk().display()
        ))?;
        self.execute(&format!("CREATE DATABASE {name} TABLESPACE small"))
            .map(drop)
    }

    /// Makes an empty database.
    pub fn create_database(&self, name: &str) -> Result<(), Error> {
        let mut create = self.programs.command("createdb");
        command::run(
            create
                .arg(format!("--maintenance-db={}", self.url("postgres")))
                .arg(name),
        )
    }

    /// Drops a database, and closes its connections. Changes of other databases are written to the
    /// disk.
    pub fn drop_database(&self, name: &str) -> Result<(), Error> {
        let mut drop = self.programs.command("dropdb");
        command::run(
            drop.arg("--force")
                .arg(format!("--maintenance-db={}", self.url("postgres")))
                .arg(name),
        )
    }

    fn make(&self, durability: Durability) -> Result<(), Error> {
        // Text is ordered as people order it, as on most servers, so that a test shows what relies
        // on another order. Programs older than version 15, or built without it, know byte order
        // only.
        let ordered = self.initialize(&["--locale-provider=icu", "--icu-locale=en-US"]);
        ordered.or_else(|_| self.initialize(&[]))?;
        let durability = match durability {
            Durability::OnDisk => "",
            Durability::InMemory => "fsync = off\nfull_page_writes = off\n",
        };
        // The last two let a former primary follow its successor.
        let settings = format!(
            "max_connections = {CONNECTIONS}\n{durability}wal_log_hints = on\nwal_keep_size = \
             '256MB'\n"
        );
        let path = self.data().join("postgresql.auto.conf");
        fs::write(&path, settings).map_err(|cause| Error::Folder { path, cause })
    }

    fn initialize(&self, more: &[&str]) -> Result<(), Error> {
        let mut initialize = self.programs.command("initdb");
        initialize.arg("-D").arg(self.data()).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
        ]);
        command::run(initialize.arg("--no-sync").args(more))
    }

    fn options(&self) -> String {
        format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1",
            self.port,
            self.folder.display()
        )
    }

    fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self) -> Command {
        let mut control = self.programs.command("pg_ctl");
        control.arg("-D").arg(self.data());
        control
    }

    fn process_file(&self) -> PathBuf {
        self.data().join("postmaster.pid")
    }

    fn first_process(&self) -> Result<u32, Error> {
        let path = self.process_file();
        let text = fs::read_to_string(&path).map_err(|cause| Error::Folder {
            path: path.clone(),
            cause,
        })?;
        let first = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        first.ok_or(Error::Folder {
            path,
            cause: ErrorKind::InvalidData.into(),
        })
    }

    fn signal(&self, signal: &str) -> Result<(), Error> {
        let first = self.first_process()?;
        command::run(Command::new("kill").arg(signal).arg(first.to_string()))?;
        for process in children(first) {
            // A process that has ended meanwhile needs no signal.
            let _ = command::run(Command::new("kill").arg(signal).arg(process.to_string()));
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.end();
        }
    }
}

impl Watch {
    fn begin(programs: &Programs, folder: &Path) -> Result<Self, Error> {
        let mut watch = programs.as_user("sh");
        watch
            .args(["-c", WATCH])
            .arg(programs.command("pg_ctl").get_program())
            .arg(folder);
        watch
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let failed = |cause| Error::Run {
            program: "sh".to_owned(),
            cause,
        };
        let mut process = watch.spawn().map_err(failed)?;
        let line = process
            .stdin
            .take()
            .ok_or_else(|| failed(ErrorKind::BrokenPipe.into()))?;
        Ok(Self { process, line })
    }

    fn end(mut self) {
        drop(self.line);
        // It ends by itself, and a failure has no receiver here.
        let _ = self.process.wait();
    }
}

fn free_port() -> Result<u16, Error> {
    let path = PathBuf::from("127.0.0.1:0");
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    port.map(|address| address.port())
        .map_err(|cause| Error::Folder { path, cause })
}

/// The processes that one has started.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process| parent_of(*process) == Some(parent))
        .collect()
}

fn parent_of(process: u32) -> Option<u32> {
    status(process)?.1.parse().ok()
}

/// Returns whether a process exists and has not ended.
fn runs(process: u32) -> bool {
    status(process).is_some_and(|(state, _)| state != "Z")
}

/// State and parent of a process.
fn status(process: u32) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field, the name, stands in parentheses and may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().map(ToOwned::to_owned);
    Some((fields.next()?, fields.next()?))
}
