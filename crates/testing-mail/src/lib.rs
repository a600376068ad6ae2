//! A mail server for tests, on loopback: it speaks SMTP (RFC 5321), keeps the mails that it
//! accepts, and can refuse them, be silent, encrypt or ask for a password.

mod certificate;
mod mail;
mod server;
mod session;

pub use mail::ReceivedMail;
pub use server::{MailServer, Options, Tls};
