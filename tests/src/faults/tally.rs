//! Outcomes of the messages of a run, and their row of the table.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::workload::{Ack, Arrival, ONCE, ORDERED, Source};

/// The counts of one fault.
#[derive(Debug, Default)]
pub struct Tally {
    /// How often the fault was caused.
    pub rounds: usize,
    /// Acks that were checked. A loss of power is checked by images, and each of them has its acks.
    pub acked: usize,
    /// Acked messages that are neither in the log nor at the target, with their states.
    pub lost: Vec<String>,
    /// Messages that ended otherwise than as delivered, with their states. The target takes
    /// everything in the end.
    pub given_up: Vec<String>,
    /// Deliveries of one message beyond the first, and messages of one idempotency key beyond the
    /// first.
    pub twice: usize,
    /// Messages that were delivered after a later one of their ordering key.
    pub out_of_order: usize,
    /// From the end of each fault until messages were acked again.
    pub recovery: Vec<Duration>,
}

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    pub fault: &'static str,
    pub seed: u64,
    pub tally: Tally,
    /// Why the fault could not be caused on this machine.
    pub skipped: Option<String>,
    /// Why the row is not as it should be.
    pub problem: Option<String>,
    /// Folder of the files of the run, if they are kept.
    pub folder: Option<PathBuf>,
}

impl Tally {
    /// Holds acks against the messages of the log and what the target took since the last crash.
    /// `delivered` are the ids that it has taken at any time.
    pub fn count(
        &mut self,
        acks: &[Ack],
        messages: &HashMap<String, Value>,
        arrivals: &[Arrival],
        delivered: &HashSet<String>,
    ) {
        self.acked += acks.len();
        for ack in acks {
            let status = messages
                .get(&ack.id)
                .map(|message| message["status"].as_str().unwrap_or_default());
            match status {
                None => self
                    .lost
                    .push(format!("{} is not in the log ({:?})", ack.id, ack.source)),
                Some("delivered") if !delivered.contains(&ack.id) => {
                    self.lost.push(format!(
                        "{} is delivered and did not arrive ({:?})",
                        ack.id, ack.source
                    ));
                }
                Some(_) => {}
            }
        }
        for (id, message) in messages
            .iter()
            .filter(|(_, message)| message["status"] != "delivered")
        {
            self.given_up
                .push(format!("{id}: {} {}", message["status"], message["error"]));
        }
        self.twice += twice(arrivals);
        self.out_of_order += out_of_order(arrivals);
    }
}

fn twice(arrivals: &[Arrival]) -> usize {
    let ids: HashSet<&str> = arrivals.iter().map(|arrival| arrival.id.as_str()).collect();
    let mut of_source: HashMap<&Source, HashSet<&str>> = HashMap::new();
    for arrival in arrivals
        .iter()
        .filter(|arrival| arrival.source.flow == ONCE)
    {
        of_source
            .entry(&arrival.source)
            .or_default()
            .insert(&arrival.id);
    }
    arrivals.len() - ids.len() + of_source.values().map(|ids| ids.len() - 1).sum::<usize>()
}

fn out_of_order(arrivals: &[Arrival]) -> usize {
    let mut latest: HashMap<&str, u64> = HashMap::new();
    let mut seen = HashSet::new();
    let mut count = 0;
    for Arrival { source, .. } in arrivals
        .iter()
        .filter(|arrival| arrival.source.flow == ORDERED)
    {
        if !seen.insert(source) {
            continue;
        }
        let latest = latest.entry(&source.key).or_default();
        count += usize::from(source.number < *latest);
        *latest = source.number.max(*latest);
    }
    count
}

/// Returns the table of these rows, and under it what is wrong.
pub fn table(rows: &[Row]) -> String {
    let mut text = "\
| fault | rounds | acked | lost | given up | twice | out of order | recovery, median | max | seed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"
    .to_owned();
    for Row {
        fault,
        seed,
        tally,
        skipped,
        ..
    } in rows
    {
        if skipped.is_some() {
            text += &format!("| {fault} | skipped | - | - | - | - | - | - | - | {seed} |\n");
            continue;
        }
        let Tally {
            rounds,
            acked,
            lost,
            given_up,
            twice,
            out_of_order,
            recovery,
        } = tally;
        let lost = lost.len();
        let given_up = given_up.len();
        let mut recovery = recovery.clone();
        recovery.sort_unstable();
        let seconds = |time: Option<&Duration>| {
            time.map_or("-".to_owned(), |time| {
                format!("{:.2} s", time.as_secs_f64())
            })
        };
        let median = seconds(recovery.get(recovery.len() / 2));
        let most = seconds(recovery.last());
        text += &format!(
            "| {fault} | {rounds} | {acked} | {lost} | {given_up} | {twice} | {out_of_order} | \
             {median} | {most} | {seed} |\n"
        );
    }
    for Row {
        fault,
        skipped,
        problem,
        folder,
        ..
    } in rows
    {
        if let Some(reason) = skipped {
            text += &format!("\n{fault}: skipped, {reason}\n");
        }
        if let Some(problem) = problem {
            let folder = folder.as_ref().map_or(String::new(), |folder| {
                format!("; its files are in {}", folder.display())
            });
            text += &format!("\n{fault}: FAILED, {problem}{folder}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arrival(id: &str, flow: &str, number: u64) -> Arrival {
        Arrival {
            id: id.to_owned(),
            source: source(flow, number),
        }
    }

    fn source(flow: &str, number: u64) -> Source {
        Source {
            flow: flow.to_owned(),
            key: "a".to_owned(),
            number,
        }
    }

    #[test]
    fn counts_what_is_missing_what_was_given_up_and_what_came_twice_or_late() {
        let acks = ["kept", "missing", "pretended"].map(|id| Ack {
            id: id.to_owned(),
            source: source(ORDERED, 1),
            at: 0,
        });
        let delivered = json!({ "status": "delivered" });
        let messages = [
            ("kept", delivered.clone()),
            ("pretended", delivered),
            ("dead", json!({ "status": "dead_letter" })),
        ];
        let messages = messages
            .map(|(id, message)| (id.to_owned(), message))
            .into();
        let arrivals = [
            arrival("kept", ORDERED, 1),
            arrival("kept", ORDERED, 1),
            arrival("third", ORDERED, 3),
            arrival("second", ORDERED, 2),
            arrival("other", ONCE, 1),
            arrival("another", ONCE, 1),
        ];
        let mut tally = Tally::default();
        tally.count(
            &acks,
            &messages,
            &arrivals,
            &HashSet::from(["kept".to_owned()]),
        );
        assert_eq!(tally.acked, 3);
        assert_eq!(tally.lost.len(), 2);
        assert_eq!(tally.given_up.len(), 1);
        assert_eq!(tally.twice, 2);
        assert_eq!(tally.out_of_order, 1);
    }

    #[test]
    fn a_row_shows_median_and_longest_recovery_and_the_faults() {
        let recovery = [3, 1, 2].map(Duration::from_secs).to_vec();
        let row = Row {
            fault: "kill",
            seed: 7,
            tally: Tally {
                rounds: 3,
                acked: 10,
                recovery,
                ..Tally::default()
            },
            skipped: None,
            problem: Some("no disk".to_owned()),
            folder: Some("/tmp/a".into()),
        };
        let text = table(&[row]);
        assert!(
            text.contains("| kill | 3 | 10 | 0 | 0 | 0 | 0 | 2.00 s | 3.00 s | 7 |\n"),
            "{text}"
        );
        assert!(
            text.contains("\nkill: FAILED, no disk; its files are in /tmp/a\n"),
            "{text}"
        );
    }
}
