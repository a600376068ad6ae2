//! Settings of a process that holds a control plane: how callers reach the service, and how nodes
//! of other processes prove themselves.

use std::path::{Path, PathBuf};

use kanat_control_plane::{NodeAuthenticator, PublicUrl};
use kanat_mail::{Mailer, SmtpServer};
use kanat_model::Secret;

use super::{Problems, flags, nodes, oidc, process, value};

flags! {
    /// Settings that `up` and `control-plane` share, as the command line, the environment and the
    /// file give them; each may be left out.
    pub struct Flags {
        /// Beginning of webhook URLs, when the service stands behind a proxy [default: the address
        /// listened on].
        "KANAT_PUBLIC_URL" => public_url: Option<String>,
        /// Address of the management API as browsers reach it, for OAuth2 providers to send people
        /// back to [default: the public URL, or the address listened on where webhooks have one of
        /// their own].
        "KANAT_API_URL" => api_url: Option<String>,
        /// Origins of pages whose scripts may call the management API, separated by commas, as in
        /// `https://app.example.com` [default: none].
        #[arg(value_delimiter = ',')]
        "KANAT_ALLOWED_ORIGINS" => allowed_origins: Option<Vec<String>>,
        /// Days for which finished messages are kept; 0 keeps them for ever [default: 30].
        #[arg(alias = "retention")]
        "KANAT_RETENTION_DAYS" => retention_days: Option<u32>,
        /// Days for which finished batch jobs and their records are kept; 0 keeps them for ever
        /// [default: 30].
        "KANAT_BATCH_RETENTION_DAYS" => batch_retention_days: Option<u32>,
        /// Days for which entries of the audit log are kept; 0 keeps them for ever [default: 400].
        "KANAT_AUDIT_RETENTION_DAYS" => audit_retention_days: Option<u32>,
        /// The owner's API key of a first start: `kanat_ak_` and then at least 32 letters, digits,
        /// `-` or `_` [default: a random one, printed once].
        #[arg(hide_env_values = true)]
        "KANAT_BOOTSTRAP_API_KEY" => bootstrap_api_key: Option<String>,
        /// Begin a new configuration although there is a message log with messages, which nobody
        /// will see then.
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        "KANAT_ACCEPT_EMPTY_CONFIG" => accept_empty_config: Option<bool>,
        /// Token by which data-plane nodes get their plans, 16 characters or more [default: none
        /// can connect].
        #[arg(hide_env_values = true)]
        "KANAT_JOIN_TOKEN" => join_token: Option<String>,
        /// Authority whose certificates data-plane nodes must show, besides the join token if there
        /// is one (PEM file).
        "KANAT_TLS_CLIENT_CA" => tls_client_ca: Option<PathBuf>,
        /// Tokens and certificates that open some environments alone: tables of the file.
        #[arg(skip)]
        #[serde(skip_serializing_if = "Option::is_none")]
        nodes: Option<Vec<nodes::Entry>>,
        #[command(flatten)]
        #[serde(flatten)]
        oidc: oidc::Flags,
        /// Let nodes connect without TLS from other machines, although plans carry the secrets of
        /// connectors.
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        "KANAT_SEND_SECRETS_UNENCRYPTED" => send_secrets_unencrypted: Option<bool>,
        /// Mail server for invitations: `smtp://[user:password@]host[:port]`, with `?tls=required`
        /// where it has to encrypt, or `smtps://` [default: no mail is sent].
        #[arg(hide_env_values = true)]
        "KANAT_SMTP_URL" => smtp_url: Option<String>,
        /// Address that mail comes from, as in `Kanat <kanat@example.com>`.
        "KANAT_SMTP_FROM" => smtp_from: Option<String>,
    }
}

/// The settings of the control plane, checked.
pub struct Settings {
    /// Its own; how it is reached is set at its start.
    pub plane: kanat_control_plane::Options,
    pub public_url: Option<String>,
    pub api_url: Option<String>,
    pub tls_client_ca: Option<PathBuf>,
}

impl Flags {
    pub(super) fn check(
        &mut self,
        process: &process::Settings,
        problems: &mut Problems,
    ) -> Settings {
        let public_url = problems.read("public_url", &mut self.public_url, value::url);
        let api_url = problems.read("api_url", &mut self.api_url, value::url);
        let origins = &mut self.allowed_origins;
        let allowed_origins = problems.read_each("allowed_origins", origins, value::origin);
        let key = &mut self.bootstrap_api_key;
        let bootstrap_api_key = problems.hide("bootstrap_api_key", key, value::api_key);
        let join_token = problems.hide("join_token", &mut self.join_token, value::join_token);
        let nodes = nodes::checked(self.nodes.take(), self.tls_client_ca.as_deref());
        let nodes = problems.take("nodes", nodes);
        let tls_client_ca = self.tls_client_ca.clone();
        if tls_client_ca.is_some() && process.tls.is_none() {
            problems.add(
                "tls_client_ca",
                "clients show certificates over TLS: give --tls-cert and --tls-key too",
            );
        }
        let is_open = process.tls.is_none() && !process.listen.ip().is_loopback();
        let has_bound_token = nodes.iter().any(|entry| entry.token_sha256.is_some());
        let by_token = match join_token {
            Some(_) => Some("join_token"),
            None => has_bound_token.then_some("nodes"),
        };
        let in_clear_text = *self.send_secrets_unencrypted.get_or_insert(false);
        if let Some(setting) = by_token.filter(|_| is_open && !in_clear_text) {
            problems.add(
                setting,
                "plans carry the secrets of connectors, and would leave this machine without TLS: \
                 give --tls-cert and --tls-key, or listen on loopback, or say \
                 --send-secrets-unencrypted",
            );
        }
        let plane = kanat_control_plane::Options {
            bootstrap_api_key,
            accept_empty_config: *self.accept_empty_config.get_or_insert(false),
            public_url: PublicUrl::default(),
            api_url: PublicUrl::default(),
            allowed_origins,
            nodes: access(join_token.as_ref(), tls_client_ca.as_deref(), &nodes),
            issuers: self.oidc.check(problems),
            retention: kanat_control_plane::Retention {
                messages: value::retention(*self.retention_days.get_or_insert(30)),
                batch_jobs: value::retention(*self.batch_retention_days.get_or_insert(30)),
                audit_log: value::retention(*self.audit_retention_days.get_or_insert(400)),
            },
            key_file: process.own_key_file(),
            adapters: process.adapters.0.clone(),
            mailer: self.mailer(problems),
        };
        self.nodes = Some(nodes).filter(|nodes| !nodes.is_empty());
        Settings {
            plane,
            public_url,
            api_url,
            tls_client_ca,
        }
    }

    /// Reads the settings of mail, of which there are both or none.
    fn mailer(&mut self, problems: &mut Problems) -> Option<Mailer> {
        match (&self.smtp_url, &self.smtp_from) {
            (Some(_), None) => {
                problems.missing("smtp_from", "--smtp-url (KANAT_SMTP_URL) needs a sender");
            }
            (None, Some(_)) => {
                problems.missing(
                    "smtp_url",
                    "--smtp-from (KANAT_SMTP_FROM) needs a mail server",
                );
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        let url = problems.hide("smtp_url", &mut self.smtp_url, value::smtp_url);
        let sender = problems.read("smtp_from", &mut self.smtp_from, value::sender);
        let server = SmtpServer::parse(url?.expose()).ok()?;
        problems.take("smtp_url", Mailer::new(server, sender?).map(Some))
    }
}

/// How nodes of other processes prove themselves; none get in when nothing is set.
fn access(
    join_token: Option<&Secret<String>>,
    authority: Option<&Path>,
    nodes: &[nodes::Entry],
) -> Option<NodeAuthenticator> {
    let access = match (join_token, authority) {
        (None, None) if nodes.is_empty() => return None,
        (None, None) => NodeAuthenticator::by_binding(),
        (Some(token), None) => NodeAuthenticator::by_token(token),
        (None, Some(_)) => NodeAuthenticator::by_certificate(),
        (Some(token), Some(_)) => NodeAuthenticator::by_token(token).and_certificate(),
    };
    Some(access.and_bound(nodes.iter().filter_map(nodes::Entry::bound).collect()))
}
