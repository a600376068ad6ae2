//! Every target on its seeds and on some thousand changes of them, the same ones at each run.

use std::collections::BTreeSet;

use kanat_fuzz::mutate::Mutations;
use kanat_fuzz::{TARGETS, Target, seeds};

/// Changed inputs of a target.
const MUTATIONS: usize = 3_000;

#[test]
fn every_target_has_seeds_and_every_folder_of_seeds_a_target() {
    let folders = std::fs::read_dir(seeds()).unwrap();
    let folders: BTreeSet<String> = folders
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(folders, names);
    assert!(TARGETS.iter().all(|target| !target.seeds().is_empty()));
}

/// Runs a target; an input that it fails on is reported as an escaped text.
fn run(name: &str) {
    let target = Target::find(name).expect("the target is in the list");
    let seeds = target.seeds();
    for input in seeds
        .iter()
        .cloned()
        .chain(Mutations::of(&seeds).take(MUTATIONS))
    {
        let result = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(
            result.is_ok(),
            "{name} fails at b\"{}\"",
            input.escape_ascii()
        );
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_run() {
            let run: Vec<&str> = vec![$(stringify!($name)),*];
            assert_eq!(run, TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
        }
    };
}

targets! {
    cron expression flow_yaml gateway_json gateway_path journal_file journal_record link lookup_csv
    multipart plan_frames poll_page template webhook
}
