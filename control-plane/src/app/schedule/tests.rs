//! Schedules fired by clocks that a test sets: over years, with several control planes, some of
//! which die.

mod planes;
mod reckoning;
mod runs;
mod years;

use kanat_model::Timestamp;

/// An instant by its ISO 8601 text.
fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}
