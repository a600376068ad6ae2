//! The worker as a program of its own, for this crate's tests; and what code that broke out of the
//! engine would try.

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::thread;

use kanat_script::{Limits, worker};

type Attempt = fn() -> io::Result<()>;

/// Attempts of a confined process, by name.
const ATTEMPTS: [(&str, Attempt); 11] = [
    ("read a file", || File::open("/proc/self/status").map(drop)),
    ("write a file", || {
        File::options().append(true).open("/dev/null").map(drop)
    }),
    ("delete a file", || fs::remove_file("/nowhere")),
    ("list a folder", || fs::read_dir("/").map(drop)),
    ("make a TCP socket", || {
        TcpListener::bind("127.0.0.1:0").map(drop)
    }),
    ("make a UDP socket", || {
        UdpSocket::bind("127.0.0.1:0").map(drop)
    }),
    ("make a Unix socket", || UnixStream::pair().map(drop)),
    ("duplicate a descriptor", || {
        Ok(rustix::io::dup(io::stdin()).map(drop)?)
    }),
    ("start a program", || Err(Command::new("/bin/true").exec())),
    ("start a thread", || {
        thread::Builder::new().spawn(|| ()).map(drop)
    }),
    ("signal the service", || match rustix::process::getppid() {
        Some(service) => Ok(rustix::process::test_kill_process(service)?),
        None => Ok(()),
    }),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(worker::COMMAND) {
        return worker::main(arguments);
    }
    // System calls are refused to the thread alone: this one can still ask.
    let tries = thread::spawn(|| {
        println!("confined: {:?}", worker::confine(Limits::default()));
        for (name, attempt) in ATTEMPTS {
            println!(
                "{name}: {:?}",
                attempt().map_err(|error| error.raw_os_error())
            );
        }
    });
    let ended = tries.join();
    #[cfg(target_os = "linux")]
    println!("memory: {:?}", rustix::process::dumpable_behavior());
    ended.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
