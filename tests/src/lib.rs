//! Support of the black-box suite: the real binary in a folder of its own, real targets, and waits
//! for conditions.

pub mod app;
pub mod authority;
pub mod calls;
pub mod cli;
pub mod clock;
pub mod faults;
pub mod fleet;
pub mod load;
pub mod memory;
pub mod message_list;
pub mod nginx;
pub mod oauth_provider;
pub mod overload;
pub mod page;
pub mod power_loss;
pub mod python;
pub mod random;
pub mod raw;
pub mod relay;
pub mod rest;
pub mod service;
pub mod soak;
pub mod split;
pub mod target;
pub mod token_issuer;
pub mod wait;

pub use app::TestApp;
pub use kanat_testing_mail as mail_server;
pub use rest::{Answer, Rest};
pub use service::Service;
pub use target::FakeTarget;
pub use wait::until;
