//! `kanat control-plane`: the control plane alone, for nodes of other processes, on a database that
//! all share.

mod drain_node;
mod plan_file;

use std::sync::Arc;

use anyhow::{Context, Result};
use kanat_control_plane::ControlPlane;
use tokio_util::sync::CancellationToken;

use crate::monitoring;
use crate::process::egress::{self, Reach};
use crate::process::folder::Folder;
use crate::process::listener::Port;
use crate::process::page::Page;
use crate::process::router::{OtherPaths, Router};
use crate::process::server::Server;
use crate::process::service::Service;
use crate::process::waiting::Listeners;
use crate::process::{self, Frame, database, listener, mail};
use crate::settings::control_plane::{Flags, Settings};
use crate::settings::{self, Sources, oidc};

/// Runs until SIGTERM or SIGINT, then ends what is open.
pub async fn run(flags: Flags, sources: Sources) -> Result<()> {
    let Some(settings) = settings::resolve(&flags, sources)? else {
        return Ok(());
    };
    if let Some(file) = flags.write_plan_file {
        return plan_file::write(&settings, &file).await;
    }
    if let Some(node) = flags.drain_node {
        return drain_node::announce_drain(&settings, &node).await;
    }
    process::run(Frame::of(&settings.process), start(settings)).await
}

async fn start(settings: Settings) -> Result<Service> {
    let Settings { process, control } = settings;
    // Control planes of one machine may share a folder: it holds the key that they have in
    // common.
    let folder = Folder::open(&process.data_dir)?;
    let options = listener::options(&process, control.tls_client_ca.as_deref())?;
    let port = Port::bind(process.listen, options).await?;
    let metrics = monitoring::bind(&process).await?;
    let url = port.url();

    let local_targets = process.egress.unwrap_or_default();
    let ports = || [&port].into_iter().chain(&metrics);
    let public = control.public_url.as_deref();
    let outbound = egress::client(&process, local_targets, ports(), public)?;
    egress::announce(local_targets, Reach::Others);
    oidc::warn(&control.plane.issuers);
    let listeners = Listeners::new(ports());
    let log = database::log(&process, &folder, &listeners).await?;
    if !control.plane.accept_empty_config {
        database::check_configuration(&process, &folder, log.as_ref()).await?;
    }
    let sealer = database::sealer(&process)?;
    let store = database::store(&process, &folder, &listeners).await?;

    let options = control.plane;
    // The proxies in front of both planes send OAuth2's way back to a control plane.
    options.api_url.set(
        control
            .api_url
            .as_ref()
            .or(control.public_url.as_ref())
            .unwrap_or(&url),
    );
    let page = Page::new(options.api_url.base());
    match &control.public_url {
        Some(url) => options.public_url.set(url),
        None => tracing::warn!(
            "there is no --public-url: webhook URLs are told as paths, without a host"
        ),
    }
    if options.nodes.is_none() {
        tracing::warn!(
            "there is neither --join-token, --tls-client-ca nor [[nodes]]: no data-plane node \
                 can connect",
        );
    }
    mail::announce(options.mailer.as_ref());
    let plane = ControlPlane::start(options, store, Arc::clone(&log), sealer, outbound)
        .await
        .context("cannot start the control plane")?;

    let leaving = CancellationToken::new();
    let server = Server::new(url, log, metrics, Some(plane.monitor()), None);
    let probes = OtherPaths::Probes {
        leaving: leaving.clone(),
    };
    let router = Router::new(&plane, probes, page, server.ports.shutdown.clone());
    server.ports.serve(port, router);
    Ok(Service {
        server,
        control: Some(plane),
        data: None,
        leaving,
        _folder: folder,
    })
}
