//! `kanat control-plane`: the control plane alone, for nodes of other processes, on a database that
//! all share.

mod drain_node;
mod plan_file;
mod router;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kanat_control_plane::{ControlPlane, PublicUrl};
use kanat_message_log::MessageLog;
use kanat_model::Secret;
use kanat_net::server;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::monitoring::{self, Monitoring};
use crate::output;
use crate::process::egress::{self, Reach};
use crate::process::folder::Folder;
use crate::process::page::Page;
use crate::process::waiting::Doors;
use crate::process::{self, Frame, Process, database, listener};
use crate::settings::Given;
use crate::settings::control_plane::{Flags, Settings};
use router::Router;

/// Runs until SIGTERM or SIGINT, then ends what is open.
pub async fn run(flags: Flags, given: Given) -> Result<()> {
    let print_config = flags.process.print_config;
    let write_plan_file = flags.write_plan_file.clone();
    let drain_node = flags.drain_node.clone();
    let settings = flags.resolve(given)?;
    if print_config {
        return output::line(&settings.print()?);
    }
    if let Some(file) = write_plan_file {
        return plan_file::write(&settings, &file).await;
    }
    if let Some(node) = drain_node {
        return drain_node::announce_drain(&settings, &node).await;
    }
    process::run(Frame::of(&settings.process), Control::start(settings)).await
}

struct Control {
    url: String,
    control: Arc<ControlPlane>,
    log: Arc<dyn MessageLog>,
    /// Cancelled when the process is not ready any more.
    leaving: CancellationToken,
    shutdown: CancellationToken,
    listeners: TaskTracker,
    monitoring: Option<monitoring::Server>,
}

impl Control {
    async fn start(settings: Settings) -> Result<Self> {
        let Settings { process, control } = settings;
        // Control planes of one machine may share a folder: it holds the key that they have in
        // common.
        let folder = Folder::open(&process.data_dir)?;
        let bounds = listener::options(&process, control.tls_client_ca.as_deref())?;
        let listener = listener::bind(process.listen).await?;
        let metrics_door = monitoring::Door::open(&process).await?;
        let address = listener.local_addr()?;
        listener::warn_of_clear_text(address, &bounds);
        let url = listener::url(address, &bounds);

        let sealer = database::sealer(&process)?;
        let local_targets = process.egress.unwrap_or_default();
        let metrics_listener = metrics_door.as_ref().map(|door| door.listener().0);
        let listeners = [&listener].into_iter().chain(metrics_listener);
        let outbound = egress::client(
            &process,
            local_targets,
            listeners,
            control.public_url.as_deref(),
        )?;
        egress::announce(local_targets, Reach::Others);
        let doors = Doors::new(
            [(&listener, bounds.clone())]
                .into_iter()
                .chain(metrics_door.as_ref().map(monitoring::Door::listener)),
        );
        let log = database::log(&process, &folder, &doors).await?;
        let store = database::store(
            &process,
            &folder,
            &doors,
            log.as_ref(),
            control.accept_empty_config,
        );
        let store = store.await?;

        let public_url = PublicUrl::default();
        let api_url = PublicUrl::default();
        // The proxies in front of both planes send OAuth2's way back to a control plane.
        api_url.set(
            control
                .api_url
                .as_ref()
                .or(control.public_url.as_ref())
                .unwrap_or(&url),
        );
        let page = Page::new(api_url.base());
        match &control.public_url {
            Some(url) => public_url.set(url),
            None => tracing::warn!(
                "there is no --public-url: webhook URLs are told as paths, without a host"
            ),
        }
        let nodes = control.access();
        if nodes.is_none() {
            tracing::warn!(
                "there is neither --join-token, --tls-client-ca nor [[nodes]]: no data-plane node \
                 can connect",
            );
        }
        let options = kanat_control_plane::Options {
            bootstrap_api_key: control.bootstrap_api_key.clone(),
            accept_empty_config: control.accept_empty_config,
            public_url,
            api_url,
            allowed_origins: control.allowed_origins.clone(),
            nodes,
            retention: control.retention,
            batch_retention: control.batch_retention,
            key_file: database::own_key_file(&process),
            adapters: process.adapters.0.clone(),
        };
        let plane = ControlPlane::start(options, store, Arc::clone(&log), sealer, outbound);
        let plane = Arc::new(plane.await.context("cannot start the control plane")?);

        let leaving = CancellationToken::new();
        let shutdown = CancellationToken::new();
        let listeners = TaskTracker::new();
        let router = Router::new(Arc::clone(&plane), page, leaving.clone(), shutdown.clone());
        listeners.spawn(server::serve(listener, router, bounds, shutdown.clone()));
        let monitoring = metrics_door.map(|door| {
            let watched = Monitoring {
                log: Arc::clone(&log),
                control: Some(plane.monitor()),
                data: None,
            };
            monitoring::Server::start(door, watched)
        });
        Ok(Self {
            url,
            control: plane,
            log,
            leaving,
            shutdown,
            listeners,
            monitoring,
        })
    }
}

impl Process for Control {
    fn url(&self) -> &str {
        &self.url
    }

    fn new_owner_key(&self) -> Option<&Secret<String>> {
        self.control.new_owner_key()
    }

    async fn stop_wished(&self) -> Duration {
        pending().await
    }

    fn leave(&self) {
        self.leaving.cancel();
    }

    async fn stop(self, within: Duration) {
        self.shutdown.cancel();
        self.listeners.close();
        if tokio::time::timeout(within, self.listeners.wait())
            .await
            .is_err()
        {
            tracing::warn!("requests were still open at the deadline and are cut off");
        }
        self.control.close().await;
        self.log.close().await;
        if let Some(monitoring) = self.monitoring {
            monitoring.stop().await;
        }
        tracing::info!("stopped");
    }
}
