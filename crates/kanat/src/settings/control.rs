//! Settings of a process that holds a control plane: how callers reach the service, and how nodes
//! of other processes prove themselves.

use std::path::PathBuf;
use std::time::Duration;

use kanat_control_plane::Access;
use kanat_model::Secret;
use serde::{Deserialize, Serialize};

use super::{Problems, nodes, process, value};

/// Settings that `up` and `control-plane` share, as the command line, the environment and the file
/// give them; each may be left out.
#[derive(Default, clap::Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default)]
pub struct Flags {
    /// Beginning of webhook URLs, when the service stands behind a proxy [default: the address
    /// listened on].
    #[arg(long, env = "KANAT_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// Address of the management API as browsers reach it, for OAuth2 providers to send people back
    /// to [default: the public URL, or the address listened on where webhooks have one of their
    /// own].
    #[arg(long, env = "KANAT_API_URL")]
    pub api_url: Option<String>,
    /// Origins of pages whose scripts may call the management API, separated by commas, as in
    /// `https://app.example.com` [default: none].
    #[arg(long, env = "KANAT_ALLOWED_ORIGINS", value_delimiter = ',')]
    pub allowed_origins: Option<Vec<String>>,
    /// Days for which finished messages are kept; 0 keeps them for ever [default: 30].
    #[arg(long, env = "KANAT_RETENTION_DAYS", alias = "retention")]
    pub retention_days: Option<u32>,
    /// Days for which finished batch jobs and their records are kept; 0 keeps them for ever
    /// [default: 30].
    #[arg(long, env = "KANAT_BATCH_RETENTION_DAYS")]
    pub batch_retention_days: Option<u32>,
    /// The owner's API key of a first start: `kanat_ak_` and then at least 32 letters, digits, `-`
    /// or `_` [default: a random one, printed once].
    #[arg(long, env = "KANAT_BOOTSTRAP_API_KEY", hide_env_values = true)]
    pub bootstrap_api_key: Option<String>,
    /// Begin a new configuration although there is a message log with messages, which nobody will
    /// see then.
    #[arg(
        long,
        env = "KANAT_ACCEPT_EMPTY_CONFIG",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub accept_empty_config: Option<bool>,
    /// Token by which data-plane nodes get their plans, 16 characters or more [default: none can
    /// connect].
    #[arg(long, env = "KANAT_JOIN_TOKEN", hide_env_values = true)]
    pub join_token: Option<String>,
    /// Authority whose certificates data-plane nodes must show, besides the join token if there is
    /// one (PEM file).
    #[arg(long, env = "KANAT_TLS_CLIENT_CA")]
    pub tls_client_ca: Option<PathBuf>,
    /// Tokens and certificates that open some environments alone: tables of the file.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<nodes::Entry>>,
    /// Let nodes connect without TLS from other machines, although plans carry the secrets of
    /// connectors.
    #[arg(
        long,
        env = "KANAT_SEND_SECRETS_UNENCRYPTED",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub send_secrets_unencrypted: Option<bool>,
}

/// The settings of the control plane, checked.
pub struct Settings {
    pub public_url: Option<String>,
    pub api_url: Option<String>,
    pub allowed_origins: Vec<String>,
    /// Nothing is dropped when there is none.
    pub retention: Option<Duration>,
    /// No batch job is dropped when there is none.
    pub batch_retention: Option<Duration>,
    pub bootstrap_api_key: Option<Secret<String>>,
    pub accept_empty_config: bool,
    pub join_token: Option<Secret<String>>,
    pub tls_client_ca: Option<PathBuf>,
    pub nodes: Vec<nodes::Entry>,
    pub send_secrets_unencrypted: bool,
}

impl Flags {
    pub(super) fn check(
        &mut self,
        process: &process::Settings,
        problems: &mut Problems,
    ) -> Settings {
        let nodes = nodes::checked(self.nodes.take(), self.tls_client_ca.is_some());
        let nodes = problems.take("nodes", nodes);
        self.nodes = (!nodes.is_empty()).then(|| nodes.clone());
        let settings = Settings {
            public_url: problems.read("public_url", &mut self.public_url, value::url),
            api_url: problems.read("api_url", &mut self.api_url, value::url),
            allowed_origins: problems.read_each(
                "allowed_origins",
                &mut self.allowed_origins,
                value::origin,
            ),
            retention: value::retention(*self.retention_days.get_or_insert(30)),
            batch_retention: value::retention(*self.batch_retention_days.get_or_insert(30)),
            bootstrap_api_key: problems.hide(
                "bootstrap_api_key",
                &mut self.bootstrap_api_key,
                value::api_key,
            ),
            accept_empty_config: *self.accept_empty_config.get_or_insert(false),
            join_token: problems.hide("join_token", &mut self.join_token, value::join_token),
            nodes,
            tls_client_ca: self.tls_client_ca.clone(),
            send_secrets_unencrypted: *self.send_secrets_unencrypted.get_or_insert(false),
        };
        if settings.tls_client_ca.is_some() && process.tls.is_none() {
            problems.add(
                "tls_client_ca",
                "clients show certificates over TLS: give --tls-cert and --tls-key too",
            );
        }
        let is_open = process.tls.is_none() && !process.listen.ip().is_loopback();
        let has_bound_token = || {
            let mut entries = settings.nodes.iter();
            entries.any(|entry| entry.token_sha256.is_some())
        };
        let by_token = match settings.join_token {
            Some(_) => Some("join_token"),
            None => has_bound_token().then_some("nodes"),
        };
        if let Some(setting) = by_token.filter(|_| is_open && !settings.send_secrets_unencrypted) {
            problems.add(
                setting,
                "plans carry the secrets of connectors, and would leave this machine without TLS: \
                 give --tls-cert and --tls-key, or listen on loopback, or say \
                 --send-secrets-unencrypted",
            );
        }
        settings
    }
}

impl Settings {
    /// How nodes of other processes prove themselves; none get in when nothing is set.
    pub fn access(&self) -> Option<Access> {
        let access = match (&self.join_token, &self.tls_client_ca) {
            (None, None) if self.nodes.is_empty() => return None,
            (None, None) => Access::by_binding(),
            (Some(token), None) => Access::by_token(token),
            (None, Some(_)) => Access::by_certificate(),
            (Some(token), Some(_)) => Access::by_token(token).and_certificate(),
        };
        Some(access.and_bound(self.nodes.iter().filter_map(nodes::Entry::bound).collect()))
    }
}
