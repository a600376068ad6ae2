//! A worker can do nothing to the system but answer.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;
use std::thread;

use kanat_script::{Asker, Limits, Options, Pool, Script, Session, probe};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

const WORKER: &str = env!("CARGO_BIN_EXE_script-worker");

fn options() -> Options {
    Options {
        program: WORKER.into(),
        limits: Limits::default(),
        processes: 4,
    }
}

async fn running(pool: &Pool) -> Session {
    let mut session = pool
        .lease(Asker {
            environment: "env",
            key: "flow",
        })
        .await;
    let called = session.call(
        &Script::new("const transform = (input) => input + 1"),
        "0",
        "{}",
    );
    assert_eq!(called.output, Ok(Some("1".to_owned())));
    session
}

/// A line of what the kernel tells of a process.
fn status(process: u32, name: &str) -> String {
    let status =
        std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process has a status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// Returns what a process that confined itself tells: whether it did, its attempts, its memory.
fn attempts() -> Vec<String> {
    let output = Command::new(WORKER)
        .arg("attempts")
        .env_clear()
        .output()
        .expect("the worker starts");
    String::from_utf8(output.stdout)
        .expect("it tells text")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_confined_process_opens_no_file_makes_no_socket_and_starts_nothing() {
    let told = attempts();
    assert_eq!(told.first().map(String::as_str), Some("confined: Ok(())"));
    assert_eq!(told.len(), 12, "{told:?}");
    for attempt in &told[1..11] {
        let (_, came_to) = attempt.split_once(": ").unwrap();
        assert_eq!(came_to, format!("Err(Some({}))", libc::EPERM), "{attempt}");
    }
}

#[test]
fn the_memory_of_a_worker_is_closed_to_processes_of_its_user() {
    assert_eq!(
        attempts().last().map(String::as_str),
        Some("memory: Ok(NotDumpable)")
    );
}

#[tokio::test]
async fn a_running_worker_has_a_filter_of_system_calls_and_takes_no_privileges() {
    let pool = Pool::new(options());
    let worker = running(&pool).await.process_id().unwrap();
    assert_eq!(status(worker, "Seccomp"), "2", "a filter");
    assert_eq!(status(worker, "NoNewPrivs"), "1");
}

#[tokio::test]
async fn code_of_another_environment_gets_another_worker() {
    let pool = Pool::new(Options {
        processes: 2,
        ..options()
    });
    let script = Script::new("const transform = (input) => input");
    let call = async |environment: &str| {
        let mut session = pool
            .lease(Asker {
                environment,
                key: environment,
            })
            .await;
        assert_eq!(
            session.call(&script, "1", "{}").output,
            Ok(Some("1".to_owned()))
        );
        session.process_id().unwrap()
    };
    let production = call("production").await;
    let development = call("development").await;
    assert_ne!(production, development);
    assert_eq!(call("production").await, production);
    assert_eq!(call("development").await, development);
    // There is no room for a third one: that which was idle longest ends.
    let staging = call("staging").await;
    assert!(![production, development].contains(&staging));
    assert!(!Path::new(&format!("/proc/{production}")).exists());
    assert_eq!(call("development").await, development);
}

#[test]
fn adapters_run_with_a_warning_where_the_kernel_refuses_the_filter() {
    assert_eq!(probe(Path::new(WORKER)), Ok(()));
    let refused = || {
        // Inherited by what this thread starts.
        let rules = [(libc::SYS_seccomp, Vec::new())].into();
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).unwrap();
        let program: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        let told = probe(Path::new(WORKER)).unwrap_err();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        drop(runtime.block_on(running(&Pool::new(options()))));
        told
    };
    let told = thread::spawn(refused).join().unwrap();
    assert!(
        told.starts_with("system calls cannot be filtered: "),
        "{told}"
    );
    let missing = probe(Path::new("/nowhere")).unwrap_err();
    assert!(
        missing.starts_with("no process can be started for them: "),
        "{missing}"
    );
}
