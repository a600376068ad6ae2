//! Flow definitions: what the YAML means, whether it is right, and the plan that nodes run. No I/O,
//! no wire, no clock.
//!
//! [`parse`] reads a definition and reports everything that is wrong with it by itself;
//! [`check_names`] adds what it names and the environment lacks; [`compile`] makes the plan.
//! [`parse_response`] reads what builds the answer of a published API. Expressions are those of
//! `kanat_mapping`, which nodes compile again from the same text.

#![warn(missing_docs)]

pub mod definition;
pub mod diagnostic;
pub mod diff;
pub mod duration;
pub mod fields;
pub mod graph;
pub mod language;
mod literal;
pub mod names;
pub mod retry;
pub mod schedule;
pub mod span;

mod check;
mod compile;
mod params;
mod plan_json;
mod response;
mod webhook_key;
mod yaml;

use kanat_model::nearest;

pub use check::{parse, parse_response, parse_stored, parse_stored_response};
pub use compile::{Identity, WebhookToken, compile};
pub use definition::{Definition, Step, config_json};
pub use diagnostic::{Diagnostic, Severity};
pub use literal::{literal_secrets, text_without_secrets, without_secrets};
pub use names::{InstanceRef, Names, check_flow_name, check_names};
pub use plan_json::plan_json;
pub use response::{Response, ResponseScope, ResponseTexts};
pub use webhook_key::webhook_key;
