//! The pool over real workers: what code does to a worker, and what the others notice of it.

use std::time::{Duration, Instant};

use kanat_script::{Asker, Kind, Limits, Options, Pool, Script, Session};

/// Time beyond what the code may take within which it has ended, also on a machine that is busy
/// with other tests.
const SLACK: Duration = Duration::from_secs(10);

fn pool() -> Pool {
    let limits = Limits {
        cpu: Duration::from_millis(300),
        ..Limits::default()
    };
    Pool::new(Options {
        program: env!("CARGO_BIN_EXE_script-worker").into(),
        limits,
        processes: 4,
    })
}

fn asker(key: &str) -> Asker<'_> {
    Asker {
        environment: "env",
        key,
    }
}

fn one(session: &mut Session) {
    let called = session.call(
        &Script::new("const transform = (input) => input + 1"),
        "0",
        "{}",
    );
    assert_eq!(called.output, Ok(Some("1".to_owned())));
}

#[tokio::test]
async fn a_worker_serves_many_scripts_and_knows_those_it_has_forgotten() {
    let pool = pool();
    let call = async |number: u32| {
        let script = Script::new(format!(
            "const transform = (input, context) => [input, context.x, {number}]"
        ));
        let mut session = pool.lease(asker("flow")).await;
        let called = session.call(&script, "7", r#"{"x":"y"}"#);
        assert_eq!(called.output, Ok(Some(format!("[7,\"y\",{number}]"))));
        session.process_id()
    };
    let first = call(0).await;
    for number in 1..50 {
        call(number).await;
    }
    // It is told the code again.
    assert_eq!(call(0).await, first);
}

#[tokio::test]
async fn code_is_checked() {
    let pool = pool();
    assert_eq!(
        pool.check(
            asker("a"),
            &Script::new("function transform() { return 1 }")
        )
        .await,
        Ok(())
    );
    let failure = pool
        .check(
            asker("a"),
            &Script::new("function transform() {\n  retur 1\n}"),
        )
        .await
        .unwrap_err();
    assert_eq!(failure.kind, Kind::Code);
    assert_eq!(failure.position.map(|position| position.line), Some(2));
    let failure = pool
        .check(
            asker("a"),
            &Script::new("while (true);\nfunction transform() {}"),
        )
        .await
        .unwrap_err();
    assert_eq!(failure.kind, Kind::Time);
}

#[tokio::test]
async fn built_in_functions_that_do_not_stop_end_with_their_worker() {
    let pool = pool();
    for body in [
        "new Array(1e9).join('x')",
        "Array.prototype.concat.apply([], new Array(6e4).fill(new Array(1e4).fill(0)))",
        "new Array(4e9).indexOf(1)",
    ] {
        let script = Script::new(format!(
            "function transform() {{ for (;;) {{ try {{ {body} }} catch (e) {{}} }} }}"
        ));
        let mut session = pool.lease(asker("hostile")).await;
        let begun = Instant::now();
        let failure = session.call(&script, "{}", "{}").output.unwrap_err();
        assert!(
            begun.elapsed() < Duration::from_millis(300) + SLACK,
            "{body}: {:?}",
            begun.elapsed()
        );
        assert!(
            matches!(failure.kind, Kind::Time | Kind::Memory | Kind::Unavailable),
            "{body}: {failure}"
        );
        drop(session);
        one(&mut pool.lease(asker("hostile")).await);
    }
}

#[tokio::test]
async fn the_calls_of_a_session_share_its_time() {
    let pool = pool();
    let script = Script::new(
        "function transform() { const end = Date.now() + 100; while (Date.now() < end); return 1 }",
    );
    let mut session = pool.lease(asker("flow")).await;
    let calls = (0..100)
        .map(|_| session.call(&script, "{}", "{}").output)
        .take_while(Result::is_ok)
        .count();
    assert!(
        calls < 20,
        "{calls} calls of a tenth of a second in three tenths"
    );
}

#[tokio::test]
async fn a_killed_worker_is_replaced() {
    let pool = pool();
    let mut session = pool.lease(asker("flow")).await;
    one(&mut session);
    let id = session.process_id().unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", &id.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    one(&mut session);
    assert_ne!(session.process_id(), Some(id));
}

#[tokio::test]
async fn a_worker_has_no_environment_and_no_files_but_its_pipes() {
    let pool = pool();
    let mut session = pool.lease(asker("flow")).await;
    one(&mut session);
    let folder = std::path::PathBuf::from(format!("/proc/{}", session.process_id().unwrap()));
    if !folder.exists() {
        return;
    }
    let limits = std::fs::read_to_string(folder.join("limits")).unwrap();
    let of = |name: &str| {
        limits
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(of("Max open files").contains(" 0 "), "{limits}");
    assert!(of("Max file size").contains(" 0 "), "{limits}");
    assert!(
        !of("Max cpu time").contains("unlimited  unlimited")
            && !of("Max data size").starts_with("Max data size             unlimited"),
        "{limits}"
    );
    // The rest of a process whose memory is closed is root's to see.
    let Ok(environment) = std::fs::read(folder.join("environ")) else {
        return;
    };
    assert_eq!(environment, b"");
    let open = std::fs::read_dir(folder.join("fd")).unwrap().count();
    // What the service was started with, and does not know of, is the only other thing that it
    // hands on.
    let handed_on = std::fs::read_dir("/proc/self/fdinfo")
        .unwrap()
        .filter(|info| {
            let path = info.as_ref().unwrap().path();
            let number: u32 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let info = std::fs::read_to_string(path).unwrap_or_default();
            let flags = info
                .lines()
                .find_map(|line| line.strip_prefix("flags:"))
                .unwrap_or("02000000");
            number > 2 && u64::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 == 0
        });
    assert_eq!(
        open,
        3 + handed_on.count(),
        "input, output and nothing to write errors to"
    );
    assert_eq!(
        std::fs::read_link(folder.join("fd/2")).unwrap(),
        std::path::Path::new("/dev/null")
    );
    assert_eq!(
        std::fs::read_link(folder.join("cwd")).unwrap(),
        std::path::Path::new("/")
    );
}

#[tokio::test]
async fn a_worker_ends_with_the_service() {
    let pool = pool();
    let mut session = pool.lease(asker("flow")).await;
    one(&mut session);
    let folder = std::path::PathBuf::from(format!("/proc/{}", session.process_id().unwrap()));
    drop(session);
    drop(pool);
    assert!(!folder.exists());
}

#[tokio::test]
async fn large_documents_pass() {
    let pool = pool();
    let text = "x".repeat(4 << 20);
    let called = pool.lease(asker("flow")).await.call(
        &Script::new("const transform = (input) => input"),
        &format!("\"{text}\""),
        "{}",
    );
    assert_eq!(
        called.output.unwrap().map(|output| output.len()),
        Some(text.len() + 2)
    );
}
