//! Times and allocations of peers that do one task.

use std::hint::black_box;
use std::time::Instant;

use stats_alloc::Region;

/// Rounds, in each of which every peer has its turn: what slows the machine for a while slows all.
const ROUNDS: usize = 200;

/// Repetitions of a peer in one round.
const IN_A_ROW: u32 = 200;

/// A crate that does a task.
pub struct Peer {
    pub name: &'static str,
    pub run: Box<dyn Fn(&[u8]) -> Vec<u8>>,
}

impl Peer {
    pub fn new(name: &'static str, run: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Self {
        Self {
            name,
            run: Box::new(run),
        }
    }

    /// Returns the microseconds of one repetition.
    fn time(&self, document: &[u8]) -> f64 {
        let begun = Instant::now();
        for _ in 0..IN_A_ROW {
            black_box((self.run)(black_box(document)));
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(IN_A_ROW)
    }
}

/// Prints a row for each peer: the median of its rounds, and what one repetition allocates.
pub fn print(peers: &[Peer], document: &[u8]) {
    let mut times = vec![Vec::new(); peers.len()];
    for _ in 0..ROUNDS {
        for (peer, times) in peers.iter().zip(&mut times) {
            times.push(peer.time(document));
        }
    }
    println!("| crate | median | allocations | bytes |\n| --- | --- | --- | --- |");
    for (peer, mut times) in peers.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        let region = Region::new(crate::ALLOCATOR);
        drop((peer.run)(document));
        let change = region.change();
        let count = change.allocations + change.reallocations;
        // A vector that grows counts with its last size.
        let bytes = change.bytes_allocated;
        println!("| {} | {median:.2} us | {count} | {bytes} |", peer.name);
    }
    println!();
}
