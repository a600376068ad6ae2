//! What `cargo xtask soak` asks for beyond the tests of every day: it may have a machine that does
//! nothing else.

/// Whether bounds of time are held to the letter. The tests of every day run beside each other, and
/// bound a median, or what a busy machine can do.
pub fn is_on() -> bool {
    std::env::var_os("KANAT_SOAK").is_some()
}
