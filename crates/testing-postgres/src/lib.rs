//! PostgreSQL for tests: databases that are made for one test and gone after it, on the server that
//! `DATABASE_URL` names or else on a throw-away cluster made from the PostgreSQL programs of this
//! machine. Everything is removed, also when the test process is killed.

mod cluster;
mod command;
mod database;
mod error;
mod line;
mod operator;
mod programs;

pub use cluster::{Cluster, Durability, Stop};
pub use database::Database;
pub use error::Error;
pub use line::Line;
pub use operator::Backup;
pub use programs::Programs;
