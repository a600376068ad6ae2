//! Stricter bounds of `cargo xtask soak`, which may have a machine that does nothing else.

/// Returns whether bounds of time are exact. The usual tests run in parallel, and bound a median or
/// allow for a busy machine.
pub fn is_on() -> bool {
    std::env::var_os("KANAT_SOAK").is_some()
}
