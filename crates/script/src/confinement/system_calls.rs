//! The system calls of a worker: those on a short list go through, every other one fails with
//! `EPERM`.
//!
//! None of them ends the process. C libraries and allocators try calls that they can do without,
//! others with each version; where they fail the engine goes on, and a call that fails has done
//! nothing.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Condition on an argument of a call, by its place. The lower 32 bits count, as in the kernel.
enum Argument {
    Is(u8, u64),
    /// Has none of these bits.
    Lacks(u8, u64),
}

use Argument::{Is, Lacks};

/// Refuses all other calls of this thread from now on, of what it starts, and new privileges.
pub(super) fn refuse() -> Result<(), String> {
    let refused = |error: seccompiler::Error| format!("system calls cannot be filtered: {error}");
    let program = program().map_err(|error| refused(error.into()))?;
    seccompiler::apply_filter(&program).map_err(refused)
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, arguments) in allowed() {
        let rules = rules.entry(call).or_default();
        if !arguments.is_empty() {
            rules.push(SeccompRule::new(
                arguments
                    .iter()
                    .map(Argument::condition)
                    .collect::<Result<_, _>>()?,
            )?);
        }
    }
    let otherwise = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, SeccompAction::Allow, architecture)?.try_into()
}

/// Returns the calls that are made once code runs. One that stands here twice is made in either
/// way.
fn allowed() -> Vec<(i64, Vec<Argument>)> {
    let code = libc::PROT_EXEC.unsigned_abs().into();
    let own = u64::from(std::process::id());
    vec![
        // The pipes to the service, and where a panic is written to.
        (libc::SYS_read, vec![Is(0, 0)]),
        (libc::SYS_write, vec![Is(0, 1)]),
        (libc::SYS_write, vec![Is(0, 2)]),
        (libc::SYS_writev, vec![Is(0, 2)]),
        // What the C library does once, and its locks.
        (libc::SYS_futex, vec![]),
        // Memory, which never becomes code.
        (libc::SYS_brk, vec![]),
        (libc::SYS_mmap, vec![Lacks(2, code)]),
        (libc::SYS_mprotect, vec![Lacks(2, code)]),
        (libc::SYS_mremap, vec![]),
        (libc::SYS_munmap, vec![]),
        (libc::SYS_madvise, vec![]),
        // Time, of the day and on the core, and the kernel's end of a call that takes too long.
        (libc::SYS_clock_gettime, vec![]),
        (libc::SYS_gettimeofday, vec![]),
        (
            libc::SYS_prlimit64,
            vec![Is(0, 0), Is(1, libc::RLIMIT_CPU.into())],
        ),
        // Seeds of hash tables.
        (libc::SYS_getrandom, vec![]),
        // The end: in order, by a fault, by a panic.
        (libc::SYS_exit, vec![]),
        (libc::SYS_exit_group, vec![]),
        (libc::SYS_sigaltstack, vec![]),
        (libc::SYS_rt_sigaction, vec![]),
        (libc::SYS_rt_sigprocmask, vec![]),
        (libc::SYS_rt_sigreturn, vec![]),
        (libc::SYS_getpid, vec![]),
        (libc::SYS_gettid, vec![]),
        (libc::SYS_tgkill, vec![Is(0, own)]),
    ]
}

impl Argument {
    fn condition(&self) -> Result<SeccompCondition, seccompiler::BackendError> {
        let (place, operator, value) = match *self {
            Is(place, value) => (place, SeccompCmpOp::Eq, value),
            Lacks(place, bits) => (place, SeccompCmpOp::MaskedEq(bits), 0),
        };
        SeccompCondition::new(place, SeccompCmpArgLen::Dword, operator, value)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::thread;

    use memmap2::MmapMut;

    use super::*;

    /// Returns what an attempt comes to in a thread whose calls are refused.
    fn refused<T: Send>(attempt: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                refuse().unwrap();
                attempt()
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn memory_never_becomes_code() {
        let made = refused(|| MmapMut::map_anon(1 << 16)?.make_exec().map(drop));
        assert_eq!(
            made.map_err(|error| error.raw_os_error()),
            Err(Some(libc::EPERM))
        );
        let sealed = refused(|| MmapMut::map_anon(1 << 16)?.make_read_only().map(drop));
        assert!(sealed.is_ok(), "{sealed:?}");
    }

    #[test]
    fn other_descriptors_are_neither_read_nor_written() {
        let mut ends = io::pipe().unwrap();
        let mut byte = [0];
        let written =
            refused(|| io::Write::write(&mut ends.1, &[1]).map_err(|error| error.raw_os_error()));
        assert_eq!(written, Err(Some(libc::EPERM)));
        io::Write::write_all(&mut ends.1, &[1]).unwrap();
        let read = refused(|| {
            io::Read::read(&mut ends.0, &mut byte).map_err(|error| error.raw_os_error())
        });
        assert_eq!(read, Err(Some(libc::EPERM)));
    }
}
