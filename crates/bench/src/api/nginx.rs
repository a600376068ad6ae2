//! nginx with a fixed answer: what a well-known server takes for no work at all. One process, one
//! thread.

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

/// None where it is not installed.
pub async fn start(folder: &Path) -> Result<Option<Server>> {
    // Debian puts it where only root's path leads.
    let places = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&places)
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join("nginx"));
    let Some(program) = places.into_iter().find(|program| program.exists()) else {
        return Ok(None);
    };
    let address: SocketAddr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let place = folder.to_str().context("the folder has no plain name")?;
    let file = folder.join("nginx.conf");
    std::fs::write(
        &file,
        CONFIGURATION
            .replace("PLACE", place)
            .replace("ADDRESS", &address.to_string()),
    )?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    Ok(Some(
        Server::start_at(&mut command, address)
            .await
            .context("nginx does not start")?,
    ))
}
