//! Hardening: it makes a fault in our code, or in code that we use, worth less to an attacker.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use kanat_tests::{TestApp, app};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// The user and group of nobody.
const NOBODY: u32 = 65534;
const WARNING: &str = "code of adapters is not confined by the system";

#[tokio::test]
async fn the_memory_of_a_service_is_closed_to_other_processes_of_its_user() {
    let folder = tempfile::TempDir::with_prefix("kanat-test-").unwrap();
    // Root reads everything, so that root has nobody run it, from a folder that nobody may not see.
    let mut command = if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut shell = Command::new("sh");
        let run = "exec 9<\"$1\"; shift; exec setpriv --reuid \"$0\" --regid \"$0\" \
                   --clear-groups /proc/self/fd/9 \"$@\"";
        shell
            .args(["-c", run, &NOBODY.to_string()])
            .arg(app::binary());
        shell
    } else {
        Command::new(app::binary())
    };
    command
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path().join("data"));
    // It begins once more where this is not told, by a path that nobody may not see.
    command
        .env("MIMALLOC_PURGE_DELAY", "10")
        .current_dir("/")
        .kill_on_drop(true);
    let mut service = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(service.stdout.take().unwrap())
        .lines()
        .next_line()
        .await
        .unwrap();
    assert!(line.is_some(), "it listens");
    let process = format!("/proc/{}", service.id().unwrap());
    let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
    assert!(!status.contains("\nUid:\t0\t"), "{status}");
    for file in ["mem", "environ", "maps", "fd"] {
        let owner = std::fs::metadata(format!("{process}/{file}"))
            .unwrap()
            .uid();
        assert_eq!(owner, 0, "{file} belongs to root");
    }
    // It finds itself all the same: the worker that tries the confinement is another process of it.
    service.start_kill().unwrap();
    let log = service.wait_with_output().await.unwrap().stderr;
    let log = String::from_utf8(log).unwrap();
    assert!(!log.contains(WARNING), "{log}");
}

#[test]
fn a_kernel_that_does_not_confine_adapters_is_warned_of_once() {
    let start = |refuses: bool| {
        if refuses {
            // Inherited by what this thread starts.
            let rules = [(libc::SYS_seccomp, Vec::new())].into();
            let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
            let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
            let filter =
                SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).unwrap();
            let program: BpfProgram = filter.try_into().unwrap();
            seccompiler::apply_filter(&program).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { TestApp::start().await.log() })
    };
    let log = |refuses| std::thread::spawn(move || start(refuses)).join().unwrap();
    let refused = log(true);
    assert_eq!(refused.matches(WARNING).count(), 1, "{refused}");
    assert!(
        refused.contains("system calls cannot be filtered"),
        "{refused}"
    );
    assert_eq!(log(false).matches(WARNING).count(), 0);
}

#[tokio::test]
async fn code_in_c_is_built_with_guards_of_stack_and_buffers() {
    let symbols = Command::new("readelf")
        .args(["--wide", "--dyn-syms"])
        .arg(app::binary())
        .output()
        .await;
    let symbols =
        String::from_utf8(symbols.expect("readelf comes with the linker").stdout).unwrap();
    for guard in ["__stack_chk_fail", "__snprintf_chk"] {
        assert!(symbols.contains(guard), "{guard}: {symbols}");
    }
}
