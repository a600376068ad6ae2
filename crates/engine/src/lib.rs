//! One message through one plan, all but the I/O: keys, condition, steps, mapping, request. Tests and production call the
//! same.

mod adapter;
mod answer;
mod compile;
mod key;
mod program;
mod request;
mod resources;
mod step;

pub use adapter::body;
pub use answer::{Answer, Built};
pub use compile::CompileError;
pub use program::{Input, Keys, Outcome, Program};
pub use request::Request;
pub use resources::{Calling, NoResources, Resources, render_instance_template};
pub use step::Step;
