//! Log of refused webhooks: one line per flow and reason in a minute, with the number of refusals.
//! Payloads, keys and headers are never logged.

use std::collections::HashMap;
use std::time::Duration;

use kanat_model::id::FlowId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time between two lines on one flow and reason.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of flows and reasons. Beyond it, the one with the oldest line is forgotten.
const MAX_KINDS: usize = 512;

/// Counts of refused webhooks by flow and reason.
#[derive(Default)]
pub(crate) struct RefusalLog {
    kinds: Mutex<HashMap<(FlowId, String), LogLine>>,
}

/// The last line on a flow and reason.
struct LogLine {
    at: Instant,
    /// Number of refusals since then.
    since: u64,
}

impl RefusalLog {
    /// Counts a refusal. Returns the number of refusals for a line, when a line is due.
    pub fn count(&self, flow: &FlowId, reason: &str, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock();
        let kind = (flow.clone(), reason.to_owned());
        if let Some(line) = kinds.get_mut(&kind) {
            line.since += 1;
            if now.saturating_duration_since(line.at) < LINE_INTERVAL {
                return None;
            }
            line.at = now;
            return Some(std::mem::take(&mut line.since));
        }
        if kinds.len() >= MAX_KINDS
            && let Some(first) = kinds
                .iter()
                .min_by_key(|(_, line)| line.at)
                .map(|(kind, _)| kind.clone())
        {
            kinds.remove(&first);
        }
        kinds.insert(kind, LogLine { at: now, since: 0 });
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_once_a_minute_for_each_flow_and_reason() {
        let refused = RefusalLog::default();
        let begun = Instant::now();
        let one = FlowId::from("flw_1");
        let other = FlowId::from("flw_2");
        let count = |flow, reason, seconds| {
            refused.count(flow, reason, begun + Duration::from_secs(seconds))
        };
        assert_eq!(count(&one, "the signature is wrong", 0), Some(1));
        assert_eq!(count(&one, "the signature is wrong", 1), None);
        assert_eq!(count(&one, "the signature is wrong", 59), None);
        assert_eq!(count(&one, "the body cannot be read", 2), Some(1));
        assert_eq!(count(&other, "the signature is wrong", 3), Some(1));
        assert_eq!(count(&one, "the signature is wrong", 60), Some(3));
        assert_eq!(count(&one, "the signature is wrong", 61), None);
    }

    #[test]
    fn it_remembers_a_bounded_number_of_flows() {
        let refused = RefusalLog::default();
        let begun = Instant::now();
        for n in 0..=MAX_KINDS {
            let at = begun + Duration::from_millis(n as u64);
            assert_eq!(
                refused.count(
                    &FlowId::new(format!("flw_{n}")),
                    "the signature is wrong",
                    at
                ),
                Some(1)
            );
        }
        let later = begun + Duration::from_secs(1);
        assert_eq!(
            refused.count(&FlowId::from("flw_1"), "the signature is wrong", later),
            None
        );
        assert_eq!(
            refused.count(&FlowId::from("flw_0"), "the signature is wrong", later),
            Some(1),
            "forgotten"
        );
    }
}
