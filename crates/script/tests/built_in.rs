//! Built-in functions that do not stop when they are told to. In a process of its own, whose children are this test's workers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::time::Duration;

use kanat_script::{Kind, Limits, Options, Pool, Script};

const LIMIT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn they_end_with_their_worker() {
    let limits = Limits { cpu: LIMIT, ..Limits::default() };
    let pool = Pool::new(Options { program: env!("CARGO_BIN_EXE_script-worker").into(), limits, processes: 4 });
    for body in [
        "new Array(1e9).join('x')",
        "Array.prototype.concat.apply([], new Array(6e4).fill(new Array(1e4).fill(0)))",
        "new Array(4e9).indexOf(1)",
    ] {
        let script = Script::new(format!("function transform() {{ for (;;) {{ try {{ {body} }} catch (e) {{}} }} }}"));
        let mut session = pool.lease("hostile").await;
        let before = time_of_ended_workers();
        let failure = session.call(&script, "{}", "{}").output.unwrap_err();
        // How long a busy machine lets it wait is no matter of the code's: what counts is its time on a core.
        let took = time_of_ended_workers() - before;
        assert!(took < LIMIT + Duration::from_secs(1), "{body}: {took:?} on a core");
        assert!(matches!(failure.kind, Kind::Time | Kind::Memory | Kind::Unavailable), "{body}: {failure}");
        drop(session);
        let mut next = pool.lease("hostile").await;
        let called = next.call(&Script::new("const transform = (input) => input + 1"), "0", "{}");
        assert_eq!(called.output, Ok(Some("1".to_owned())));
    }
}

fn time_of_ended_workers() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, in parentheses: fields 16 and 17 of the manual, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap().split_ascii_whitespace();
    let ticks: u64 = fields.skip(13).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
