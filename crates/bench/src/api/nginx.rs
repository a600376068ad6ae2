//! nginx with a fixed answer: what a well-known server takes for no work at all. One process, one thread.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::process::Server;

const CONFIGURATION: &str = r#"daemon off;
master_process off;
pid PLACE/nginx.pid;
error_log PLACE/nginx.log warn;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path PLACE/body;
    proxy_temp_path PLACE/proxy;
    fastcgi_temp_path PLACE/fastcgi;
    uwsgi_temp_path PLACE/uwsgi;
    scgi_temp_path PLACE/scgi;
    default_type application/json;
    server {
        listen ADDRESS;
        location / { return 200 '{"status":"accepted"}'; }
    }
}
"#;

pub async fn start(folder: &Path) -> Result<Server> {
    let address: SocketAddr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let place = folder.to_str().context("the folder has no plain name")?;
    let file = folder.join("nginx.conf");
    std::fs::write(&file, CONFIGURATION.replace("PLACE", place).replace("ADDRESS", &address.to_string()))?;
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    let server = Server::start_at(&mut command, address).await;
    server.context("nginx is needed to compare with: apt-get install nginx")
}
