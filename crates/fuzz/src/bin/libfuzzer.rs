//! One target under libFuzzer: that of `KANAT_FUZZ_TARGET`. `cargo xtask fuzz` builds and runs it.
#![no_main]

use std::sync::LazyLock;

use kanat_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("KANAT_FUZZ_TARGET").unwrap_or_default();
    Target::find(&name).unwrap_or_else(|| panic!("KANAT_FUZZ_TARGET names no target: {name:?}"))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.run)(input));
