//! Mail by SMTP: the address of a server, the sender, and the transfer of one mail at a time. The
//! texts of mails are not known here.

mod compose;
mod error;
mod mailer;
mod sender;
mod server;

pub use compose::Mail;
pub use error::MailError;
pub use mailer::{Mailer, TRANSFER_TIMEOUT};
pub use sender::{InvalidSender, Sender};
pub use server::{InvalidUrl, SmtpServer};
