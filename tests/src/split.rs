//! A split deployment: control planes and nodes as processes of their own, on one PostgreSQL
//! database.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use kanat_testing_postgres::Database;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::app::{KEY, binary};
use crate::authority::Authority;
use crate::{Rest, until};

pub const JOIN_TOKEN: &str = "a-join-token-for-tests";

/// Database and folder of a deployment, which are removed when it is dropped.
pub struct Split {
    pub database: Database,
    pub folder: TempDir,
}

impl Split {
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("kanat-split-").expect("a temporary folder can be made");
        Self {
            database: Database::fresh(),
            folder,
        }
    }

    /// Makes a deployment whose folder lies below this one and is kept.
    pub fn new_in(folder: &Path) -> Self {
        let mut folder =
            TempDir::with_prefix_in("split-", folder).expect("a temporary folder can be made");
        folder.disable_cleanup(true);
        Self {
            database: Database::fresh(),
            folder,
        }
    }

    /// A further control plane. All share the folder that holds their master key.
    pub async fn control_plane(&self, name: &str) -> TestProcess {
        let data_dir = self.folder.path().join("control");
        self.process(
            name,
            "control-plane",
            data_dir,
            &[("KANAT_JOIN_TOKEN", JOIN_TOKEN)],
            None,
        )
        .await
    }

    /// Starts a control plane with these variables in its environment.
    pub async fn control_plane_with(
        &self,
        name: &str,
        environment: &[(&str, &str)],
    ) -> TestProcess {
        let mut all = vec![("KANAT_JOIN_TOKEN", JOIN_TOKEN)];
        all.extend(environment);
        self.process(
            name,
            "control-plane",
            self.folder.path().join("control"),
            &all,
            None,
        )
        .await
    }

    /// A control plane over TLS that lets nodes in by their certificate alone.
    pub async fn control_plane_over_tls(&self, name: &str, authority: &Authority) -> TestProcess {
        self.control_plane_over_tls_with(name, authority, &[]).await
    }

    /// Starts a control plane over TLS with these variables in its environment.
    pub async fn control_plane_over_tls_with(
        &self,
        name: &str,
        authority: &Authority,
        more: &[(&str, &str)],
    ) -> TestProcess {
        let identity = authority.identity(name);
        let clients = authority.file();
        let mut environment = vec![
            ("KANAT_TLS_CERT", identity.certificate.as_str()),
            ("KANAT_TLS_KEY", &identity.key),
            ("KANAT_TLS_CLIENT_CA", &clients),
        ];
        environment.extend(more);
        let data_dir = self.folder.path().join("control");
        self.process(
            name,
            "control-plane",
            data_dir,
            &environment,
            Some(authority.pem()),
        )
        .await
    }

    /// A control plane over TLS, under a certificate of these host names too, that lets nodes in by
    /// their token.
    pub async fn control_plane_over_tls_for_hosts(
        &self,
        name: &str,
        authority: &Authority,
        hosts: &[&str],
    ) -> TestProcess {
        let identity = authority.identity_for(name, hosts);
        let environment = [
            ("KANAT_TLS_CERT", identity.certificate.as_str()),
            ("KANAT_TLS_KEY", &identity.key),
            ("KANAT_JOIN_TOKEN", JOIN_TOKEN),
        ];
        let data_dir = self.folder.path().join("control");
        self.process(
            name,
            "control-plane",
            data_dir,
            &environment,
            Some(authority.pem()),
        )
        .await
    }

    /// A node that shows this certificate, over TLS on both sides.
    pub async fn node_over_tls(
        &self,
        name: &str,
        control: &TestProcess,
        own: &Authority,
        trusted: &Authority,
    ) -> TestProcess {
        self.node_over_tls_with(name, control, own, trusted, &[])
            .await
    }

    /// Starts a node over TLS with these variables in its environment. Its certificate is that of
    /// `<name>.example.com`.
    pub async fn node_over_tls_with(
        &self,
        name: &str,
        control: &TestProcess,
        own: &Authority,
        trusted: &Authority,
        more: &[(&str, &str)],
    ) -> TestProcess {
        let identity = own.identity_for(name, &[&format!("{name}.example.com")]);
        let trusted = trusted.file();
        let mut environment = vec![
            ("KANAT_CONTROL_PLANE", control.base.as_str()),
            ("KANAT_TLS_CERT", &identity.certificate),
            ("KANAT_TLS_KEY", &identity.key),
            ("KANAT_TLS_CA", &trusted),
        ];
        environment.extend(more);
        let data_dir = self.folder.path().join(name);
        self.process(name, "data-plane", data_dir, &environment, Some(own.pem()))
            .await
    }

    /// A further node of these control planes.
    pub async fn node(&self, name: &str, control_planes: &[&TestProcess]) -> TestProcess {
        self.node_with(name, control_planes, &[]).await
    }

    /// Starts a node with these variables in its environment.
    pub async fn node_with(
        &self,
        name: &str,
        control_planes: &[&TestProcess],
        environment: &[(&str, &str)],
    ) -> TestProcess {
        let urls: Vec<_> = control_planes
            .iter()
            .map(|process| process.base.as_str())
            .collect();
        let urls = urls.join(",");
        let mut all = vec![
            ("KANAT_CONTROL_PLANE", urls.as_str()),
            ("KANAT_JOIN_TOKEN", JOIN_TOKEN),
        ];
        all.extend(environment);
        self.process(
            name,
            "data-plane",
            self.folder.path().join(name),
            &all,
            None,
        )
        .await
    }

    /// The key that the control planes made for themselves.
    pub fn master_key(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("control/master.key"))
            .expect("a control plane has started")
    }

    /// Writes what is published into a file; gives its path.
    pub async fn plan_file(&self) -> String {
        let file = self.folder.path().join("plans.sealed");
        let mut command = Command::new(binary());
        command
            .args(["control-plane", "--data-dir"])
            .arg(self.folder.path().join("control"));
        command
            .arg("--write-plan-file")
            .arg(&file)
            .env("KANAT_DATABASE_URL", self.database.url());
        assert!(command.status().await.expect("kanat runs").success());
        file.to_str()
            .expect("temporary folders have plain names")
            .to_owned()
    }

    /// Asks a node to drain, as an operator would.
    pub async fn drain_node(&self, id: &str) {
        let mut command = Command::new(binary());
        command
            .args(["control-plane", "--drain-node", id])
            .env("KANAT_DATABASE_URL", self.database.url());
        assert!(command.status().await.expect("kanat runs").success());
    }

    /// Tells the database that it was restored, as an operator would; gives what the command said.
    pub async fn restore_point(&self) -> String {
        let mut command = Command::new(binary());
        command.args(["restore-point", "--database-url", self.database.url()]);
        let output = command.output().await.expect("kanat runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it says text")
    }

    async fn process(
        &self,
        name: &str,
        command: &'static str,
        data_dir: PathBuf,
        environment: &[(&str, &str)],
        authority: Option<String>,
    ) -> TestProcess {
        let mut all = vec![
            ("KANAT_BOOTSTRAP_API_KEY", KEY),
            ("KANAT_DATABASE_URL", self.database.url()),
        ];
        all.push(("KANAT_METRICS_LISTEN", "127.0.0.1:0"));
        all.extend(environment);
        let environment = all
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let log = self.folder.path().join(format!("{name}.log"));
        let start = Start {
            command,
            data_dir,
            environment,
            listen: "127.0.0.1:0".to_owned(),
            log,
            authority,
        };
        TestProcess::start(start).await
    }
}

impl Default for Split {
    fn default() -> Self {
        Self::new()
    }
}

/// One process of ours. It is killed when dropped.
pub struct TestProcess {
    child: Child,
    pub base: String,
    pub api: Rest,
    start: Start,
    /// Its first line comes once it listens.
    lines: Option<FirstLine>,
}

type FirstLine = tokio::io::Lines<BufReader<tokio::process::ChildStdout>>;

struct Start {
    command: &'static str,
    data_dir: PathBuf,
    environment: Vec<(String, String)>,
    listen: String,
    log: PathBuf,
    /// Vouches for its listener, which speaks TLS then.
    authority: Option<String>,
}

impl Start {
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl TestProcess {
    async fn start(start: Start) -> Self {
        let (child, mut lines) = spawn(&start).expect("kanat starts");
        let base = listens(&mut lines).await.expect("kanat starts");
        let base = base.unwrap_or_else(|| {
            panic!(
                "kanat {} ended before it listened:\n{}",
                start.command,
                start.log()
            )
        });
        let api = match &start.authority {
            None => Rest::new(&base, KEY),
            Some(authority) => Rest::trusting(&base, KEY, authority),
        };
        Self {
            child,
            base,
            api,
            start,
            lines: None,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process runs")
    }

    /// Returns the standard error of the process, over all its starts.
    pub fn log(&self) -> String {
        self.start.log()
    }

    /// SIGKILL, and wait until the process is gone.
    pub async fn kill(&mut self) {
        self.child.start_kill().expect("the process can be killed");
        self.child.wait().await.expect("the process ends");
    }

    /// SIGTERM; gives the exit code.
    pub async fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM").await;
        self.ended().await
    }

    pub async fn signal(&self, name: &str) {
        let id = self.child.id().expect("the process runs").to_string();
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(id)
            .status()
            .await;
        assert!(sent.expect("kill runs").success());
    }

    /// Waits until the process has ended by itself; gives the exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        self.child.wait().await.expect("the process ends").code()
    }

    /// Starts again on the same folder and the same port.
    pub async fn restart(&mut self) {
        self.spawn_again();
        self.listens().await;
    }

    /// Starts the process again, with these variables added to its environment. When they give it a
    /// point to die at, it may be dead before it prints its address.
    pub async fn restart_with(&mut self, environment: &[(&str, &str)]) {
        self.spawn_again_with(environment);
        let listens = self.read_address().await;
        let ended = || {
            format!(
                "kanat {} ended before it listened:\n{}",
                self.start.command,
                self.log()
            )
        };
        assert!(listens || crate::app::dies(environment), "{}", ended());
    }

    /// Spawns the process again, with these variables added to its environment.
    pub fn spawn_again_with(&mut self, environment: &[(&str, &str)]) {
        self.start
            .environment
            .retain(|(name, _)| environment.iter().all(|(new, _)| new != name));
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.start.environment.extend(environment);
        self.spawn_again();
    }

    /// Starts again and does not wait until it listens: [`Self::listens`] does.
    pub fn spawn_again(&mut self) {
        self.start.listen = self.base.split("//").last().unwrap_or_default().to_owned();
        let (child, lines) = spawn(&self.start).expect("kanat starts again");
        (self.child, self.lines) = (child, Some(lines));
    }

    /// Waits until it says that it listens.
    pub async fn listens(&mut self) {
        assert!(
            self.read_address().await,
            "kanat {} ended before it listened:\n{}",
            self.start.command,
            self.log()
        );
    }

    /// Reads the address of the process, and returns whether it printed one.
    async fn read_address(&mut self) -> bool {
        let mut lines = self
            .lines
            .take()
            .expect("it was started and not waited for");
        let base = listens(&mut lines).await.expect("kanat starts again");
        base.map(|base| assert_eq!(base, self.base)).is_some()
    }

    /// The sum of a metric over its labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let answer = self
            .api
            .without_key()
            .get(&format!("{}/metrics", self.metrics()))
            .await;
        let samples = answer
            .text
            .lines()
            .filter_map(|line| line.strip_prefix(name));
        let samples = samples.filter(|rest| rest.starts_with([' ', '{']));
        samples
            .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Address of its metrics, from the last line of its log that has one.
    pub fn metrics(&self) -> String {
        let log = self.log();
        let line = log
            .lines()
            .rfind(|line| line.contains("metrics are served"))
            .expect("the address is logged");
        let line: serde_json::Value = serde_json::from_str(line).expect("the log is JSON");
        crate::rest::text(&line["url"])
    }

    /// The status of its `/ready`.
    pub async fn readiness(&self) -> u16 {
        self.api.get("/ready").await.status
    }

    pub async fn becomes_ready(&self) {
        until(&format!("{} is ready", self.start.command), || async {
            (self.readiness().await == 200).then_some(())
        })
        .await;
    }
}

fn spawn(start: &Start) -> Result<(Child, FirstLine)> {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&start.log)?;
    let mut child = Command::new(binary())
        .args([start.command, "--listen", &start.listen, "--data-dir"])
        .arg(&start.data_dir)
        // The targets of tests are on this machine.
        .env("KANAT_EGRESS", "local")
        .envs(start.environment.iter().cloned())
        .current_dir(start.log.parent().context("a log lies in a folder")?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", binary().display()))?;
    let stdout = child.stdout.take().context("no standard output")?;
    Ok((child, BufReader::new(stdout).lines()))
}

/// Reads the address from the first line; none when the process ended before.
async fn listens(lines: &mut FirstLine) -> Result<Option<String>> {
    let Some(line) = lines.next_line().await? else {
        return Ok(None);
    };
    let base = line
        .rsplit(' ')
        .next()
        .context("an empty first line")?
        .to_owned();
    anyhow::ensure!(
        line.starts_with("kanat ") && base.starts_with("http"),
        "unexpected first line {line:?}"
    );
    Ok(Some(base))
}
