//! Options of the allocator.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How long memory that was freed is kept, in milliseconds.
const DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "10");

/// Gives freed memory back to the system soon. By its defaults the allocator keeps it for a
/// second.
pub fn give_back_soon() {
    if env::var_os(DELAY.0).is_some() {
        return;
    }
    let Ok(binary) = env::current_exe() else {
        return;
    };
    let mut arguments = env::args_os();
    let mut again = Command::new(binary);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // Comes back only when it failed.
    let _ = again.args(arguments).env(DELAY.0, DELAY.1).exec();
}
