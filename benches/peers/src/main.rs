//! Two tasks by Kanat and by other crates, from bytes to bytes: the mapping of eleven fields of an
//! order, and the totals of its lines. Prints the time of each, what it allocates, and the digits
//! that it gets wrong. `docs/benchmarks.md` has the command that runs it.

mod digits;
mod jaq;
mod jsonata;
mod kanat;
mod measure;
mod minijinja;
mod vrl;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use measure::Peer;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// About a kilobyte, byte for byte as `crates/bench` posts it: no newline ends it.
const ORDER: &str = include_str!("order.json");

/// Twenty lines with prices and quantities, in four categories.
const LINES: &str = include_str!("lines.json");

fn main() {
    let expected = parse(include_str!("mapped.json").as_bytes()).expect("the file is JSON");
    let mappings = [
        Peer::new("kanat", kanat::mapping()),
        Peer::new("vrl", vrl::program(vrl::MAPPING)),
        Peer::new("minijinja", minijinja::mapping()),
        Peer::new("jaq", jaq::filter(jaq::MAPPING)),
    ];
    for peer in &mappings {
        let mapped = (peer.run)(ORDER.as_bytes());
        assert!(
            parse(&mapped).as_ref() == Some(&expected),
            "{} does not do the same work: {}",
            peer.name,
            String::from_utf8_lossy(&mapped)
        );
    }
    println!("eleven fields of an order, {} bytes", ORDER.len());
    measure::print(&mappings, ORDER.as_bytes());

    let totals = [
        Peer::new("kanat", kanat::totals()),
        Peer::new("jsonata", jsonata::totals()),
        Peer::new("vrl", vrl::program(vrl::TOTALS)),
        Peer::new("jaq", jaq::filter(jaq::TOTALS)),
    ];
    println!("totals of twenty lines, filtered and grouped, {} bytes", LINES.len());
    measure::print(&totals, LINES.as_bytes());
    digits::print(&totals, LINES.as_bytes());
}

fn parse(json: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_slice(json).ok()
}
