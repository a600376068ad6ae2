//! Fuzz targets: everything that reads foreign bytes, as functions of bytes that panic where a
//! promise does not hold. `cargo xtask fuzz` runs them under libFuzzer, guided by coverage; the
//! tests of this crate run them on their seeds and on [`mutations`](mutate::Mutations) of these.
//!
//! The seeds of a target are the files of `seeds/<name>`: text as it is, or hexadecimal digits
//! where the name ends in `.hex`. An input that was found to fail becomes a seed, in the change
//! that mends it.

pub mod mutate;
mod targets;

use std::path::PathBuf;

/// A target: its name, and what it does with an input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All targets, in the order of their names.
pub const TARGETS: &[Target] = &[
    Target {
        name: "cron",
        run: targets::cron,
    },
    Target {
        name: "expression",
        run: targets::expression,
    },
    Target {
        name: "flow_yaml",
        run: targets::flow_yaml,
    },
    Target {
        name: "gateway_json",
        run: targets::gateway,
    },
    Target {
        name: "gateway_path",
        run: targets::gateway,
    },
    Target {
        name: "journal_file",
        run: kanat_message_log::fuzz::journal_file,
    },
    Target {
        name: "journal_record",
        run: kanat_message_log::fuzz::journal_record,
    },
    Target {
        name: "link",
        run: kanat_data_plane::fuzz::link,
    },
    Target {
        name: "lookup_csv",
        run: kanat_control_plane::fuzz::lookup_csv,
    },
    Target {
        name: "multipart",
        run: targets::gateway,
    },
    Target {
        name: "plan_frames",
        run: targets::plan_frames,
    },
    Target {
        name: "poll_page",
        run: kanat_data_plane::fuzz::poll_page,
    },
    Target {
        name: "template",
        run: targets::template,
    },
    Target {
        name: "webhook",
        run: kanat_data_plane::fuzz::webhook,
    },
];

impl Target {
    pub fn find(name: &str) -> Option<Self> {
        TARGETS.iter().copied().find(|target| target.name == name)
    }

    /// Returns the inputs to begin with, in the order of their files.
    pub fn seeds(self) -> Vec<Vec<u8>> {
        let folder = seeds().join(self.name);
        let files = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> = files
            .map(|file| file.expect("a folder can be read").path())
            .collect();
        files.sort_unstable();
        let read = |file: &PathBuf| {
            std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        let seed =
            |file: &PathBuf| match file.extension().is_some_and(|extension| extension == "hex") {
                true => hex::decode(read(file).trim_ascii())
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display())),
                false => read(file),
            };
        files.iter().map(seed).collect()
    }
}

/// Returns the folder of all seeds.
pub fn seeds() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds")
}
