//! Settings that every process has: where it listens and keeps its things, and how it stops.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use kanat_auth::KeyFile;
use kanat_model::Secret;
use kanat_net::egress::LocalTargets;

use super::value::{self, Database};
use super::{Problems, adapters, flags, pools};

flags! {
    /// Settings of all processes, as the command line, the environment and the file give them; each
    /// may be left out.
    pub struct Flags {
        /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8080].
        "KANAT_LISTEN" => listen: Option<String>,
        /// Folder of keys and plans, and of the databases where no other is given [default:
        /// ./kanat-data].
        "KANAT_DATA_DIR" => data_dir: Option<PathBuf>,
        /// PostgreSQL for configuration and messages, as in postgres://user:password@host/database.
        /// Several addresses of one database, with commas between, are those of its primary and its
        /// standbys.
        #[arg(hide_env_values = true)]
        "KANAT_DATABASE_URL" => database_url: Option<String>,
        #[command(flatten)]
        #[serde(flatten)]
        pools: pools::Flags,
        #[command(flatten)]
        #[serde(flatten)]
        adapters: adapters::Flags,
        /// Permission to call this machine and private networks: `guarded` refuses them, `local`
        /// allows them [default: guarded; local for `up` where it listens on loopback alone and has
        /// no public URL].
        #[arg(value_name = "guarded|local")]
        "KANAT_EGRESS" => egress: Option<String>,
        /// Networks that targets may be in although they are private or special, separated by
        /// commas (CIDR).
        #[arg(value_delimiter = ',')]
        "KANAT_EGRESS_ALLOW" => egress_allow: Option<Vec<String>>,
        /// Networks of proxies in front whose X-Forwarded-For and X-Forwarded-Proto are believed,
        /// separated by commas (CIDR) [default: none].
        #[arg(value_delimiter = ',')]
        "KANAT_TRUSTED_PROXIES" => trusted_proxies: Option<Vec<String>>,
        /// Address of its own for /metrics, and for /health and /ready beside it; a port alone is
        /// one of this machine alone [default: no metrics].
        "KANAT_METRICS_LISTEN" => metrics_listen: Option<String>,
        /// Certificate of the address for metrics, with its chain (PEM file) [default: no TLS].
        "KANAT_METRICS_TLS_CERT" => metrics_tls_cert: Option<PathBuf>,
        /// Key of that certificate (PEM file).
        "KANAT_METRICS_TLS_KEY" => metrics_tls_key: Option<PathBuf>,
        /// OpenTelemetry collector that traces are sent to, as in http://collector:4318 [default:
        /// no traces].
        "KANAT_OTLP_ENDPOINT" => otlp_endpoint: Option<String>,
        /// Certificate of the listener, with its chain (PEM file) [default: no TLS].
        "KANAT_TLS_CERT" => tls_cert: Option<PathBuf>,
        /// Key of that certificate (PEM file).
        "KANAT_TLS_KEY" => tls_key: Option<PathBuf>,
        /// How long a stop waits for what is in flight, in seconds [default: 25].
        "KANAT_DRAIN_SECONDS" => drain_seconds: Option<u64>,
        /// How long a stop goes on serving while `/ready` says 503 already, so that a proxy can
        /// turn away first, in seconds [default: 0].
        #[arg(alias = "drain-grace-seconds")]
        "KANAT_DRAIN_GRACE" => drain_grace: Option<u64>,
        /// 32 bytes in base64 or 64 hexadecimal digits that seal stored secrets, not one repeated
        /// byte [default: a file in the data folder].
        #[arg(hide_env_values = true)]
        "KANAT_MASTER_KEY" => master_key: Option<String>,
        /// Filter of the log, such as `info` or `info,kanat_data_plane=debug` [default: info].
        "KANAT_LOG" => log: Option<String>,
        /// File with these settings, in TOML [default: kanat.toml, when there is one].
        #[serde(skip)]
        "KANAT_CONFIG" => config: Option<PathBuf>,
        /// Print the settings that would be used, and end.
        #[arg(long)]
        #[serde(skip)]
        print_config: bool,
    }
}

/// The settings of any process, checked.
pub struct Settings {
    pub listen: SocketAddr,
    pub data_dir: PathBuf,
    pub database: Database,
    pub pools: pools::Settings,
    pub adapters: adapters::Settings,
    /// None where the default holds.
    pub egress: Option<LocalTargets>,
    pub egress_allow: Vec<IpNet>,
    pub trusted_proxies: Vec<IpNet>,
    pub metrics_listen: Option<SocketAddr>,
    pub metrics_tls: Option<TlsFiles>,
    pub otlp_endpoint: Option<String>,
    pub tls: Option<TlsFiles>,
    pub drain: Duration,
    pub drain_grace: Duration,
    pub master_key: Option<Secret<String>>,
    pub log: String,
}

/// Files of a certificate and its key.
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl TlsFiles {
    /// Takes both or none; `names` are those of the key and of the certificate.
    fn of(
        certificate: &Option<PathBuf>,
        key: &Option<PathBuf>,
        names: [&str; 2],
    ) -> Result<Option<Self>, String> {
        match (certificate.clone(), key.clone()) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(format!("a certificate needs its key, {}", names[0])),
            (None, Some(_)) => Err(format!("a key needs its certificate, {}", names[1])),
        }
    }
}

impl Flags {
    pub(super) fn check(&mut self, problems: &mut Problems) -> Settings {
        self.listen
            .get_or_insert_with(|| "127.0.0.1:8080".to_owned());
        self.log.get_or_insert_with(|| "info".to_owned());
        // A key of blanks is none.
        self.master_key.take_if(|key| key.trim().is_empty());
        let listen = problems.read("listen", &mut self.listen, value::address);
        let database = problems
            .take(
                "database_url",
                value::database(self.database_url.take()).map(Some),
            )
            .unwrap_or(Database::Files);
        self.database_url = database.masked();
        let egress = problems.take(
            "egress",
            self.egress.as_deref().map(value::egress).transpose(),
        );
        self.egress = Some(value::egress_word(egress.unwrap_or_default()).to_owned());
        let tls = TlsFiles::of(
            &self.tls_cert,
            &self.tls_key,
            ["tls_key (--tls-key)", "tls_cert (--tls-cert)"],
        );
        let names = [
            "metrics_tls_key (--metrics-tls-key)",
            "metrics_tls_cert (--metrics-tls-cert)",
        ];
        let metrics_tls = TlsFiles::of(&self.metrics_tls_cert, &self.metrics_tls_key, names);
        let drain = *self.drain_seconds.get_or_insert(25);
        let drain_grace = *self.drain_grace.get_or_insert(0);
        Settings {
            listen: listen.unwrap_or(([127, 0, 0, 1], 8080).into()),
            data_dir: self
                .data_dir
                .get_or_insert_with(|| "./kanat-data".into())
                .clone(),
            database,
            pools: self.pools.check(problems),
            adapters: self.adapters.check(problems),
            egress,
            egress_allow: problems.read_each(
                "egress_allow",
                &mut self.egress_allow,
                value::network,
            ),
            trusted_proxies: problems.read_each(
                "trusted_proxies",
                &mut self.trusted_proxies,
                value::network,
            ),
            metrics_listen: problems.read(
                "metrics_listen",
                &mut self.metrics_listen,
                value::local_address,
            ),
            metrics_tls: problems.take("metrics_tls_cert", metrics_tls),
            otlp_endpoint: problems.read(
                "otlp_endpoint",
                &mut self.otlp_endpoint,
                value::collector,
            ),
            tls: problems.take("tls_cert", tls),
            drain: problems.take("drain_seconds", value::seconds(drain, 0..=3600)),
            drain_grace: problems.take("drain_grace", value::seconds(drain_grace, 0..=3600)),
            master_key: problems.hide("master_key", &mut self.master_key, value::master_key),
            log: problems
                .read("log", &mut self.log, value::log_filter)
                .unwrap_or_default(),
        }
    }
}

impl Settings {
    /// Returns the file that the master keys come from, where it is this process's alone: others
    /// that share its database need the same keys.
    pub fn own_key_file(&self) -> Option<KeyFile> {
        match (&self.master_key, &self.database) {
            (None, Database::Files) => Some(KeyFile::of(&self.data_dir)),
            (Some(_), _) | (None, Database::Postgres(_)) => None,
        }
    }
}
