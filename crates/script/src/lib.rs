//! Adapters: JavaScript of users, run in processes of its own that are given little and ended when
//! they take more.
//!
//! - [`Script`] is code, [`Pool`] the processes, [`Session`] one of them for a while, [`Caller`]
//!   what an evaluation calls.
//! - What takes long is kept from the threads of everything else by [`apart`], whether it calls
//!   adapters or not.
//! - The processes are the same binary under a hidden command: [`worker`]. What runs in them is
//!   `sandbox`.
//!
//! What the code is given and may return, and what bounds it, is in `docs/flow-reference.md`.

pub mod apart;
mod caller;
mod confinement;
mod digits;
mod failure;
mod limits;
mod pool;
mod process;
mod sandbox;
mod script;
mod session;
mod wire;
pub mod worker;

pub use caller::{Adapter, Caller, Report, Scripts};
pub use failure::{Failure, Kind, Position};
pub use limits::Limits;
pub use pool::{Asker, Options, Pool, blocking};
pub use process::probe;
pub use script::Script;
pub use session::{CallResult, Session};
pub use wire::Log;
