//! Digits of totals, beside the exact ones.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::measure::Peer;

/// Exact totals by category, calculated from the file on paper.
const EXACT: [(&str, &str); 4] = [
    ("gift", "216.54"),
    ("ink", "431.645"),
    ("office", "1120.38"),
    ("paper", "215.655"),
];

#[derive(Deserialize)]
struct Output {
    totals: Vec<Total>,
}

#[derive(Deserialize)]
struct Total {
    category: String,
    /// As it was written.
    total: Box<RawValue>,
}

/// Prints the totals of each peer in the order of their categories.
pub fn print(peers: &[Peer], document: &[u8]) {
    let names: Vec<_> = EXACT.iter().map(|(name, _)| *name).collect();
    let exact: Vec<_> = EXACT.iter().map(|(_, digits)| *digits).collect();
    println!("| total | {} | wrong |", names.join(" | "));
    println!("|{}", " --- |".repeat(EXACT.len() + 2));
    println!("| exact | {} | |", exact.join(" | "));
    for peer in peers {
        let output = (peer.run)(document);
        let output: Output = serde_json::from_slice(&output).expect("the output has totals");
        let totals: BTreeMap<_, _> = output
            .totals
            .into_iter()
            .map(|total| (total.category, total.total.get().to_owned()))
            .collect();
        let found: Vec<_> = names.iter().map(|name| totals[*name].as_str()).collect();
        let wrong = found.iter().zip(&exact).filter(|(found, exact)| found != exact);
        println!("| {} | {} | {} |", peer.name, found.join(" | "), wrong.count());
    }
}
