//! Named points at which a test lets the process die, as SIGKILL would end it there: nothing is
//! unwound, nothing flushed.
//!
//! A build without the feature `enabled` has no points. One with it reads
//! `KANAT_FAILPOINT=<name>:<n>` once, and ends when the point of that name is reached for the n-th
//! time. `<name>=<text>` gives a point a text instead, by which a process stands for one of another
//! build; a comma stands between several.

#![cfg_attr(
    not(feature = "enabled"),
    expect(unused_variables, reason = "nothing is looked at")
)]

#[cfg(all(feature = "enabled", not(debug_assertions)))]
compile_error!("a release has no points at which it dies: build without the feature `failpoints`");

/// Reaches the point once.
#[inline(always)]
pub fn hit(name: &str) {
    #[cfg(feature = "enabled")]
    armed::reach(name, 1);
}

/// Reaches the point as often as `count` says, which is asked only where there are points.
#[inline(always)]
pub fn hit_for_each(name: &str, count: impl FnOnce() -> usize) {
    #[cfg(feature = "enabled")]
    armed::reach(name, count());
}

/// The text that a test gave the point.
#[inline(always)]
pub fn text(name: &str) -> Option<&'static str> {
    #[cfg(feature = "enabled")]
    return armed::text(name);
    #[cfg(not(feature = "enabled"))]
    None
}

#[cfg(feature = "enabled")]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static GIVEN: LazyLock<String> =
        LazyLock::new(|| std::env::var("KANAT_FAILPOINT").unwrap_or_default());
    static POINT: LazyLock<Option<Point>> =
        LazyLock::new(|| GIVEN.split(',').find_map(Point::parse));

    struct Point {
        name: String,
        at: usize,
        reached: AtomicUsize,
    }

    impl Point {
        fn parse(text: &str) -> Option<Self> {
            let (name, at) = text.split_once(':')?;
            Some(Self {
                name: name.to_owned(),
                at: at.parse().ok()?,
                reached: AtomicUsize::new(0),
            })
        }
    }

    pub fn text(name: &str) -> Option<&'static str> {
        GIVEN
            .split(',')
            .find_map(|point| point.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn reach(name: &str, times: usize) {
        let Some(point) = POINT.as_ref().filter(|point| point.name == name) else {
            return;
        };
        if point.reached.fetch_add(times, Ordering::Relaxed) + times >= point.at {
            std::process::abort();
        }
    }
}
