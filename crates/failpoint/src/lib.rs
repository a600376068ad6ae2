//! Named points at which a test lets the process die, as SIGKILL would end it there: nothing is unwound, nothing flushed.
//!
//! A build without the feature `enabled` has no points. One with it reads `KANAT_FAILPOINT=<name>:<n>` once, and ends
//! when the point of that name is reached for the n-th time.

#![cfg_attr(not(feature = "enabled"), expect(unused_variables, reason = "nothing is looked at"))]

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

#[cfg(feature = "enabled")]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static POINT: LazyLock<Option<Point>> = LazyLock::new(|| Point::parse(&std::env::var("KANAT_FAILPOINT").ok()?));

    struct Point {
        name: String,
        at: usize,
        reached: AtomicUsize,
    }

    impl Point {
        fn parse(text: &str) -> Option<Self> {
            let (name, at) = text.split_once(':')?;
            Some(Self { name: name.to_owned(), at: at.parse().ok()?, reached: AtomicUsize::new(0) })
        }
    }

    pub fn reach(name: &str, times: usize) {
        let Some(point) = POINT.as_ref().filter(|point| point.name == name) else { return };
        if point.reached.fetch_add(times, Ordering::Relaxed) + times >= point.at {
            std::process::abort();
        }
    }
}
