//! Decision whether a failed attempt is retried, and when.

use kanat_flow::retry::Policy;
use kanat_message_log::Outcome;
use kanat_model::Timestamp;
use kanat_model::backoff::jitter;
use kanat_model::message::{ErrorKind, Failure};
use kanat_net::outbound::Response;
use kanat_proto::plan::v1::FlowPlan;

use super::retry_after;
use crate::work::MessageInMemory;

/// Decides on a message whose attempt failed. `answer` is the answer of the target, if there was
/// one. `steady` is the present on the monotonic clock, by which the next attempt is due; `now` is
/// the present on the wall clock.
pub(super) fn decide(
    work: &MessageInMemory,
    plan: &FlowPlan,
    failure: &Failure,
    answer: Option<&Response>,
    now: Timestamp,
    steady: Timestamp,
) -> Outcome {
    let policy = Policy::from_plan(&plan.retry.unwrap_or_default());
    let number = work.attempt();
    if number >= work.max_attempts
        || !may_pass(policy, failure.kind, answer.map(|answer| answer.status))
    {
        return Outcome::DeadLetter;
    }
    // A dead letter that was retried by hand starts its schedule again.
    let before = work
        .max_attempts
        .saturating_sub(policy.count.saturating_add(1));
    let planned = policy.delay(number.saturating_sub(before), jitter());
    let asked = answer.and_then(|answer| retry_after::asked(answer.status, &answer.headers, now));
    Outcome::Retry {
        due: steady.after(asked.map_or(planned, |asked| planned.max(asked))),
    }
}

/// Returns whether a retry of the message may succeed.
fn may_pass(policy: Policy, kind: ErrorKind, status: Option<u16>) -> bool {
    match kind {
        ErrorKind::Network | ErrorKind::Tls | ErrorKind::Timeout | ErrorKind::Credentials => true,
        ErrorKind::Status | ErrorKind::TargetRefused => {
            !policy.transient_only
                || status.is_some_and(|status| matches!(status, 408 | 425 | 429 | 500..=599))
        }
        ErrorKind::Mapping
        | ErrorKind::Condition
        | ErrorKind::Egress
        | ErrorKind::Rejected
        | ErrorKind::Configuration
        | ErrorKind::Adapter
        | ErrorKind::Validation
        | ErrorKind::FlowDeleted => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;
    use kanat_proto::plan::v1::Retry;
    use kanat_proto::plan::v1::retry::Backoff;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn plan(transient_only: bool) -> FlowPlan {
        let retry = Retry {
            count: 3,
            backoff: Backoff::Exponential.into(),
            duration_ms: 1000,
            transient_only,
        };
        FlowPlan {
            retry: Some(retry),
            ..FlowPlan::default()
        }
    }

    fn work(attempts: u32, max_attempts: u32) -> MessageInMemory {
        MessageInMemory {
            attempts,
            max_attempts,
            ..MessageInMemory::default()
        }
    }

    fn failure(kind: ErrorKind) -> Failure {
        Failure::new(kind, String::new())
    }

    fn answer(status: u16, retry_after: &str) -> Response {
        let mut headers = HeaderMap::new();
        if !retry_after.is_empty() {
            headers.insert("retry-after", retry_after.parse().unwrap());
        }
        Response {
            status,
            headers,
            body: Bytes::new(),
            truncated: false,
        }
    }

    /// Milliseconds until the next attempt, without jitter's tenth; `None` for a dead letter.
    fn wait(
        work: &MessageInMemory,
        plan: &FlowPlan,
        kind: ErrorKind,
        answer: Option<&Response>,
    ) -> Option<u128> {
        match decide(work, plan, &failure(kind), answer, NOW, NOW) {
            Outcome::Retry { due } => {
                Some(due.since(NOW).as_millis() * 10 / 11 / 1000 * 1000 + 1000)
            }
            _ => None,
        }
    }

    #[test]
    fn waits_grow_until_the_attempts_are_used_up() {
        let waits: Vec<bool> = (0..4)
            .map(|done| wait(&work(done, 4), &plan(false), ErrorKind::Network, None).is_some())
            .collect();
        assert_eq!(waits, [true, true, true, false]);
        for (done, base) in [(0, 1000), (1, 2000), (2, 4000)] {
            let Outcome::Retry { due } = decide(
                &work(done, 4),
                &plan(false),
                &failure(ErrorKind::Timeout),
                None,
                NOW,
                NOW,
            ) else {
                panic!("no retry after attempt {done}")
            };
            let wait = due.since(NOW).as_millis();
            assert!((base..=base + base / 10).contains(&wait), "{wait}");
        }
    }

    #[test]
    fn a_dead_letter_that_is_retried_begins_anew() {
        let Outcome::Retry { due } = decide(
            &work(4, 8),
            &plan(false),
            &failure(ErrorKind::Network),
            None,
            NOW,
            NOW,
        ) else {
            panic!("no retry")
        };
        assert!((1000..=1100).contains(&due.since(NOW).as_millis()));
    }

    #[test]
    fn retry_after_makes_a_wait_longer_never_shorter() {
        let due = |answer: &Response| match decide(
            &work(0, 4),
            &plan(false),
            &failure(ErrorKind::Status),
            Some(answer),
            NOW,
            NOW,
        ) {
            Outcome::Retry { due } => due.since(NOW).as_secs(),
            _ => panic!("no retry"),
        };
        assert_eq!(due(&answer(429, "120")), 120);
        assert_eq!(due(&answer(503, "0")), 1);
        assert_eq!(due(&answer(500, "120")), 1);
        assert_eq!(due(&answer(429, "99999999")), 86_400);
    }

    #[test]
    fn a_connector_may_be_connected_yet() {
        assert!(wait(&work(0, 4), &plan(true), ErrorKind::Credentials, None).is_some());
    }

    #[test]
    fn what_cannot_pass_is_not_tried_again() {
        for kind in [
            ErrorKind::Mapping,
            ErrorKind::Condition,
            ErrorKind::Egress,
            ErrorKind::Rejected,
            ErrorKind::Configuration,
        ] {
            assert_eq!(wait(&work(0, 4), &plan(false), kind, None), None);
        }
    }

    #[test]
    fn retry_on_transient_gives_up_on_other_answers() {
        let retried = |transient_only, status| {
            wait(
                &work(0, 4),
                &plan(transient_only),
                ErrorKind::Status,
                Some(&answer(status, "")),
            )
            .is_some()
        };
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(retried(true, status), "{status}");
        }
        for status in [301, 400, 401, 404, 409, 422] {
            assert!(!retried(true, status) && retried(false, status), "{status}");
        }
    }
}
