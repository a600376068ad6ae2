//! Commands that texts name, as a person has to type them to stay in the environment that `--env`
//! chose.

use crate::exit::{Usage, failure, usage};

/// Commands that reach no environment, or each of them.
const EVERYWHERE: [&str; 10] = [
    "api-key",
    "audit",
    "completion",
    "demo",
    "environment",
    "login",
    "logout",
    "member",
    "node",
    "up",
];

/// The environment that a flag chose for one command. Later commands do not know of it by
/// themselves.
#[derive(Clone)]
pub struct EnvironmentOption(Option<String>);

impl EnvironmentOption {
    /// Takes the environment of a command, unless KANAT_ENV gives it to later commands as well.
    pub fn of(environment: Option<&str>) -> Self {
        let lasting = std::env::var("KANAT_ENV").ok();
        Self(
            environment
                .filter(|name| lasting.as_deref() != Some(name))
                .map(str::to_owned),
        )
    }

    /// Adds `--env` to each command in backticks that acts in an environment.
    pub fn repeat(&self, text: &str) -> String {
        let Some(environment) = &self.0 else {
            return text.to_owned();
        };
        // Every second part stands in backticks.
        let parts = text.split('`').enumerate().map(|(index, part)| {
            match index % 2 == 1 && acts_in_environment(part) {
                true => format!("{part} --env {}", quoted(environment)),
                false => part.to_owned(),
            }
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// Adds `--env` to the commands that an error names.
    pub fn repeat_in_error(&self, error: anyhow::Error) -> anyhow::Error {
        let text = format!("{error:#}");
        let repeated = self.repeat(&text);
        match error.downcast_ref::<Usage>() {
            _ if repeated == text => error,
            Some(_) => usage(repeated),
            None => failure(repeated),
        }
    }
}

fn acts_in_environment(part: &str) -> bool {
    let Some(arguments) = part.strip_prefix("kanat ") else {
        return false;
    };
    let noun = arguments.split(' ').next().unwrap_or_default();
    !EVERYWHERE.contains(&noun) && !arguments.contains("--help") && !arguments.contains("--env")
}

/// A name as a shell takes it for one word.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(name: &str) -> EnvironmentOption {
        EnvironmentOption(Some(name.to_owned()))
    }

    #[test]
    fn a_command_in_an_environment_repeats_it() {
        let hint = "fill it with `kanat lookup set t KEY VALUE` or `kanat lookup import t FILE`";
        let expected = "fill it with `kanat lookup set t KEY VALUE --env dev` or `kanat lookup \
                        import t FILE --env dev`";
        assert_eq!(chosen("dev").repeat(hint), expected);
        assert_eq!(EnvironmentOption(None).repeat(hint), hint);
        assert_eq!(
            chosen("bob's own").repeat("`kanat logs`"),
            r"`kanat logs --env 'bob'\''s own'`"
        );
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "log in with `kanat login`",
            "`kanat api update --help` lists",
            "found `kanata`",
            "kanat flow list",
        ] {
            assert_eq!(chosen("dev").repeat(text), text);
        }
    }

    #[test]
    fn an_error_stays_of_its_kind() {
        let wrong = chosen("dev").repeat_in_error(usage("see `kanat version list`"));
        assert_eq!(
            wrong.downcast_ref::<Usage>().unwrap().0,
            "see `kanat version list --env dev`"
        );
        let failed = chosen("dev").repeat_in_error(failure("see `kanat flow list`"));
        assert_eq!(failed.to_string(), "see `kanat flow list --env dev`");
    }
}
