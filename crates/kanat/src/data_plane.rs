//! `kanat data-plane`: one node alone, which gets its plans from control planes over the network.

mod fallback;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kanat_data_plane::DataPlane;
use kanat_data_plane::plans::Remote;
use kanat_message_log::MessageLog;
use kanat_model::Secret;
use kanat_net::server;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::exit::failure;
use crate::monitoring::{self, Monitoring};
use crate::output;
use crate::process::egress::{self, Reach};
use crate::process::folder::Folder;
use crate::process::waiting::Doors;
use crate::process::{self, Frame, Process, backlog, database, identity, listener};
use crate::settings::Given;
use crate::settings::data_plane::{Flags, Settings};

/// A node that has no plans by then listens all the same, and answers 503 until it has.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Runs until SIGTERM, SIGINT or a control plane's wish, then drains.
pub async fn run(flags: Flags, given: Given) -> Result<()> {
    let print_config = flags.process.print_config;
    let settings = flags.resolve(given)?;
    if print_config {
        return output::line(&settings.print()?);
    }
    process::run(Frame::of(&settings.process), Node::start(settings)).await
}

struct Node {
    url: String,
    data: DataPlane,
    drain_requests: watch::Receiver<Option<Duration>>,
    log: Arc<dyn MessageLog>,
    shutdown: CancellationToken,
    listeners: TaskTracker,
    monitoring: Option<monitoring::Server>,
    _folder: Folder,
}

impl Node {
    async fn start(settings: Settings) -> Result<Self> {
        let process = &settings.process;
        let folder = Folder::take(&process.data_dir)?;
        let mut bounds = listener::options(process, None)?;
        if settings.listen_without_tls {
            bounds.tls = None;
        }
        let sealer = database::sealer(process)?;
        let plans = remote(&settings)?
            .client()
            .context("cannot set up the way to the control planes")?;
        let plans = plans.falling_back(fallback::fallback(&settings, &sealer));
        let listener = listener::bind(process.listen).await?;
        let metrics_door = monitoring::Door::open(process).await?;
        let address = listener.local_addr()?;
        listener::warn_of_clear_text(address, &bounds);
        let url = listener::url(address, &bounds);

        let local_targets = process.egress.unwrap_or_default();
        let metrics_listener = metrics_door.as_ref().map(|door| door.listener().0);
        let listeners = [&listener].into_iter().chain(metrics_listener);
        let outbound = egress::client(process, local_targets, listeners, None)?;
        egress::announce(local_targets, Reach::Others);
        let doors = Doors::new(
            [(&listener, bounds.clone())]
                .into_iter()
                .chain(metrics_door.as_ref().map(monitoring::Door::listener)),
        );
        let log = database::log(process, &folder, &doors).await?;
        let mut options = kanat_data_plane::Options::new(
            identity::node_id(folder.path())?,
            process.data_dir.clone(),
        );
        options.address = address.to_string();
        options.environments.clone_from(&settings.environments);
        options.body_limit = settings.node.body_limit;
        options.poll_answer = settings.node.poll_answer_limit;
        options.lease = settings.node.lease;
        options.backlog = backlog::limits(&settings.node, process)?;
        options.adapters = process.adapters.0.clone();
        env!("CARGO_PKG_VERSION").clone_into(&mut options.build);
        let data = DataPlane::start(options, Arc::clone(&log), plans, outbound, sealer).await;

        let shutdown = CancellationToken::new();
        let listeners = TaskTracker::new();
        listeners.spawn(server::serve(
            listener,
            data.service(),
            bounds,
            shutdown.clone(),
        ));
        let drain_requests = data.drain_requests();
        let monitoring = metrics_door.map(|door| {
            let watched = Monitoring {
                log: Arc::clone(&log),
                control: None,
                data: Some(data.monitor()),
            };
            monitoring::Server::start(door, watched)
        });
        let node = Self {
            url,
            data,
            drain_requests,
            log,
            shutdown,
            listeners,
            monitoring,
            _folder: folder,
        };
        node.data.ready_within(READY_WITHIN).await;
        Ok(node)
    }
}

impl Process for Node {
    fn url(&self) -> &str {
        &self.url
    }

    async fn stop_wished(&self) -> Duration {
        let mut requests = self.drain_requests.clone();
        loop {
            if let Some(within) = *requests.borrow_and_update() {
                return within;
            }
            if requests.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn leave(&self) {
        self.data.leave();
    }

    async fn stop(self, within: Duration) {
        self.shutdown.cancel();
        listener::close_and_drain(&self.listeners, self.data, within).await;
        self.log.close().await;
        if let Some(monitoring) = self.monitoring {
            monitoring.stop().await;
        }
        tracing::info!("stopped");
    }
}

/// The control planes, and what this node shows them.
fn remote(settings: &Settings) -> Result<Remote> {
    let identity = match &settings.process.tls {
        Some(files) => Some((read(&files.certificate)?, Secret::new(read(&files.key)?))),
        None => None,
    };
    Ok(Remote {
        urls: settings.control_planes.clone(),
        join_token: settings.join_token.clone(),
        authority: settings.tls_ca.as_deref().map(read).transpose()?,
        identity,
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| failure(format!("cannot read {}: {error}", path.display())))
}
