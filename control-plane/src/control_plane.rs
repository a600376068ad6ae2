//! The control plane as one part: what it needs to start, what it serves, how it stops.

use std::sync::Arc;

use kanat_auth::{KeyFile, Sealer};
use kanat_mail::Mailer;
use kanat_message_log::MessageLog;
use kanat_model::Secret;
use kanat_net::outbound;
use kanat_proto::node::v1::plan_service_server::PlanServiceServer;
use kanat_store::Store;

use crate::app::audit::denied;
use crate::app::flow::DeployQueues;
use crate::app::secret::{Elsewhere, MasterKeys};
use crate::app::{App, bootstrap, environment};
use crate::cors::Cors;
use crate::identity::{IdentityProviders, Issuer};
use crate::jobs::{
    audit, batch_jobs, lease, leftovers, oauth_refresh, observations, schedule_outcomes, schedules,
    secrets_of_flows,
};
use crate::push::remote::{NodeAuthenticator, RemotePlanService};
use crate::push::source::Source;
use crate::push::{Hub, PlanStreamService};
use crate::retention::Retention;
use crate::tasks::Tasks;
use crate::{Monitor, PublicService, PublicUrl, idempotency, master_key};

/// Settings of the operator.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The owner's key of a fresh store; one is made when there is none.
    pub bootstrap_api_key: Option<Secret<String>>,
    /// Begin a new configuration although the message log has messages.
    pub accept_empty_config: bool,
    /// The base of webhook URLs; it may be set later than the start.
    pub public_url: PublicUrl,
    /// Address of the management API for browsers; the public URL when it is not set.
    pub api_url: PublicUrl,
    /// Origins of pages whose scripts may call the management API, in lower case; `*` is all of
    /// them.
    pub allowed_origins: Vec<String>,
    /// How nodes of other processes prove themselves; without it there are none.
    pub nodes: Option<NodeAuthenticator>,
    /// Identity providers that people log in by.
    pub issuers: Vec<Issuer>,
    pub retention: Retention,
    /// File that the master keys come from, where no other process has the folder and the store.
    pub key_file: Option<KeyFile>,
    /// How adapters are run that are checked and tested here.
    pub adapters: kanat_script::Options,
    /// Client of the mail server; without it no mail is sent.
    pub mailer: Option<Mailer>,
}

/// A running control plane.
pub struct ControlPlane {
    app: Arc<App>,
    service: PublicService,
    new_owner_key: Option<Secret<String>>,
}

/// Why the control plane cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] kanat_store::Error),
    #[error("the bootstrap key is not usable: {0}")]
    BootstrapKey(#[from] kanat_auth::Error),
    #[error(
        "the database is sealed under another master key than the one that is given (--master-key \
         or KANAT_MASTER_KEY, else the file master.key of the data folder): every start and every \
         control plane needs the same one"
    )]
    MasterKey,
    #[error(
        "there is no configuration, but the message log has messages: restore the configuration \
         from a backup, or begin a new one with --accept-empty-config"
    )]
    NoConfiguration,
    #[error("the message log cannot be read: {0}")]
    Log(#[from] kanat_message_log::Error),
    #[error("the settings of environments cannot be published: {0}")]
    Environments(kanat_model::Error),
    #[error("people cannot log in by their providers: {0}")]
    IdentityProviders(outbound::Error),
    #[error("the API's descriptors are not usable: {0}")]
    Descriptors(String),
}

impl ControlPlane {
    /// Prepares a fresh store and builds the services. Nothing listens yet.
    pub async fn start(
        options: Options,
        store: Store,
        log: Arc<dyn MessageLog>,
        sealer: Arc<Sealer>,
        outbound: outbound::Client,
    ) -> Result<Self, Error> {
        master_key::check(&store, &sealer).await?;
        if !options.accept_empty_config {
            bootstrap::refuse_lost_configuration(&store, log.as_ref()).await?;
        }
        if store.is_of_one_process() {
            idempotency::forget_cut_off(&store).await;
        }
        let new_owner_key = bootstrap::run(&store, options.bootstrap_api_key.as_ref()).await?;
        environment::publish_all(&store, &sealer, options.public_url.host())
            .await
            .map_err(Error::Environments)?;
        let tasks = Tasks::default();
        let source = Source::new(store.clone(), Arc::clone(&sealer));
        let hub = Hub::new(source, tasks.clone());
        if store.is_shared() {
            lease::take(&store, hub.control_plane_boot_id(), &sealer).await?;
            tasks.run_until_stopped(lease::run(
                store.clone(),
                hub.control_plane_boot_id().clone(),
                Arc::clone(&sealer),
            ));
        }
        let identities =
            IdentityProviders::new(options.issuers, &tasks).map_err(Error::IdentityProviders)?;
        let adapters = kanat_script::Pool::new(options.adapters);
        let deploy_queues = DeployQueues::default();
        let batch_jobs = Arc::default();
        let master_keys = Arc::new(MasterKeys::of(options.key_file));
        let public_url = options.public_url;
        let api_url = options.api_url;
        let app = Arc::new(App {
            store,
            log,
            hub,
            tasks,
            deploy_queues,
            batch_jobs,
            sealer,
            master_keys,
            outbound,
            public_url,
            api_url,
            adapters,
            denials: Arc::default(),
            identities,
            retention: options.retention,
            mailer: options.mailer,
        });
        let plans = PlanStreamService::new(&app.hub).into_server();
        let nodes = options
            .nodes
            .map(|access| RemotePlanService::new(access, plans));
        let service = PublicService::new(&app, nodes, Cors::new(options.allowed_origins)).await?;
        let tasks = &app.tasks;
        tasks.run_until_stopped(leftovers::run(Arc::clone(&app)));
        tasks.run_until_stopped(secrets_of_flows::look(Arc::clone(&app)));
        tasks.run_until_stopped(audit::run(Arc::clone(&app)));
        tasks.run_until_stopped(batch_jobs::run(Arc::clone(&app)));
        tasks.run_until_stopped(schedules::run(Arc::clone(&app)));
        tasks.run_until_stopped(schedule_outcomes::run(Arc::clone(&app)));
        tasks.run_until_stopped(oauth_refresh::run(Arc::clone(&app)));
        if let Some(observed) = app.hub.take_observation_receiver() {
            tasks.run_until_stopped(observations::run(Arc::clone(&app), observed));
        }
        Ok(Self {
            app,
            service,
            new_owner_key,
        })
    }

    /// The owner's key, when this start made it: to be shown once.
    pub fn new_owner_key(&self) -> Option<&Secret<String>> {
        self.new_owner_key.as_ref()
    }

    /// Answers gRPC, gRPC-Web and `/api/v1`.
    pub fn service(&self) -> PublicService {
        self.service.clone()
    }

    /// Returns the plan service for a node of the same process. From now on changes wait for the
    /// first connection of that node.
    pub fn connect_own_node(&self) -> PlanServiceServer<PlanStreamService> {
        self.app.hub.expect_own_node();
        PlanStreamService::new(&self.app.hub).into_server()
    }

    /// The configuration store that it works on.
    pub fn store(&self) -> &Store {
        &self.app.store
    }

    /// Returns whether the stores answer.
    pub async fn ready(&self) -> bool {
        self.monitor().ready().await
    }

    /// Has a change of the master key seal too what the process keeps outside of the store.
    pub fn seal_elsewhere(&self, elsewhere: Elsewhere) {
        self.app.master_keys.seal_elsewhere(elsewhere);
    }

    /// Returns the state for probes and metrics.
    pub fn monitor(&self) -> Monitor {
        Monitor::new(Arc::clone(&self.app))
    }

    /// Ends the streams to nodes. Requests must have ended before.
    pub async fn close(&self) {
        self.app.tasks.close().await;
        denied::write_all(&self.app).await;
        if self.app.store.is_shared() {
            lease::end(&self.app.store, self.app.hub.control_plane_boot_id()).await;
        }
        self.app.store.close().await;
    }
}
