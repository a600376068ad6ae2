//! Settings of `kanat control-plane`.

use std::path::PathBuf;

use super::{Problems, control, flags, process};

flags! {
    /// Settings of a control plane, as the command line, the environment and the file give them;
    /// each may be left out.
    pub struct Flags {
        #[command(flatten)]
        #[serde(flatten)]
        process: process::Flags,
        #[command(flatten)]
        #[serde(flatten)]
        control: control::Flags,
        /// Write what is published into this file, sealed under the master key, and end:
        /// `kanat data-plane --plan-file` takes it.
        #[arg(long)]
        #[serde(skip)]
        write_plan_file: Option<PathBuf>,
        /// Tell the node of this id to drain and end, by whichever control plane it is connected
        /// to, and end.
        #[arg(long, value_name = "NODE")]
        #[serde(skip)]
        drain_node: Option<String>,
    }
}

/// The settings of the process, checked.
pub struct Settings {
    pub process: process::Settings,
    pub control: control::Settings,
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
                "a control plane of its own shares PostgreSQL with its nodes: postgres://...",
            );
        }
        Settings {
            control: self.control.check(&process, problems),
            process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::of_file;
    use super::*;

    fn settings(text: &str) -> anyhow::Result<Settings> {
        of_file::<Flags>(text).map(|(settings, _)| settings)
    }

    const DATABASE: &str = "database_url = \"postgres://kanat:hunter2@db/kanat\"\n";
    const TOKEN: &str = "join_token = \"0123456789abcdef\"\n";

    #[test]
    fn secrets_of_connectors_do_not_leave_the_machine_in_clear_text_unless_that_is_said() {
        let open = format!("{DATABASE}{TOKEN}listen = \"0.0.0.0:8080\"\n");
        let problem = settings(&open).err().unwrap().to_string();
        assert!(problem.contains("--send-secrets-unencrypted"), "{problem}");
        for more in [
            "send_secrets_unencrypted = true\n",
            "tls_cert = \"c.pem\"\ntls_key = \"k.pem\"\n",
        ] {
            assert!(settings(&format!("{open}{more}")).is_ok(), "{more}");
        }
        assert!(
            settings(&format!("{DATABASE}listen = \"0.0.0.0:8080\"\n")).is_ok(),
            "no node can connect"
        );
        assert!(
            settings(&format!("{DATABASE}{TOKEN}")).is_ok(),
            "on loopback"
        );
    }

    #[test]
    fn needs_a_database_that_others_can_share() {
        let none = settings("").err().unwrap().to_string();
        assert!(
            none.contains("database_url is missing (--database-url, KANAT_DATABASE_URL): "),
            "{none}"
        );
        assert!(none.contains("PostgreSQL"), "{none}");
        let sqlite = settings("database_url = \"sqlite:kanat.db\"\n")
            .err()
            .unwrap()
            .to_string();
        assert!(sqlite.contains("one process of `kanat up`"), "{sqlite}");
    }

    #[test]
    fn what_is_printed_hides_secrets() {
        let (_, printed) = of_file::<Flags>(&format!("{DATABASE}{TOKEN}")).unwrap();
        assert!(
            !printed.contains("hunter2") && !printed.contains("0123456789abcdef"),
            "{printed}"
        );
        assert!(
            printed.contains("postgres://kanat:********@db/kanat"),
            "{printed}"
        );
    }
}
