//! The mapping of eleven fields of an order, by Kanat and by other crates: the same order in, the
//! same document out, from bytes to bytes, and what each allocates for it. `docs/benchmarks.md` has
//! the command that runs it.

mod jaq;
mod kanat;
mod minijinja;
mod vrl;

use divan::{AllocProfiler, Bencher};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// About a kilobyte, byte for byte as `crates/bench` posts it: no newline ends it.
const ORDER: &str = include_str!("order.json");

fn main() {
    let expected: serde_json::Value =
        serde_json::from_str(include_str!("mapped.json")).expect("the file is JSON");
    let mut differ = false;
    for (name, mapped) in [
        ("kanat", kanat::mapping()(ORDER.as_bytes())),
        ("vrl", vrl::mapping()(ORDER.as_bytes())),
        ("jaq", jaq::mapping()(ORDER.as_bytes())),
        ("minijinja", minijinja::mapping()(ORDER.as_bytes())),
    ] {
        let mapped: Option<serde_json::Value> = serde_json::from_slice(&mapped).ok();
        if mapped.as_ref() != Some(&expected) {
            eprintln!("{name} does not do the same work: {mapped:?}");
            differ = true;
        }
    }
    if differ {
        std::process::exit(1);
    }
    divan::main();
}

fn map(bencher: Bencher<'_, '_>, mapping: impl Fn(&[u8]) -> Vec<u8>) {
    bencher.bench_local(|| mapping(divan::black_box(ORDER.as_bytes())));
}

#[divan::bench(name = "kanat")]
fn by_kanat(bencher: Bencher<'_, '_>) {
    map(bencher, kanat::mapping());
}

#[divan::bench(name = "vrl")]
fn by_vrl(bencher: Bencher<'_, '_>) {
    map(bencher, vrl::mapping());
}

#[divan::bench(name = "jaq")]
fn by_jaq(bencher: Bencher<'_, '_>) {
    map(bencher, jaq::mapping());
}

#[divan::bench(name = "minijinja")]
fn by_minijinja(bencher: Bencher<'_, '_>) {
    map(bencher, minijinja::mapping());
}
