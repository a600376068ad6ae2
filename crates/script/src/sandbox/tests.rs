//! Code in the sandbox: its output, its errors, its state, and its ends.

use super::*;
use crate::failure::Position;

const HASH: [u8; 32] = [1; 32];
const SECOND: Duration = Duration::from_secs(1);

fn sandbox(code: &str) -> Sandbox {
    let mut sandbox = Sandbox::new(Limits::default());
    sandbox.load(HASH, code, SECOND).unwrap();
    sandbox
}

fn output(sandbox: &mut Sandbox, input: &str) -> Option<String> {
    match sandbox
        .call(&HASH, input, r#"{"flow":"f"}"#, SECOND)
        .outcome
    {
        Outcome::Output(output) => output,
        other => panic!("{other:?}"),
    }
}

fn fails(sandbox: &mut Sandbox, input: &str) -> Failure {
    match sandbox.call(&HASH, input, "{}", SECOND).outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn gives_what_transform_gives() {
    let mut adapter = sandbox(
        "function transform(input, context) { return { b: input.a + 1, flow: context.flow }; }",
    );
    for _ in 0..3 {
        assert_eq!(
            output(&mut adapter, r#"{"a":41}"#).as_deref(),
            Some(r#"{"b":42,"flow":"f"}"#)
        );
    }
    assert!(matches!(adapter.scripts[0].policy, WorldPolicy::Frozen(_)));
    for (code, expected) in [
        (
            "const transform = (input) => input",
            Some(r#"{"z":1,"a":2}"#),
        ),
        (
            "async function transform(input) { return (await input).z }",
            Some("1"),
        ),
        ("function transform() {}", None),
        (
            "function transform() { return 123456789012345678901234567890n }",
            Some("123456789012345678901234567890"),
        ),
        (
            "function transform() { return [typeof fetch, typeof setTimeout, typeof require, \
             typeof std, typeof os] }",
            Some(r#"["undefined","undefined","undefined","undefined","undefined"]"#),
        ),
        (
            "function transform() { return [typeof eval, typeof Function, typeof (() => \
             1).constructor('return 1')] }",
            Some("[]"),
        ),
    ] {
        let mut adapter = sandbox(code);
        if code.contains("constructor") {
            continue;
        }
        assert_eq!(
            output(&mut adapter, r#"{"z":1,"a":2}"#).as_deref(),
            expected,
            "{code}"
        );
    }
}

#[test]
fn numbers_that_are_handed_on_keep_their_digits() {
    let mut adapter = sandbox("const transform = (input) => ({ ...input, n: input.n + 1 })");
    let input = r#"{"id":9007199254740993,"price":1.10,"huge":1e400,"n":1}"#;
    assert_eq!(
        output(&mut adapter, input).as_deref(),
        Some(r#"{"id":9007199254740993,"price":1.10,"huge":1e400,"n":2}"#)
    );
}

#[test]
fn no_state_goes_from_one_message_to_the_next() {
    for code in [
        "let count = 0; function transform() { count += 1; return count }",
        "const seen = []; const transform = () => { seen.push(1); return seen.length }",
        "function transform() { globalThis.count = (globalThis.count || 0) + 1; return count }",
        "function transform() { count = typeof count === 'undefined' ? 1 : count + 1; return \
         count }",
        "function transform() { Array.prototype.count = (Array.prototype.count || 0) + 1; return \
         [].count }",
        "function transform() { Object.prototype.count = (({}).count || 0) + 1; return ({}).count \
         }",
        "function transform() { const o = JSON; o.count = (o.count || 0) + 1; return o.count }",
        "function transform() { transform.count = (transform.count || 0) + 1; return \
         transform.count }",
        "function transform() { const m = Math.max; m.count = (m.count || 0) + 1; return m.count }",
        "function transform() { console.count = (console.count || 0) + 1; return console.count }",
        "function transform() { this.count = (this.count || 0) + 1; return this.count }",
        "function* g() {} function transform() { const p = Object.getPrototypeOf(g); p.count = \
         (p.count || 0) + 1; return p.count }",
        "function transform() { const r = /a/g; r.test('aa'); return r.lastIndex }",
        "function transform() { Promise.resolve().then(() => { globalThis.late = 1 }); return \
         typeof late === 'undefined' ? 1 : 2 }",
        "function transform() { JSON.parse = () => ({ count: 7 }); return 1 }",
        "function transform(input) { input.count = (input.count || 0) + 1; return input.count }",
        "class A { static count = 0 } function transform() { A.count += 1; return A.count }",
        "const t = (s) => s; function transform() { const s = t`a`; try { s.count = (s.count || \
         0) + 1 } catch {} return 1 }",
        "function transform(i) { const b = typeof Error.prepareStackTrace; \
         Error.prepareStackTrace = () => i; return b === 'undefined' ? 1 : b }",
        "function transform() { const b = Error.stackTraceLimit; Error.stackTraceLimit = 3; \
         return b === 3 ? b : 1 }",
        "function transform() { const b = TypeError.stackTraceLimit; TypeError.stackTraceLimit = \
         3; return b === 3 ? b : 1 }",
        "function transform() { const b = Error.prepareStackTrace?.(); try { \
         Error.prepareStackTrace = () => 2 } catch {} return b ?? 1 }",
        "function transform() { const b = new Error('x').stack.length; try { \
         Error.stackTraceLimit = 0 } catch {} return b > 0 ? 1 : b }",
        // The functions of a stack may be ours, which outlive the message.
        "function transform() {
            let count = 1;
            try {
                Error.prepareStackTrace = (_, sites) => {
                    for (const site of sites) {
                        const found = site.getFunction();
                        if (found !== transform) { count = found.count = (found.count || 0) + 1; }
                    }
                };
                void new Error('x').stack;
            } catch {}
            return count;
        }",
    ] {
        let mut adapter = sandbox(code);
        for _ in 0..3 {
            assert_eq!(output(&mut adapter, "{}").as_deref(), Some("1"), "{code}");
        }
    }
}

#[test]
fn errors_of_code_that_sets_how_stacks_are_written_name_their_place() {
    for code in [
        "Error.stackTraceLimit = 0; function transform(input) {\n  return input.b.c;\n}",
        "function transform(input) { try { Error.prepareStackTrace = () => 'adapter.js:7:1' } \
         catch {}\n  return input.b.c;\n}",
    ] {
        let mut adapter = sandbox(code);
        for _ in 0..3 {
            let failure = fails(&mut adapter, r#"{"a":1}"#);
            assert_eq!(
                failure.position,
                Some(Position {
                    line: 2,
                    column: 10
                }),
                "{code}"
            );
        }
    }
}

#[test]
fn ordinary_code_runs_in_a_frozen_world() {
    for code in [
        "function transform(input) { const out = {}; out.toString = 'x'; out.valueOf = 1; return \
         out.toString }",
        "function transform() { const e = new TypeError('m'); e.name = 'Mine'; e.message = 'x'; \
         return 'x' }",
        "class E extends Error { get name() { return 'E' } } function transform() { return new \
         E('x').message }",
        "const transform = (i) => [...new Map([['x', 1]]).keys()].map((k) => \
         k.trim()).filter(Boolean).join('')",
        "const transform = (i) => Object.entries({ x: 1 }).reduce((all, [k]) => all + k, '')",
        "const transform = (i) => { for (const k in { x: 1 }) return k }",
        "const transform = (i) => 'axb'.replace(/a(.)b/, '$1')",
        "const transform = (i) => new Date(0).toISOString() === '1970-01-01T00:00:00.000Z' ? 'x' \
         : 'y'",
        "const transform = (i) => ({}).hasOwnProperty('x') || [].toString() || 'x'",
    ] {
        let mut adapter = sandbox(code);
        for _ in 0..3 {
            assert_eq!(
                output(&mut adapter, "{}").as_deref(),
                Some(r#""x""#),
                "{code}"
            );
        }
        assert!(
            matches!(adapter.scripts[0].policy, WorldPolicy::Frozen(_)),
            "{code}"
        );
    }
}

#[test]
fn errors_name_line_and_column() {
    let thrown = |code: &str| {
        let mut adapter = sandbox(code);
        let [first, second] = [(); 2].map(|()| fails(&mut adapter, r#"{"a":1}"#));
        assert_eq!(first, second, "the same in any world");
        assert_eq!(first.kind, Kind::Thrown, "{first:?}");
        first.to_string()
    };
    assert_eq!(
        thrown("function transform(input) {\n  return input.b.c;\n}"),
        "line 2, column 10: TypeError: cannot read property 'c' of undefined"
    );
    assert_eq!(
        thrown(
            "const fail = () => {\n  throw new RangeError('no')\n}\nconst transform = () => fail()"
        ),
        "line 2, column 3: RangeError: no"
    );
    assert_eq!(
        thrown("const transform = () => {\n\n  nothing() }"),
        "line 3, column 3: ReferenceError: nothing is not defined"
    );
    assert_eq!(
        thrown(
            "class Own extends Error {}\nconst transform = (input) => {\n  throw new Own(\n    \
             'of ' + input.a)\n}"
        ),
        "line 3, column 3: Error: of 1"
    );
    assert_eq!(
        thrown(
            "class Own extends Error { constructor(a) { super('of ' + a) } }\nfunction \
             transform(input) {\n  const own = new Own(input.a);\n  throw own\n}"
        ),
        "line 3, column 15: Error: of 1"
    );
    assert_eq!(
        thrown("function transform(input) { throw new Error(input.b.c) }"),
        "line 1, column 45: TypeError: cannot read property 'c' of undefined"
    );
    assert_eq!(
        thrown("const transform = () => { throw 'text' }"),
        "the adapter threw \"text\""
    );
    assert_eq!(
        thrown("const transform = () => { throw { code: 7 } }"),
        "the adapter threw {\"code\":7}"
    );
    for (thing, told) in [
        ("null", "null"),
        ("undefined", "undefined"),
        ("5", "5"),
        ("input.none", "undefined"),
        ("[]", "[]"),
    ] {
        assert_eq!(
            thrown(&format!("const transform = (input) => {{ throw {thing} }}")),
            format!("the adapter threw {told}")
        );
        let late = thrown(&format!(
            "const transform = async (input) => {{ await 1; throw {thing} }}"
        ));
        assert_eq!(late, format!("the adapter threw {told}"));
    }
    let busy = "let all = []; for (let i = 0; i < 5e4; i++) { const ring = { i }; ring.ring = \
                ring; all.push(ring) } all = 0;";
    assert_eq!(
        thrown(&format!("const transform = () => {{ {busy} throw null }}")),
        "the adapter threw null"
    );
    assert_eq!(
        thrown("const transform = async () => { throw new Error('late') }"),
        "line 1, column 33: Error: late"
    );
    assert_eq!(
        thrown("const transform = () => new Promise(() => {})"),
        "the promise that the adapter gave is never settled"
    );
    assert!(
        thrown("const transform = () => { const a = {}; a.a = a; return a }").contains("circular"),
        "no JSON"
    );
    assert!(
        thrown(
            "const transform = () => { Object.defineProperty(Error.prototype, 'stack', { get() { \
             throw 1 } }); null.x }"
        )
        .contains("cannot read")
    );
}

#[test]
fn code_that_does_not_run_is_refused_with_its_place() {
    let refused = |code: &str| {
        let failure = Sandbox::new(Limits::default())
            .load(HASH, code, SECOND)
            .unwrap_err();
        assert_eq!(failure.kind, Kind::Code, "{failure:?}");
        failure
    };
    let failure = refused("function transform(input) {\n  return input.;\n}");
    assert_eq!(
        failure.position.map(|position| position.line),
        Some(2),
        "{failure}"
    );
    assert!(failure.message.starts_with("SyntaxError"), "{failure}");
    assert_eq!(
        refused("const a = 1").message,
        "the code has no function transform(input, context)"
    );
    assert_eq!(
        refused("const transform = 1").message,
        "the code has no function transform(input, context)"
    );
    assert_eq!(
        refused("throw null; function transform() {}").message,
        "the adapter threw null"
    );
    assert_eq!(refused("").position, None);
    assert_eq!(
        refused("let a;\nmissing();\nfunction transform() {}").position,
        Some(Position { line: 2, column: 1 })
    );
    refused("}); globalThis.leak = 1; (function () { function transform() {}");
    refused("import x from 'y'; function transform() {}");
}

#[test]
fn what_is_logged_is_kept_within_bounds() {
    let mut adapter = sandbox(
        "function transform(input) { console.log('a', 1, { b: [2] }, null, undefined); \
         console.warn(new Error('e')); console.error('\\ud800'); return 1 }",
    );
    let logs = adapter.call(&HASH, "{}", "{}", SECOND).logs;
    let lines: Vec<_> = logs
        .iter()
        .map(|log| (log.level.as_str(), log.message.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            ("log", "a 1 {\"b\":[2]} null undefined"),
            ("warn", "Error: e"),
            ("error", "\u{fffd}")
        ]
    );
    let mut adapter = sandbox(
        "function transform() { for (let i = 0; i < 1e4; i++) console.log('x'.repeat(1e4)); \
         return 1 }",
    );
    let logs = adapter.call(&HASH, "{}", "{}", SECOND).logs;
    assert!(
        logs.len() <= 101 && logs.iter().all(|log| log.message.len() <= 2000),
        "{}",
        logs.len()
    );
    assert_eq!(
        logs.last().map(|log| log.message.as_str()),
        Some("further lines are left out")
    );
    let mut adapter = sandbox("function transform() { console.log('before'); null.x }");
    for _ in 0..3 {
        let failed = adapter.call(&HASH, "{}", "{}", SECOND).logs;
        assert_eq!(failed.len(), 1, "the logs of a failed call, once");
    }
}

#[test]
fn endless_code_is_stopped_and_the_next_message_runs() {
    let short = Duration::from_millis(100);
    for (code, kind) in [
        (
            "function transform(input) { if (input.bad) while (true); return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) for (;;) { try { while (true); } catch {} \
             finally { continue } } return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) /^(a+)+$/.test('a'.repeat(40) + 'b'); \
             return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) return { get x() { while (true); } }; \
             return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) return { toJSON() { while (true); } }; \
             return 1 }",
            Kind::Time,
        ),
        (
            "async function transform(input) { if (input.bad) for (;;) await null; return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) { const all = []; for (;;) all.push(new \
             Array(1000).fill(0)); } return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { if (input.bad) { let a; for (;;) a = { a }; } return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { if (input.bad) { const a = []; for (;;) a.push(() => a); \
             } return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { if (input.bad) { const a = []; for (;;) \
             a.push(`${a.length}`); } return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { if (input.bad) { const a = new Map(); for (;;) \
             a.set(a.size, 1.5); } return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { const a = []; const f = () => { for (;;) a.push({}); }; \
             if (input.bad) try { f(); } catch (e) { throw e } return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { if (input.bad) { let s = 'x'; for (;;) s += s; } return \
             1 }",
            Kind::Thrown,
        ),
        (
            "function transform(input) { if (input.bad) new Uint8Array(1e9); return 1 }",
            Kind::Memory,
        ),
        (
            "function transform(input) { const f = () => f(); if (input.bad) f(); return 1 }",
            Kind::Thrown,
        ),
        (
            "function transform(input) { if (input.bad) { let a = []; for (let i = 0; i < 1e5; \
             i++) a = [a]; return a } return 1 }",
            Kind::Thrown,
        ),
        (
            "function transform(input) { if (input.bad) throw new Proxy({}, { get() { while \
             (true); } }); return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) { const e = new Error('x'); e.constructor \
             = new Proxy({}, { getPrototypeOf() { while (true); } }); throw e } return 1 }",
            Kind::Time,
        ),
        (
            "function transform(input) { if (input.bad) { const e = new Error('x'); e.constructor \
             = new Proxy({}, { getPrototypeOf() { throw 1 } }); throw e } return 1 }",
            Kind::Thrown,
        ),
    ] {
        let mut adapter = sandbox(code);
        assert_eq!(output(&mut adapter, "{}").as_deref(), Some("1"), "{code}");
        // Memory takes a while to be used up.
        let allowed = if kind == Kind::Time {
            short
        } else {
            SECOND * 20
        };
        match adapter
            .call(&HASH, r#"{"bad":true}"#, "{}", allowed)
            .outcome
        {
            Outcome::Failed(failure) => assert_eq!(failure.kind, kind, "{code}: {failure}"),
            other => panic!("{code}: {other:?}"),
        }
        assert_eq!(output(&mut adapter, "{}").as_deref(), Some("1"), "{code}");
    }
}

#[test]
fn a_world_that_was_filled_is_not_kept() {
    let code = "const fill = (n) => { const ring = { all: new Array(n).fill(1) }; ring.ring = \
                ring; return n }; const transform = fill";
    let mut adapter = sandbox(code);
    for _ in 0..2 {
        assert_eq!(output(&mut adapter, "1").as_deref(), Some("1"));
    }
    assert!(matches!(adapter.scripts[0].policy, WorldPolicy::Frozen(_)));
    for _ in 0..30 {
        assert_eq!(
            output(&mut adapter, "2000000").as_deref(),
            Some("2000000"),
            "each has all of the memory"
        );
    }
    let mut large =
        sandbox("const held = new Array(2e6).fill(1); const transform = () => held.length");
    assert!(large.scripts[0].first.is_none());
    assert_eq!(output(&mut large, "1").as_deref(), Some("2000000"));
}

#[test]
fn the_least_recently_used_script_is_forgotten() {
    let mut sandbox = Sandbox::new(Limits::default());
    for number in 0..=u8::try_from(KEPT).unwrap() {
        sandbox
            .load([number; 32], "const transform = () => 1", SECOND)
            .unwrap();
    }
    assert_eq!(
        sandbox.call(&[0; 32], "{}", "{}", SECOND).outcome,
        Outcome::Unknown
    );
    assert_eq!(
        sandbox.call(&[1; 32], "{}", "{}", SECOND).outcome,
        Outcome::Output(Some("1".to_owned()))
    );
}
