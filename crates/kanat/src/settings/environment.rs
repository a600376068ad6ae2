//! Variables of the environment that begin with `KANAT_` and that nothing reads. A slip of a known
//! name is a fault, since the setting that was meant does not hold; any other name is warned of.

use std::collections::BTreeMap;

use clap::CommandFactory;
use kanat_model::nearest;

use super::Problems;
use crate::cli::Cli;

const PREFIX: &str = "KANAT_";

/// Most edits that make a slip of a known name. A third of a long name would be too many:
/// `KANAT_DATABASE_HOST` is no slip of `KANAT_DATABASE_URL`.
const MAX_EDITS: usize = 2;

/// Adds a fault for each variable whose name is a slip of a known one.
pub(super) fn check(problems: &mut Problems) {
    for (name, meant) in Unread::of_process().misspelt {
        problems.texts.push(format!(
            "there is no variable {name}; did you mean {meant}?"
        ));
    }
}

/// Variables that client commands read, and names that are mistaken for them. A misspelt one makes
/// the command reach another service or change another environment.
const OF_CLIENTS: [(&str, &str); 5] = [
    ("KANAT_URL", "KANAT_URL"),
    ("KANAT_API_KEY", "KANAT_API_KEY"),
    ("KANAT_ENV", "KANAT_ENV"),
    ("KANAT_OUTPUT", "KANAT_OUTPUT"),
    ("KANAT_ENVIRONMENTS", "KANAT_ENV"),
];

/// Adds a fault for each variable whose name is a slip of one that commands of clients read.
pub(super) fn check_client(problems: &mut Problems) {
    for (name, meant) in Unread::of_process().misspelt {
        if let Some((_, meant)) = OF_CLIENTS.iter().find(|(known, _)| *known == meant) {
            problems.texts.push(format!(
                "there is no variable {name}; did you mean {meant}?"
            ));
        }
    }
}

/// Warns of each variable that nothing reads and whose name is no slip of a known one.
pub fn warn() {
    for name in Unread::of_process().unknown {
        tracing::warn!("the variable {name} is set, and there is no setting of this name");
    }
}

/// Variables that nothing reads, in the order of their names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Unread {
    /// Names, each with the known name that is meant.
    misspelt: Vec<(String, String)>,
    /// Names that are near to no known one.
    unknown: Vec<String>,
}

impl Unread {
    fn of_process() -> Self {
        let variables = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
            .map(|(name, value)| (name, value.to_string_lossy().into_owned()));
        Self::among(variables, &known_names())
    }

    /// Finds them among variables, given with their values. `known` has names without the prefix.
    fn among(variables: impl IntoIterator<Item = (String, String)>, known: &[String]) -> Self {
        let mut unread = Self::default();
        for (variable, value) in variables.into_iter().collect::<BTreeMap<_, _>>() {
            let Some(name) = variable.strip_prefix(PREFIX) else {
                continue;
            };
            if known.iter().any(|known| known == name) || is_of_a_platform(name, &value) {
                continue;
            }
            match nearest::nearest_within(MAX_EDITS, name, known.iter().map(String::as_str)) {
                Some(meant) => {
                    let meant = format!("{PREFIX}{meant}");
                    unread.misspelt.push((variable, meant));
                }
                None => unread.unknown.push(variable),
            }
        }
        unread
    }
}

/// Returns the names of the variables that the binary reads, without the prefix: those of the flags
/// of all its commands.
fn known_names() -> Vec<String> {
    let mut names = Vec::new();
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        let variables = command.get_arguments().filter_map(clap::Arg::get_env);
        let variables = variables.filter_map(|name| name.to_str()?.strip_prefix(PREFIX));
        names.extend(variables.map(str::to_owned));
        commands.extend(command.get_subcommands().cloned());
    }
    if cfg!(feature = "failpoints") {
        names.push("FAILPOINT".to_owned());
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns whether a container platform sets the variable, as Kubernetes does in each container for
/// every service of the namespace: those of a service `kanat` or `kanat-control-plane` begin with
/// the prefix. `name` is without the prefix.
fn is_of_a_platform(name: &str, value: &str) -> bool {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    let words: Vec<&str> = name.split('_').collect();
    let has_service_port = words.windows(2).any(|pair| pair == ["SERVICE", "PORT"]);
    // As in `KANAT_PORT_8080_TCP` and `KANAT_PORT_8080_TCP_ADDR`.
    let has_numbered_port = words.windows(3).any(|three| {
        let is_number = three[1].bytes().all(|byte| byte.is_ascii_digit());
        three[0] == "PORT" && is_number && PROTOCOLS.contains(&three[2])
    });
    let scheme = value
        .split_once("://")
        .map(|(scheme, _)| scheme.to_uppercase());
    let is_address = scheme.is_some_and(|scheme| PROTOCOLS.contains(&scheme.as_str()));
    name == "PORT"
        || name.ends_with("_PORT") && is_address
        || words.ends_with(&["SERVICE", "HOST"])
        || has_service_port
        || has_numbered_port
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(variables: &[(&str, &str)]) -> Unread {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Unread::among(variables.iter().map(own), &known_names())
    }

    #[test]
    fn variables_of_services_and_of_client_commands_are_known() {
        let known = [
            "KANAT_LISTEN",
            "KANAT_CONTROL_PLANE",
            "KANAT_PLAN_FILE",
            "KANAT_LEASE_SECONDS",
            "KANAT_URL",
            "KANAT_API_KEY",
            "KANAT_ENV",
            "KANAT_OUTPUT",
        ];
        assert_eq!(unread(&known.map(|name| (name, "x"))), Unread::default());
        assert_eq!(
            unread(&[("PATH", "/bin"), ("KANATS_LISTEN", "x")]),
            Unread::default()
        );
    }

    #[test]
    fn a_misspelt_name_is_reported_with_the_known_one() {
        let slips = [
            ("KANAT_LISEN", "KANAT_LISTEN"),
            ("KANAT_LISTNE", "KANAT_LISTEN"),
            ("KANAT_listen", "KANAT_LISTEN"),
            ("KANAT_DATABSE_URI", "KANAT_DATABASE_URL"),
            ("KANAT_MASTERKEY", "KANAT_MASTER_KEY"),
            ("KANAT_ENVIRONMENT", "KANAT_ENVIRONMENTS"),
            ("KANAT_API_KEYS", "KANAT_API_KEY"),
        ];
        for (name, meant) in slips {
            let misspelt = vec![(name.to_owned(), meant.to_owned())];
            assert_eq!(
                unread(&[(name, "x")]),
                Unread {
                    misspelt,
                    ..Unread::default()
                }
            );
        }
    }

    #[test]
    fn a_name_that_is_near_to_none_is_unknown() {
        let names = [
            "KANAT_DATABASE_HOST",
            "KANAT_FOO",
            "KANAT_IMAGE_TAG",
            "KANAT_LOG_LEVEL",
        ];
        let unknown = names.map(str::to_owned).to_vec();
        let expected = Unread {
            unknown,
            ..Unread::default()
        };
        assert_eq!(unread(&names.map(|name| (name, "x"))), expected);
    }

    #[test]
    fn what_container_platforms_set_is_passed_over() {
        let address = "tcp://10.0.0.7:8080";
        for name in [
            "KANAT_SERVICE_HOST",
            "KANAT_SERVICE_PORT",
            "KANAT_SERVICE_PORT_HTTP",
            "KANAT_PORT",
            "KANAT_PORT_8080_TCP",
            "KANAT_PORT_8080_TCP_PROTO",
            "KANAT_PORT_8080_TCP_PORT",
            "KANAT_PORT_8080_TCP_ADDR",
            "KANAT_CONTROL_PLANE_SERVICE_HOST",
            "KANAT_CONTROL_PLANE_SERVICE_PORT",
            "KANAT_CONTROL_PLANE_PORT",
            "KANAT_CONTROL_PLANE_PORT_8080_TCP_ADDR",
        ] {
            assert_eq!(unread(&[(name, address)]), Unread::default(), "{name}");
        }
        let metrics = unread(&[("KANAT_METRICS_PORT", "9000")]);
        assert_eq!(metrics.unknown, ["KANAT_METRICS_PORT"]);
    }
}
