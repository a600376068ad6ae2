//! Settings of `kanat data-plane`.

use std::path::PathBuf;

use anyhow::Result;
use kanat_model::Secret;
use serde::{Deserialize, Serialize};

use super::value::{self, Database};
use super::{Problems, Sources, environment, file, node, or, process};

/// Settings of a data plane, as the command line, the environment and the file give them; each may
/// be left out.
#[derive(Default, Clone, clap::Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Flags {
    #[command(flatten)]
    #[serde(flatten)]
    pub process: process::Flags,
    #[command(flatten)]
    #[serde(flatten)]
    pub node: node::Flags,
    /// Addresses of the control planes, separated by commas, as in `https://control.example.com`.
    #[arg(long, env = "KANAT_CONTROL_PLANE", value_delimiter = ',')]
    pub control_plane: Option<Vec<String>>,
    /// Ids or names of the environments to serve, separated by commas [default: all].
    #[arg(long, env = "KANAT_ENVIRONMENTS", value_delimiter = ',')]
    pub environments: Option<Vec<String>>,
    /// The control planes' join token.
    #[arg(long, env = "KANAT_JOIN_TOKEN", hide_env_values = true)]
    pub join_token: Option<String>,
    /// Authority that vouches for the control planes (PEM file) [default: the public ones].
    #[arg(long, env = "KANAT_TLS_CA")]
    pub tls_ca: Option<PathBuf>,
    /// Plans for a start without any, when no control plane is in reach: a file of
    /// `kanat control-plane --write-plan-file` [default: what was published last, from the
    /// database].
    #[arg(long, env = "KANAT_PLAN_FILE")]
    pub plan_file: Option<PathBuf>,
    /// Listen without TLS, for a proxy on the same machine, and show --tls-cert to the control
    /// planes alone.
    #[arg(long, env = "KANAT_LISTEN_WITHOUT_TLS", num_args = 0..=1, default_missing_value = "true")]
    pub listen_without_tls: Option<bool>,
    /// Reach control planes on other machines without TLS, although plans carry the secrets of
    /// connectors.
    #[arg(
        long,
        env = "KANAT_SEND_SECRETS_UNENCRYPTED",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub send_secrets_unencrypted: Option<bool>,
}

/// The settings of the process, checked.
pub struct Settings {
    pub process: process::Settings,
    pub node: node::Settings,
    pub control_planes: Vec<String>,
    pub environments: Vec<String>,
    pub join_token: Option<Secret<String>>,
    pub tls_ca: Option<PathBuf>,
    pub plan_file: Option<PathBuf>,
    pub listen_without_tls: bool,
    pub send_secrets_unencrypted: bool,
}

impl Flags {
    /// Fills what the command line and the environment leave out from the file, and checks the
    /// whole.
    pub fn resolve(self, sources: Sources) -> Result<Settings> {
        let mut problems = Problems::of(&sources);
        environment::check(&mut problems);
        let file = file::read(sources, self.process.config.as_deref(), &mut problems)?;
        self.or(file).check(problems)
    }

    fn or(mut self, file: Self) -> Self {
        or!(
            self, file;
            control_plane,
            environments,
            join_token,
            tls_ca,
            plan_file,
            listen_without_tls,
            send_secrets_unencrypted,
        );
        self.process = self.process.or(file.process);
        self.node = self.node.or(file.node);
        self
    }

    fn check(self, mut problems: Problems) -> Result<Settings> {
        let names_a_database = self.process.database_url.is_some();
        let process = self.process.check(&mut problems);
        if matches!(process.database, Database::Files) && !names_a_database {
            problems.missing(
                "database_url",
                "a node shares PostgreSQL with its control planes: postgres://...",
            );
        }
        let send_secrets_unencrypted = self.send_secrets_unencrypted.unwrap_or(false);
        let control_planes = control_planes(
            &self.control_plane.unwrap_or_default(),
            send_secrets_unencrypted,
        );
        if control_planes.as_ref().is_ok_and(Vec::is_empty) {
            let problem =
                "a node needs the address of a control plane, such as https://control.example.com";
            problems.missing("control_plane", problem);
        }
        let settings = Settings {
            process,
            node: self.node.check(&mut problems),
            control_planes: problems.take("control_plane", control_planes),
            environments: value::words(&self.environments.unwrap_or_default())
                .map(str::to_owned)
                .collect(),
            join_token: problems.take(
                "join_token",
                self.join_token.map(value::join_token).transpose(),
            ),
            tls_ca: self.tls_ca,
            plan_file: self.plan_file,
            listen_without_tls: self.listen_without_tls.unwrap_or(false),
            send_secrets_unencrypted,
        };
        problems.finish()?;
        Ok(settings)
    }
}

impl Settings {
    /// The settings as a `kanat.toml` that would give them, secrets masked.
    pub fn print(&self) -> Result<String> {
        let flags = Flags {
            process: self
                .process
                .to_flags(self.process.egress.unwrap_or_default()),
            node: self.node.to_flags(),
            control_plane: Some(self.control_planes.clone()),
            environments: Some(self.environments.clone()),
            join_token: value::mask(self.join_token.as_ref()),
            tls_ca: self.tls_ca.clone(),
            plan_file: self.plan_file.clone(),
            listen_without_tls: Some(self.listen_without_tls),
            send_secrets_unencrypted: Some(self.send_secrets_unencrypted),
        };
        Ok(toml::to_string(&flags)?)
    }
}

fn control_planes(texts: &[String], in_clear_text: bool) -> Result<Vec<String>, String> {
    let urls = value::words(texts)
        .map(value::url)
        .collect::<Result<Vec<_>, _>>()?;
    match urls.iter().find(|url| !value::is_private(url)) {
        Some(open) if !in_clear_text => Err(format!(
            "plans carry the secrets of connectors, and would come from {open} without TLS: use \
             https://, or say --send-secrets-unencrypted"
        )),
        Some(_) | None => Ok(urls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings> {
        let text = format!("database_url = \"postgres://db/kanat\"\n{text}");
        super::super::parse::<Flags>(&text)
            .map_err(anyhow::Error::msg)?
            .check(Problems::default())
    }

    #[test]
    fn takes_several_control_planes() {
        let settings =
            settings("control_plane = [\"https://a.example.com/\", \"http://127.0.0.1:1\"]\n")
                .unwrap();
        assert_eq!(
            settings.control_planes,
            ["https://a.example.com", "http://127.0.0.1:1"]
        );
    }

    #[test]
    fn does_not_ask_for_secrets_in_clear_text_unless_that_is_said() {
        let open = "control_plane = [\"http://control.example.com\"]\n";
        assert!(
            settings(open)
                .err()
                .unwrap()
                .to_string()
                .contains("--send-secrets-unencrypted")
        );
        assert!(settings(&format!("{open}send_secrets_unencrypted = true\n")).is_ok());
    }

    #[test]
    fn needs_a_control_plane() {
        assert!(
            settings("")
                .err()
                .unwrap()
                .to_string()
                .contains("address of a control plane")
        );
    }
}
