//! One message through one plan, all but the I/O: keys, condition, steps, mapping, request. Tests
//! and production call the same.

mod adapter;
mod answer;
mod compile;
pub mod exchange;
mod key;
mod program;
mod reads;
mod request;
mod resources;
mod step;
mod trace;
pub mod trigger;

pub use adapter::{GAVE_UNDEFINED, body};
pub use answer::{Answer, Built};
pub use compile::CompileError;
pub use kanat_model::Mask;
pub use program::{Admission, Input, Keys, Outcome, Program};
pub use reads::failure_reads;
pub use request::Request;
pub use resources::{Calling, NoResources, Resources, render_instance_template};
pub use step::Step;
pub use trace::{Adapted, Exchange, Record, Trace};
