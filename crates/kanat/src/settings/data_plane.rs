//! Settings of `kanat data-plane`.

use std::path::PathBuf;

use kanat_model::Secret;

use super::{Problems, flags, node, process, value};

flags! {
    /// Settings of a data plane, as the command line, the environment and the file give them; each
    /// may be left out.
    pub struct Flags {
        #[command(flatten)]
        #[serde(flatten)]
        process: process::Flags,
        #[command(flatten)]
        #[serde(flatten)]
        node: node::Flags,
        /// Addresses of the control planes, separated by commas, as in
        /// `https://control.example.com`.
        #[arg(value_delimiter = ',')]
        "KANAT_CONTROL_PLANE" => control_plane: Option<Vec<String>>,
        /// Ids or names of the environments to serve, separated by commas [default: all].
        #[arg(value_delimiter = ',')]
        "KANAT_ENVIRONMENTS" => environments: Option<Vec<String>>,
        /// The control planes' join token.
        #[arg(hide_env_values = true)]
        "KANAT_JOIN_TOKEN" => join_token: Option<String>,
        /// Authority that vouches for the control planes (PEM file) [default: the public ones].
        "KANAT_TLS_CA" => tls_ca: Option<PathBuf>,
        /// Plans for a start without any, when no control plane is in reach: a file of
        /// `kanat control-plane --write-plan-file` [default: what was published last, from the
        /// database].
        "KANAT_PLAN_FILE" => plan_file: Option<PathBuf>,
        /// Listen without TLS, for a proxy on the same machine, and show --tls-cert to the control
        /// planes alone.
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        "KANAT_LISTEN_WITHOUT_TLS" => listen_without_tls: Option<bool>,
        /// Reach control planes on other machines without TLS, although plans carry the secrets of
        /// connectors.
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        "KANAT_SEND_SECRETS_UNENCRYPTED" => send_secrets_unencrypted: Option<bool>,
    }
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
}

impl super::Flags for Flags {
    type Settings = Settings;

    fn process(&self) -> &process::Flags {
        &self.process
    }

    fn check(&mut self, problems: &mut Problems) -> Settings {
        let has_database = self.process.database_url.is_some();
        let process = self.process.check(problems);
        if !has_database {
            problems.missing(
                "database_url",
                "a node shares PostgreSQL with its control planes: postgres://...",
            );
        }
        let in_clear_text = *self.send_secrets_unencrypted.get_or_insert(false);
        let control_plane = |text: &str| match value::url(text)? {
            url if in_clear_text || value::is_private(&url) => Ok(url),
            url => Err(format!(
                "plans carry the secrets of connectors, and would come from {url} without TLS: \
                 use https://, or say --send-secrets-unencrypted"
            )),
        };
        let mut named = self.control_plane.iter().flatten();
        if named.all(|text| text.trim().is_empty()) {
            problems.missing(
                "control_plane",
                "a node needs the address of a control plane, such as https://control.example.com",
            );
        }
        let own = |text: &str| Ok::<_, String>(text.to_owned());
        Settings {
            process,
            node: self.node.check(problems),
            control_planes: problems.read_each(
                "control_plane",
                &mut self.control_plane,
                control_plane,
            ),
            environments: problems.read_each("environments", &mut self.environments, own),
            join_token: problems.hide("join_token", &mut self.join_token, value::join_token),
            tls_ca: self.tls_ca.clone(),
            plan_file: self.plan_file.clone(),
            listen_without_tls: *self.listen_without_tls.get_or_insert(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> anyhow::Result<Settings> {
        let text = format!("database_url = \"postgres://db/kanat\"\n{text}");
        super::super::of_file::<Flags>(&text).map(|(settings, _)| settings)
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
