//! The check of timestamps, and in `vectors` the schemes.

mod vectors;

use super::*;

#[test]
fn a_timestamp_may_lie_300_s_before_or_after_now() {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let at = |seconds: i64| {
        fresh(
            &(1_700_000_000 + seconds).to_string(),
            now,
            DEFAULT_TOLERANCE,
        )
    };
    let seconds = |seconds| Ok(Duration::from_secs(seconds));
    assert_eq!(
        [at(-300), at(0), at(300)],
        [seconds(300), seconds(301), seconds(601)]
    );
    assert_eq!(
        [at(-301), at(301)],
        [Err(Refusal::Stale), Err(Refusal::Stale)]
    );
    assert!(matches!(
        fresh("soon", now, DEFAULT_TOLERANCE),
        Err(Refusal::Malformed(_))
    ));
    assert_eq!(
        fresh(&i64::MAX.to_string(), now, DEFAULT_TOLERANCE),
        Err(Refusal::Stale)
    );
    assert_eq!(
        fresh(&i64::MIN.to_string(), now, DEFAULT_TOLERANCE),
        Err(Refusal::Stale)
    );
}
