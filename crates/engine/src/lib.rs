//! Execution of a plan on a message without I/O: keys, condition, steps, mapping, request. Tests
//! and production use the same code.

mod adapter;
mod answer;
mod compile;
pub mod exchange;
mod fault;
pub mod form;
mod key;
mod program;
mod reads;
mod request;
mod resources;
mod step;
mod success;
mod target;
mod trace;
pub mod trigger;

pub use adapter::{GAVE_UNDEFINED, body};
pub use answer::{Answer, ResponseParts, TargetAnswer};
pub use compile::CompileError;
pub use kanat_model::Mask;
pub use program::{Admission, Input, Keys, Outcome, Program};
pub use reads::{Read, expression_reads, failure_reads};
pub use request::Request;
pub use resources::{Calling, NoResources, Resources, instance, render_instance_template};
pub use step::Step;
pub use success::{RESPONSE_BODY_LIMIT, response_document};
pub use trace::{AdapterRun, Exchange, Record, Trace};
