//! Both planes in one process, joined: opened in order, listening, and stopped in the opposite
//! order.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::FutureExt;
use kanat_control_plane::{ControlPlane, PublicUrl};
use kanat_data_plane::DataPlane;
use kanat_data_plane::plans::PlanClient;
use kanat_message_log::MessageLog;
use kanat_model::Secret;
use kanat_net::server;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::router::Router;
use crate::monitoring::{self, Monitoring};
use crate::process::folder::Folder;
use crate::process::page::Page;
use crate::process::waiting::Doors;
use crate::process::{Process, backlog, database, egress, identity, listener};
use crate::settings::up::Settings;

/// Plans come over a transport in memory; a node that has none after this long has a reason that
/// the log tells.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// A running service.
pub struct Whole {
    url: String,
    control: ControlPlane,
    data: DataPlane,
    log: Arc<dyn MessageLog>,
    shutdown: CancellationToken,
    listeners: TaskTracker,
    monitoring: Option<monitoring::Server>,
    _folder: Folder,
}

impl Whole {
    /// Starts everything and returns when requests are answered.
    pub async fn start(settings: Settings) -> Result<Self> {
        let process = &settings.process;
        let folder = Folder::take(&process.data_dir)?;
        let bounds = listener::options(process, settings.control.tls_client_ca.as_deref())?;
        let listener = listener::bind(process.listen).await?;
        let address = listener.local_addr()?;
        let data_listener = match settings.data_plane_listen {
            Some(address) => Some(listener::bind(address).await?),
            None => None,
        };
        let metrics_door = monitoring::Door::open(process).await?;
        let data_address = data_listener
            .as_ref()
            .map_or(Ok(address), TcpListener::local_addr)?;
        listener::warn_of_clear_text(address, &bounds);
        if data_listener.is_some() {
            listener::warn_of_clear_text(data_address, &bounds);
        }

        let sealer = database::sealer(process)?;
        let url = listener::url(address, &bounds);
        let own_url = listener::url(data_address, &bounds);
        let webhooks = format!("{own_url}{}", egress::WEBHOOKS);
        let metrics_listener = metrics_door.as_ref().map(|door| door.listener().0);
        let outbound = egress::client(
            process,
            settings.local_targets(),
            [&listener]
                .into_iter()
                .chain(&data_listener)
                .chain(metrics_listener),
            Some(settings.control.public_url.as_deref().unwrap_or(&webhooks)),
        )?;
        egress::announce(settings.local_targets(), settings.reach());
        let doors = data_listener
            .iter()
            .chain([&listener])
            .map(|listener| (listener, bounds.clone()));
        let doors = Doors::new(doors.chain(metrics_door.as_ref().map(monitoring::Door::listener)));
        let log = database::log(process, &folder, &doors).await?;
        let store = database::store(
            process,
            &folder,
            &doors,
            log.as_ref(),
            settings.control.accept_empty_config,
        );
        let store = store.await?;

        let public_url = PublicUrl::default();
        let api_url = PublicUrl::default();
        if settings.control.public_url.is_none() && data_address.ip().is_unspecified() {
            tracing::warn!(
                "there is no --public-url: webhook addresses begin with {own_url}, which only \
                 this machine can call",
            );
        }
        public_url.set(settings.control.public_url.as_ref().unwrap_or(&own_url));
        let shared = settings
            .control
            .public_url
            .as_ref()
            .filter(|_| settings.data_plane_listen.is_none());
        api_url.set(settings.control.api_url.as_ref().or(shared).unwrap_or(&url));
        let page = Page::new(api_url.base());
        let options = kanat_control_plane::Options {
            bootstrap_api_key: settings.control.bootstrap_api_key.clone(),
            accept_empty_config: settings.control.accept_empty_config,
            public_url,
            api_url,
            allowed_origins: settings.control.allowed_origins.clone(),
            nodes: settings.control.access(),
            retention: settings.control.retention,
            batch_retention: settings.control.batch_retention,
            key_file: database::own_key_file(process),
            adapters: process.adapters.0.clone(),
        };
        let control = ControlPlane::start(
            options,
            store,
            Arc::clone(&log),
            Arc::clone(&sealer),
            outbound.clone(),
        );
        let control = control.await.context("cannot start the control plane")?;
        let plans = PlanClient::new(control.plan_service());
        let options = node_options(&settings, &folder, data_address)?;
        let data = DataPlane::start(options, Arc::clone(&log), plans, outbound, sealer).await;

        let saved_plans = data.saved_plans();
        control.seal_elsewhere(Arc::new(move || {
            let saved_plans = saved_plans.clone();
            async move { saved_plans.seal_anew().await }.boxed()
        }));

        let shutdown = CancellationToken::new();
        let listeners = TaskTracker::new();
        let router = Router::new(&control, data.service(), page, shutdown.clone());
        listeners.spawn(server::serve(
            listener,
            router,
            bounds.clone(),
            shutdown.clone(),
        ));
        if let Some(data_listener) = data_listener {
            listeners.spawn(server::serve(
                data_listener,
                data.service(),
                bounds,
                shutdown.clone(),
            ));
        }
        let monitoring = metrics_door.map(|door| {
            let control = Some(control.monitor());
            let data = Some(data.monitor());
            monitoring::Server::start(
                door,
                Monitoring {
                    log: Arc::clone(&log),
                    control,
                    data,
                },
            )
        });
        let whole = Self {
            url,
            control,
            data,
            log,
            shutdown,
            listeners,
            monitoring,
            _folder: folder,
        };
        whole.data.ready_within(READY_WITHIN).await;
        Ok(whole)
    }
}

impl Process for Whole {
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
        self.data.leave();
    }

    async fn stop(self, within: Duration) {
        self.shutdown.cancel();
        listener::close_and_drain(&self.listeners, self.data, within).await;
        self.control.close().await;
        self.log.close().await;
        if let Some(monitoring) = self.monitoring {
            monitoring.stop().await;
        }
        let stats = self.log.stats();
        tracing::info!(
            log.appended = stats.appended,
            log.settled = stats.settled,
            log.operations = stats.operations,
            log.commits = stats.commits,
            "stopped"
        );
    }
}

fn node_options(
    settings: &Settings,
    folder: &Folder,
    address: SocketAddr,
) -> Result<kanat_data_plane::Options> {
    let node_id = identity::node_id(folder.path())?;
    let mut options = kanat_data_plane::Options::new(node_id, settings.process.data_dir.clone());
    options.address = address.to_string();
    options.body_limit = settings.node.body_limit;
    options.poll_answer = settings.node.poll_answer_limit;
    options.lease = settings.node.lease;
    options.backlog = backlog::limits(&settings.node, &settings.process)?;
    options.adapters = settings.process.adapters.0.clone();
    env!("CARGO_PKG_VERSION").clone_into(&mut options.build);
    Ok(options)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn readiness(whole: &Whole) -> String {
        let mut stream = TcpStream::connect(whole.url().trim_start_matches("http://"))
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
        let whole = Whole::start(settings).await.unwrap();
        let ready = readiness(&whole).await;
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        whole.control.store().close().await;
        let ready = readiness(&whole).await;
        assert!(
            ready.starts_with("HTTP/1.1 503") && ready.contains("the configuration store"),
            "{ready}"
        );
        whole.stop(Duration::ZERO).await;
    }
}
