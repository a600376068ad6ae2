//! Both planes in one process, joined: opened in order, listening, and stopped in the opposite
//! order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::FutureExt;
use kanat_control_plane::ControlPlane;
use kanat_data_plane::DataPlane;
use kanat_data_plane::plans::ControlPlanes;
use tokio_util::sync::CancellationToken;

use crate::monitoring;
use crate::process::folder::Folder;
use crate::process::listener::Port;
use crate::process::page::Page;
use crate::process::router::{OtherPaths, Router};
use crate::process::server::Server;
use crate::process::service::Service;
use crate::process::waiting::Listeners;
use crate::process::{database, egress, listener, mail, planes};
use crate::settings::oidc;
use crate::settings::up::Settings;

/// Plans come over a transport in memory; a node that has none after this long has a reason that
/// the log has.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Starts everything and returns when requests are answered.
pub async fn start(settings: Settings) -> Result<Service> {
    let process = &settings.process;
    let control = &settings.control;
    let folder = Folder::take(&process.data_dir)?;
    let options = listener::options(process, control.tls_client_ca.as_deref())?;
    let port = Port::bind(process.listen, options.clone()).await?;
    let data_port = match settings.data_plane_listen {
        Some(address) => Some(Port::bind(address, options).await?),
        None => None,
    };
    let metrics = monitoring::bind(process).await?;
    let url = port.url();
    let own_url = data_port.as_ref().unwrap_or(&port).url();
    let data_address = data_port.as_ref().unwrap_or(&port).address;

    let ports = || [&port].into_iter().chain(&data_port).chain(&metrics);
    let webhooks = format!("{own_url}{}", egress::WEBHOOKS);
    let public = control.public_url.as_deref().unwrap_or(&webhooks);
    let outbound = egress::client(process, settings.local_targets(), ports(), Some(public))?;
    egress::announce(settings.local_targets(), settings.reach());
    oidc::warn(&control.plane.issuers);
    let listeners = Listeners::new(ports());
    let log = database::log(process, &folder, &listeners).await?;
    if !control.plane.accept_empty_config {
        database::check_configuration(process, &folder, log.as_ref()).await?;
    }
    let sealer = database::sealer(process)?;
    let store = database::store(process, &folder, &listeners).await?;

    let options = &control.plane;
    if control.public_url.is_none() && data_address.ip().is_unspecified() {
        tracing::warn!(
            "there is no --public-url: webhook addresses begin with {own_url}, which only \
                 this machine can call",
        );
    }
    options
        .public_url
        .set(control.public_url.as_ref().unwrap_or(&own_url));
    let shared = control
        .public_url
        .as_ref()
        .filter(|_| settings.data_plane_listen.is_none());
    options
        .api_url
        .set(control.api_url.as_ref().or(shared).unwrap_or(&url));
    mail::announce(options.mailer.as_ref());
    let page = Page::new(options.api_url.base());
    let control = ControlPlane::start(
        settings.control.plane,
        store,
        Arc::clone(&log),
        Arc::clone(&sealer),
        outbound.clone(),
    );
    let control = control.await.context("cannot start the control plane")?;
    let plans = ControlPlanes::new(control.connect_own_node());
    let options = planes::node_options(process, &settings.node, &folder, data_address)?;
    let data = DataPlane::start(options, Arc::clone(&log), plans, outbound, sealer).await;

    let last_good_handle = data.last_good_handle();
    control.seal_elsewhere(Arc::new(move || {
        let last_good_handle = last_good_handle.clone();
        async move { last_good_handle.reseal().await }.boxed()
    }));

    let control_monitor = Some(control.monitor());
    let server = Server::new(url, log, metrics, control_monitor, Some(data.monitor()));
    let other = OtherPaths::DataPlane(data.service());
    let router = Router::new(&control, other, page, server.ports.shutdown.clone());
    server.ports.serve(port, router);
    if let Some(data_port) = data_port {
        server.ports.serve(data_port, data.service());
    }
    data.ready_within(READY_WITHIN).await;
    Ok(Service {
        server,
        control: Some(control),
        data: Some(data),
        leaving: CancellationToken::new(),
        _folder: folder,
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn readiness(service: &Service) -> String {
        let mut stream = TcpStream::connect(service.url().trim_start_matches("http://"))
            .await
            .unwrap();
        stream
            .write_all(b"GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn is_not_ready_when_its_configuration_is_out_of_reach() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::demo(folder.path(), kanat_auth::key::generate().text).unwrap();
        let service = start(settings).await.unwrap();
        let ready = readiness(&service).await;
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        service.control.as_ref().unwrap().store().close().await;
        let ready = readiness(&service).await;
        assert!(
            ready.starts_with("HTTP/1.1 503") && ready.contains("the configuration store"),
            "{ready}"
        );
        service.stop(Duration::ZERO).await;
    }
}
