//! Settings of the processes: flags first, then `KANAT_*`, then `kanat.toml`, then what stands
//! here. Wrong ones are reported all at once, and the process ends with 2.

pub mod adapters;
pub mod control;
pub mod control_plane;
pub mod data_plane;
pub mod demo;
pub mod environment;
mod file;
pub mod node;
mod nodes;
pub mod oidc;
pub mod pools;
pub mod process;
mod sources;
pub mod up;
pub mod value;

use std::collections::BTreeMap;

use anyhow::Result;
use kanat_model::Secret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::usage;
use crate::output;
pub use sources::Sources;

/// Text that is printed in the place of a secret.
const MASK: &str = "********";

/// Defines settings as the command line, the environment and the file give them: before the name of
/// each stands its variable.
macro_rules! flags {
    (
        $(#[$about:meta])*
        pub struct Flags {
            $($(#[$meta:meta])* $($variable:literal =>)? $field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Default, clap::Args, serde::Serialize, serde::Deserialize)]
        #[group(skip)]
        #[serde(default)]
        pub struct Flags {
            $($(#[$meta])* $(#[arg(long, env = $variable)])? pub $field: $type),*
        }
    };
}
use flags;

/// Settings of a kind of process, as the command line, the environment and the file give them; each
/// may be left out.
pub trait Flags: clap::Args + Serialize + DeserializeOwned + Default {
    /// The settings, checked.
    type Settings;

    /// Returns those that every process has.
    fn process(&self) -> &process::Flags;

    /// Checks the settings. The flags then say what holds: with defaults, and secrets masked.
    fn check(&mut self, problems: &mut Problems) -> Self::Settings;
}

/// Returns the settings: those of the command line and the environment, and of the file what these
/// leave out. None where they were to be printed, as a `kanat.toml` that would give them.
///
/// # Errors
/// Everything that is wrong with them.
pub fn resolve<F: Flags>(given: &F, sources: Sources) -> Result<Option<F::Settings>> {
    let mut problems = Problems::of(&sources);
    environment::check(&mut problems);
    let process = given.process();
    let mut flags: F = file::read(&sources, process.config.as_deref(), &mut problems)?;
    flags.update_from_arg_matches(&sources.matches)?;
    problems.names.extend(sources.names);
    let settings = checked(&mut flags, problems)?;
    if process.print_config {
        output::line(&toml::to_string(&flags)?)?;
        return Ok(None);
    }
    Ok(Some(settings))
}

fn checked<F: Flags>(flags: &mut F, mut problems: Problems) -> Result<F::Settings> {
    let settings = flags.check(&mut problems);
    problems.finish()?;
    Ok(settings)
}

/// Everything that is wrong with the settings, in the order in which it was found.
#[derive(Default)]
pub struct Problems {
    texts: Vec<String>,
    /// Settings with what they come from, as in `KANAT_LISTEN`, `--listen` and
    /// `kanat.toml:3: listen`.
    names: BTreeMap<String, String>,
}

impl Problems {
    /// Returns the faults of what is given, the file left aside.
    fn of(sources: &Sources) -> Self {
        Self {
            texts: sources.faults.clone(),
            names: BTreeMap::new(),
        }
    }

    /// Returns the value, or its default after a problem was added under the name of the setting.
    fn take<T: Default, E: std::fmt::Display>(&mut self, setting: &str, value: Result<T, E>) -> T {
        value.unwrap_or_else(|problem| {
            self.add(setting, problem);
            T::default()
        })
    }

    /// Reads a setting that may be left out. Its text is then that of the value.
    fn read<T: ToString>(
        &mut self,
        setting: &str,
        text: &mut Option<String>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.take(setting, text.as_deref().map(read).transpose());
        *text = value.as_ref().map(T::to_string);
        value
    }

    /// Reads each text of a list that is not blank. The list is then that of the values.
    fn read_each<T: ToString>(
        &mut self,
        setting: &str,
        texts: &mut Option<Vec<String>>,
        read: impl FnMut(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let given = texts.take().unwrap_or_default();
        let given = given.iter().map(|text| text.trim());
        let given = given.filter(|text| !text.is_empty()).map(read);
        let values = self.take(setting, given.collect::<Result<Vec<T>, String>>());
        *texts = Some(values.iter().map(T::to_string).collect());
        values
    }

    /// Reads a secret, and masks its text.
    fn hide(
        &mut self,
        setting: &str,
        text: &mut Option<String>,
        read: impl FnOnce(String) -> Result<Secret<String>, String>,
    ) -> Option<Secret<String>> {
        let secret = self.take(setting, text.take().map(read).transpose());
        *text = secret.as_ref().map(|_| MASK.to_owned());
        secret
    }

    /// Adds a problem of a setting, under the name of what its value comes from.
    fn add(&mut self, setting: &str, problem: impl std::fmt::Display) {
        let name = self.names.get(setting).map_or(setting, String::as_str);
        self.texts.push(format!("{name}: {problem}"));
    }

    /// Adds that a setting is missing, with how it can be given.
    fn missing(&mut self, setting: &str, problem: impl std::fmt::Display) {
        let flag = setting.replace('_', "-");
        let variable = setting.to_uppercase();
        self.texts.push(format!(
            "{setting} is missing (--{flag}, KANAT_{variable}): {problem}"
        ));
    }

    fn finish(self) -> Result<()> {
        match self.texts.len() {
            0 => Ok(()),
            1 => Err(usage(format!("bad setting: {}", self.texts.concat()))),
            _ => Err(usage(format!(
                "bad settings:\n  {}",
                self.texts.join("\n  ")
            ))),
        }
    }
}

/// Checks the settings of a file, and prints them.
#[cfg(test)]
fn of_file<F: Flags>(text: &str) -> Result<(F::Settings, String)> {
    let mut problems = Problems::default();
    let mut flags: F = file::parse(text, "kanat.toml", &mut problems);
    let settings = checked(&mut flags, problems)?;
    Ok((settings, toml::to_string(&flags)?))
}
