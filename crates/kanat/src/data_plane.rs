//! `kanat data-plane`: one node alone, which gets its plans from control planes over the network.

mod fallback;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kanat_data_plane::DataPlane;
use kanat_data_plane::plans::RemoteSettings;
use kanat_model::Secret;
use tokio_util::sync::CancellationToken;

use crate::exit::failure;
use crate::monitoring;
use crate::process::egress::{self, Reach};
use crate::process::folder::Folder;
use crate::process::listener::Port;
use crate::process::server::Server;
use crate::process::service::Service;
use crate::process::waiting::Listeners;
use crate::process::{self, Frame, database, listener, planes};
use crate::settings::data_plane::{Flags, Settings};
use crate::settings::{self, Sources};

/// A node that has no plans by then listens all the same, and answers 503 until it has.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Runs until SIGTERM, SIGINT or a control plane's wish, then drains.
pub async fn run(flags: Flags, sources: Sources) -> Result<()> {
    let Some(settings) = settings::resolve(&flags, sources)? else {
        return Ok(());
    };
    process::run(Frame::of(&settings.process), start(settings)).await
}

async fn start(settings: Settings) -> Result<Service> {
    let process = &settings.process;
    let folder = Folder::take(&process.data_dir)?;
    let mut options = listener::options(process, None)?;
    if settings.listen_without_tls {
        options.tls = None;
    }
    let sealer = database::sealer(process)?;
    let plans = remote(&settings)?
        .control_planes()
        .context("cannot set up the way to the control planes")?;
    let plans = plans.falling_back(fallback::fallback(&settings, &sealer));
    let port = Port::bind(process.listen, options).await?;
    let metrics = monitoring::bind(process).await?;

    let local_targets = process.egress.unwrap_or_default();
    let ports = || [&port].into_iter().chain(&metrics);
    let outbound = egress::client(process, local_targets, ports(), None)?;
    egress::announce(local_targets, Reach::Others);
    let log = database::log(process, &folder, &Listeners::new(ports())).await?;
    let mut options = planes::node_options(process, &settings.node, &folder, port.address)?;
    options.environments.clone_from(&settings.environments);
    let plane = DataPlane::start(options, Arc::clone(&log), plans, outbound, sealer).await;

    let server = Server::new(port.url(), log, metrics, None, Some(plane.monitor()));
    server.ports.serve(port, plane.service());
    plane.ready_within(READY_WITHIN).await;
    Ok(Service {
        server,
        control: None,
        data: Some(plane),
        leaving: CancellationToken::new(),
        _folder: folder,
    })
}

/// The control planes, and what this node shows them.
fn remote(settings: &Settings) -> Result<RemoteSettings> {
    let identity = match &settings.process.tls {
        Some(files) => Some((read(&files.certificate)?, Secret::new(read(&files.key)?))),
        None => None,
    };
    Ok(RemoteSettings {
        urls: settings.control_planes.clone(),
        join_token: settings.join_token.clone(),
        authority: settings.tls_ca.as_deref().map(read).transpose()?,
        identity,
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| failure(format!("cannot read {}: {error}", path.display())))
}
