//! Reasons why a mail is not sent. None of them has a password in it.

use std::error::Error as _;

use lettre::transport::smtp;

/// Length in characters up to which the text of a server is repeated.
const MAX_REPLY_LENGTH: usize = 200;

/// Reason why a mail is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    #[error("{0:?} is not an address that mail can be sent to")]
    Recipient(String),
    #[error("the subject has a line break or another control character")]
    Subject,
    #[error("the text has a line that is too long for a mail, or a control character")]
    Text,
    #[error("TLS cannot be set up: {0}")]
    TlsSetup(String),
    #[error("the mail server cannot be reached: {0}")]
    Connection(String),
    #[error("the mail server offers no TLS, and the settings require it")]
    NoTls,
    #[error("the mail server does not accept the user and the password: {0}")]
    Credentials(String),
    #[error("the mail server does not accept the mail: {0}")]
    Refused(String),
    #[error("the mail server did not accept the mail in time")]
    Timeout,
}

impl MailError {
    /// Error of the steps up to a connection on which mail can be sent.
    pub(crate) fn of_connection(error: &smtp::Error) -> Self {
        match error.is_timeout() {
            true => Self::Timeout,
            false => Self::Connection(reply(error)),
        }
    }

    /// Error of the login. The text of the server is left out, because it may repeat what was sent.
    pub(crate) fn of_login(error: &smtp::Error) -> Self {
        match error.status() {
            Some(code) => Self::Credentials(format!("it answers {code}")),
            None if error.is_client() => {
                Self::Credentials("it offers no login by a password".to_owned())
            }
            None => Self::of_connection(error),
        }
    }

    /// Error of the transfer of a mail.
    pub(crate) fn of_transfer(error: &smtp::Error) -> Self {
        match error.status().is_some() || error.is_client() {
            true => Self::Refused(reply(error)),
            false => Self::of_connection(error),
        }
    }
}

/// Returns the code of the server, and the beginning of its text in one line.
fn reply(error: &smtp::Error) -> String {
    let text = error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string);
    let text = text.replace(char::is_control, " ");
    let text: String = text.chars().take(MAX_REPLY_LENGTH).collect();
    match error.status() {
        Some(code) => format!("{code} {text}").trim_end().to_owned(),
        None => text,
    }
}
