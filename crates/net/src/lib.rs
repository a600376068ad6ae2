//! Network access: listeners with limits and drain, the one outbound client behind the egress
//! guard, and the keys of token issuers. Messages and their contents are not known here.

pub mod authority;
pub mod body;
pub mod budget;
pub mod egress;
mod inbound;
pub mod jwks;
pub mod outbound;
pub mod peer;
mod peers;
pub mod quality;
pub mod request_id;
pub mod server;
pub mod tls;

pub use authority::Authority;
pub use body::Body;
pub use inbound::{Inbound, Pacing};
pub use peer::Peer;
