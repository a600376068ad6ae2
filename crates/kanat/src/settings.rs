//! Settings of the processes: flags first, then `KANAT_*`, then `kanat.toml`, then what stands here. Wrong ones are
//! reported all at once, and the process ends with 2.

pub mod adapters;
pub mod control;
pub mod control_plane;
pub mod data_plane;
pub mod demo;
pub mod node;
pub mod pools;
pub mod process;
pub mod up;
pub mod value;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::de::DeserializeOwned;

use crate::exit::usage;

const DEFAULT_FILE: &str = "kanat.toml";

/// What is printed in the place of a secret.
const MASK: &str = "********";

/// Takes over, field by field, what one says and the other leaves out.
macro_rules! or {
    ($flags:ident, $file:ident; $($field:ident),* $(,)?) => {
        $($flags.$field = $flags.$field.or($file.$field);)*
    };
}
use or;

/// Reads the settings file: the one named, which must be there, or `kanat.toml` in the working folder, which may be.
fn file<T: clap::Args + DeserializeOwned + Default>(named: Option<&Path>) -> Result<T> {
    let path = named.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_path_buf);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(usage(format!("cannot read {}: {error}", path.display()))),
    };
    parse(&text).map_err(|problem| usage(format!("{}: {problem}", path.display())))
}

/// The settings in a file's text; what the command has no flag for is not there either.
fn parse<T: clap::Args + DeserializeOwned>(text: &str) -> Result<T, String> {
    let settings = toml::from_str(text).map_err(|error| error.to_string())?;
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let command = T::augment_args(clap::Command::new("kanat"));
    let is_known = |key: &str| {
        let by_flag_alone = ["config", "print_config", "write_plan_file", "drain_node"].contains(&key);
        !by_flag_alone && command.get_arguments().any(|argument| argument.get_id() == key)
    };
    match table.keys().find(|key| !is_known(key)) {
        Some(unknown) => Err(format!("there is no setting {unknown:?}")),
        None => Ok(settings),
    }
}

/// Collects what is wrong with single settings.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    /// The value, or its default and a problem in the name of the setting.
    fn take<T: Default, E: std::fmt::Display>(&mut self, setting: &str, value: Result<T, E>) -> T {
        value.unwrap_or_else(|problem| {
            self.add(setting, problem);
            T::default()
        })
    }

    fn add(&mut self, setting: &str, problem: impl std::fmt::Display) {
        self.0.push(format!("{setting}: {problem}"));
    }

    fn finish(self) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(usage(format!("bad setting: {}", self.0.concat()))),
            _ => Err(usage(format!("bad settings:\n  {}", self.0.join("\n  ")))),
        }
    }
}
