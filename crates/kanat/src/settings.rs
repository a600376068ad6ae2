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
pub mod pools;
pub mod process;
mod sources;
pub mod up;
pub mod value;

use std::collections::BTreeMap;

use anyhow::Result;

use crate::exit::usage;
pub use sources::Sources;

/// Text that is printed in the place of a secret.
const MASK: &str = "********";

/// Takes over, field by field, what one says and the other leaves out.
macro_rules! or {
    ($flags:ident, $file:ident; $($field:ident),* $(,)?) => {
        $($flags.$field = $flags.$field.or($file.$field);)*
    };
}
use or;

/// Everything that is wrong with the settings, in the order in which it was found.
#[derive(Default)]
struct Problems {
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

/// Reads a file's text in tests.
#[cfg(test)]
fn parse<T>(text: &str) -> Result<T, String>
where
    T: clap::Args + serde::de::DeserializeOwned + Default,
{
    let mut problems = Problems::default();
    let settings = file::parse(text, "kanat.toml", &mut problems);
    problems
        .finish()
        .map(|()| settings)
        .map_err(|error| error.to_string())
}
