//! What is sealed at rest, and under which key.

mod canaries;
mod rotate;
