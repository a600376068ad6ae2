//! Settings of `kanat up`.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use kanat_model::Secret;
use kanat_net::egress::LocalTargets;

use super::{Problems, control, flags, node, process, value};
use crate::process::egress::Reach;

flags! {
    /// Settings of `up`, as the command line, the environment and the file give them; each may be
    /// left out.
    pub struct Flags {
        #[command(flatten)]
        #[serde(flatten)]
        process: process::Flags,
        #[command(flatten)]
        #[serde(flatten)]
        control: control::Flags,
        #[command(flatten)]
        #[serde(flatten)]
        node: node::Flags,
        /// Address of its own for webhooks and published APIs [default: the same as --listen].
        "KANAT_DATA_PLANE_LISTEN" => data_plane_listen: Option<String>,
    }
}

/// The settings of the process, checked.
pub struct Settings {
    pub process: process::Settings,
    pub control: control::Settings,
    pub node: node::Settings,
    pub data_plane_listen: Option<SocketAddr>,
}

impl super::Flags for Flags {
    type Settings = Settings;

    fn process(&self) -> &process::Flags {
        &self.process
    }

    fn check(&mut self, problems: &mut Problems) -> Settings {
        let process = self.process.check(problems);
        let listen = &mut self.data_plane_listen;
        let settings = Settings {
            control: self.control.check(&process, problems),
            node: self.node.check(problems),
            data_plane_listen: problems.read("data_plane_listen", listen, value::address),
            process,
        };
        self.process.egress = Some(value::egress_word(settings.local_targets()).to_owned());
        settings
    }
}

impl Settings {
    /// The settings of a service for a while: a free port of this machine, and nothing from the
    /// environment.
    pub fn demo(folder: &Path, owner_key: Secret<String>) -> Result<Self> {
        let mut flags = Flags::default();
        flags.process.listen = Some("127.0.0.1:0".to_owned());
        flags.process.data_dir = Some(folder.join("data"));
        flags.control.bootstrap_api_key = Some(owner_key.expose().clone());
        super::checked(&mut flags, Problems::default())
    }

    /// Returns whether calls that users direct may reach this machine and private networks. Unless
    /// it is set, they may where nobody else reaches the service: every listener is on loopback,
    /// and no public URL leads to them.
    pub fn local_targets(&self) -> LocalTargets {
        self.process.egress.unwrap_or(match self.reach() {
            Reach::ThisMachine => LocalTargets::Allowed,
            Reach::Others => LocalTargets::Refused,
        })
    }

    /// Returns the reach of the service.
    pub fn reach(&self) -> Reach {
        let listeners = [
            Some(self.process.listen),
            self.data_plane_listen,
            self.process.metrics_listen,
        ];
        let only_here = listeners
            .into_iter()
            .flatten()
            .all(|listener| listener.ip().is_loopback());
        if only_here && self.control.public_url.is_none() {
            Reach::ThisMachine
        } else {
            Reach::Others
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{MASK, file, of_file, resolve, sources};
    use super::*;

    fn settings(text: &str) -> anyhow::Result<Settings> {
        of_file::<Flags>(text).map(|(settings, _)| settings)
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kanat.toml");
        std::fs::write(&path, "listen = \"127.0.0.1:1\"\nlease_seconds = 7\n").unwrap();
        let mut flags = Flags::default();
        flags.process.config = Some(path);
        let sources = sources::of_command_line(&["kanat", "up", "--listen", "127.0.0.1:2"]);
        let settings = resolve(&flags, sources).unwrap().unwrap();
        assert_eq!(settings.process.listen.port(), 2);
        assert_eq!(settings.node.lease, Duration::from_secs(7));
        assert_eq!(settings.process.drain, Duration::from_secs(25));
    }

    #[test]
    fn every_bad_setting_is_named_at_once() {
        let bad = "listen = \"here\"\nlease_seconds = 0\negress_allow = \
                   [\"10.0.0.0/99\"]\njoin_token = \"short\"\n";
        let error = settings(bad).err().unwrap().to_string();
        for name in [
            "listen: \"here\"",
            "lease_seconds: 0 s",
            "egress_allow: \"10.0.0.0/99\"",
            "join_token: it is",
        ] {
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_in_the_file_is_refused() {
        for text in [
            "lisen = \"127.0.0.1:1\"\n",
            "print_config = true\n",
            "control_plane = []\n",
        ] {
            let error = settings(text).err().unwrap().to_string();
            assert!(error.contains("there is no setting"), "{error}");
        }
    }

    #[test]
    fn what_is_printed_hides_secrets_and_reads_back() {
        let key = "0001".repeat(16);
        let text = format!("master_key = \"{key}\"\nretention_days = 0\n");
        let (_, printed) = of_file::<Flags>(&text).unwrap();
        assert!(!printed.contains("0001"), "{printed}");
        let mut problems = Problems::default();
        let again: Flags = file::parse(&printed, "kanat.toml", &mut problems);
        problems.finish().unwrap();
        assert_eq!(again.process.master_key.as_deref(), Some(MASK));
        assert_eq!(again.control.retention_days, Some(0));
    }

    #[test]
    fn local_targets_are_allowed_by_default_where_nobody_else_reaches_the_service() {
        let local = |text: &str| settings(text).unwrap().local_targets();
        for text in [
            "",
            "listen = \"[::1]:0\"\nmetrics_listen = \"127.0.0.1:0\"\ndata_plane_listen = \
             \"127.0.0.1:0\"\n",
        ] {
            assert_eq!(local(text), LocalTargets::Allowed, "{text}");
        }
        for open in [
            "listen = \"0.0.0.0:0\"\n",
            "data_plane_listen = \"0.0.0.0:0\"\n",
            "metrics_listen = \"0.0.0.0:0\"\n",
            "public_url = \"https://hooks.example.com\"\n",
            "public_url = \"http://127.0.0.1:8080\"\n",
        ] {
            assert_eq!(local(open), LocalTargets::Refused, "{open}");
            assert_eq!(
                local(&format!("egress = \"local\"\n{open}")),
                LocalTargets::Allowed,
                "{open}"
            );
        }
        assert_eq!(local("egress = \"guarded\"\n"), LocalTargets::Refused);
    }

    #[test]
    fn egress_is_guarded_or_local() {
        let error = settings("egress = \"off\"\n").err().unwrap().to_string();
        assert!(
            error.contains("egress: \"off\" is neither guarded nor local"),
            "{error}"
        );
    }

    #[test]
    fn a_certificate_and_its_key_come_together() {
        let error = settings("tls_cert = \"c.pem\"\n")
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("--tls-key"), "{error}");
    }
}
