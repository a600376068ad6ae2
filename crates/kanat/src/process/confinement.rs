//! Protection of the process's memory from other processes of its user, and a check that the system
//! confines adapters.

use std::path::Path;

/// Closes the process to others of its user: they neither read nor trace it, and a crash leaves no
/// image of its memory.
pub fn close() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "other processes of this user can read the memory of this one");
        }
    }
}

/// Warns when a part of the confinement of adapters does not hold.
pub fn warn(program: &Path) {
    if let Err(reason) = kanat_script::probe(program) {
        tracing::warn!(
            reason,
            "code of adapters is not confined by the system: a bug of the JavaScript engine opens \
             this machine",
        );
    }
}
