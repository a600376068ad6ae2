//! Authentication and authorization: API keys, consumer keys, JWTs, random tokens, roles, and the
//! sealing of secrets at rest. No network, no database.

pub mod consumer_key;
pub mod error;
pub mod jwt;
pub mod key;
pub mod mac;
pub mod role;
pub mod seal;
pub mod token;

pub use error::Error;
pub use mac::MacKey;
pub use role::{Permission, Role};
pub use seal::{KeyFile, MASTER_KEY, Sealer};
pub use token::random_token;
