//! The worker as a program of its own, for this crate's tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    kanat_script::worker::main(std::env::args().skip(2))
}
