//! The nginx of this machine in front of a split deployment, with the file of `deploy/nginx` as
//! users get it: only addresses and the folder of certificates are replaced.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::{python, until};

/// Another process may take the free port before nginx does.
const TRIES: u32 = 5;

/// Configuration around ours, as in Debian's own file but for paths. nginx is one process, so that
/// its end is the end of the server.
const AROUND: &str = "daemon off;
master_process off;
pid PLACE/nginx.pid;
error_log PLACE/error.log warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path PLACE/body;
    proxy_temp_path PLACE/proxy;
    fastcgi_temp_path PLACE/fastcgi;
    uwsgi_temp_path PLACE/uwsgi;
    scgi_temp_path PLACE/scgi;
    include PLACE/kanat.conf;
}
";

/// Addresses of the parts of a deployment.
pub struct Upstreams<'a> {
    /// As host and port; as many as the file names.
    pub control_planes: &'a [&'a str],
    pub nodes: &'a [&'a str],
    /// Has `hooks.pem`, `hooks.key` and `control-ca.pem`.
    pub certificates: &'a Path,
}

/// A running nginx. It is killed, and its folder removed, when dropped.
pub struct Nginx {
    folder: TempDir,
    _child: Child,
    /// As `https://127.0.0.1:...`.
    pub base: String,
}

impl Nginx {
    /// Checks the configuration as `nginx -t` does, and starts it.
    ///
    /// # Panics
    /// There is no nginx on this machine, or it refuses the file.
    pub async fn start(upstreams: &Upstreams<'_>) -> Self {
        let folder = TempDir::with_prefix("kanat-nginx-").expect("a temporary folder can be made");
        let place = folder
            .path()
            .to_str()
            .expect("temporary folders have plain names");
        let main = folder.path().join("nginx.conf");
        write(&main, &AROUND.replace("PLACE", place));
        for _ in 0..TRIES {
            let address = free_address();
            write(
                &folder.path().join("kanat.conf"),
                &configuration(&address, upstreams),
            );
            check(&main).await;
            let mut child = command(&main)
                .kill_on_drop(true)
                .spawn()
                .expect("nginx starts");
            let listens = until("nginx listens, or has ended", || {
                let ended = child.try_wait().expect("nginx can be waited for").is_some();
                let connecting = TcpStream::connect(&address);
                async move {
                    if connecting.await.is_ok() {
                        Some(true)
                    } else {
                        ended.then_some(false)
                    }
                }
            });
            if listens.await {
                return Self {
                    folder,
                    _child: child,
                    base: format!("https://{address}"),
                };
            }
        }
        panic!("nginx does not listen:\n{}", log(folder.path()));
    }
}

/// A test that fails prints the log of nginx.
impl Drop for Nginx {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("nginx wrote to its error log:\n{}", log(self.folder.path()));
        }
    }
}

/// The file of `deploy/nginx` for this deployment.
fn configuration(listen: &str, upstreams: &Upstreams<'_>) -> String {
    let path = python::root().join("deploy/nginx/kanat.conf");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let certificates = upstreams
        .certificates
        .to_str()
        .expect("temporary folders have plain names");
    let mut servers: VecDeque<_> = Vec::new().into();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut line = line
            .replace("/etc/nginx/tls", certificates)
            .replace("listen 443 ", &format!("listen {listen} "));
        if line.starts_with("upstream kanat_data") {
            servers = upstreams.nodes.iter().copied().collect();
        } else if line.starts_with("upstream ") {
            servers = upstreams.control_planes.iter().copied().collect();
        } else if let Some(server) = line
            .trim_start()
            .strip_prefix("server ")
            .filter(|rest| *rest != "{")
        {
            let (_, options) = server.split_once(' ').unwrap_or((server, ";"));
            let ours = servers
                .pop_front()
                .expect("the file names no more servers than the deployment has");
            line = format!("    server {ours} {options}");
        } else if line == "}" {
            assert!(
                servers.is_empty(),
                "the file names fewer servers than the deployment has"
            );
        }
        lines.push(line);
    }
    lines.join("\n")
}

async fn check(main: &Path) {
    let output = command(main)
        .arg("-t")
        .stderr(Stdio::piped())
        .output()
        .await
        .expect("nginx runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nginx refuses the file:\n{said}");
}

fn command(main: &Path) -> Command {
    let mut command = Command::new(program());
    let folder = main.parent().expect("a file lies in a folder");
    command
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(main)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Debian puts it where only root's path leads.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders
        .map(|folder| folder.join("nginx"))
        .find(|program| program.exists());
    found.expect("nginx is on this machine: on Debian, `apt-get install nginx-light`")
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener
        .local_addr()
        .expect("a listener has an address")
        .to_string()
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("error.log")).unwrap_or_default()
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("the folder of the test can be written");
}
