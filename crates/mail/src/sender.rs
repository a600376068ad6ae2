//! The sender of all mails: an address, with a display name or without.

use std::fmt;
use std::str::FromStr;

use lettre::message::Mailbox;

/// Address that mails come from, as in `kanat@example.com` or `Kanat <kanat@example.com>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender(pub(crate) Mailbox);

/// Text that is not the address of a sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address such as kanat@example.com or Kanat <kanat@example.com>")]
pub struct InvalidSender(String);

impl FromStr for Sender {
    type Err = InvalidSender;

    fn from_str(text: &str) -> Result<Self, InvalidSender> {
        let invalid = || InvalidSender(text.to_owned());
        if text.contains(char::is_control) {
            return Err(invalid());
        }
        let mailbox = text.trim().parse();
        mailbox.map(Self).map_err(|_| invalid())
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_an_address_with_or_without_a_name() {
        for text in [
            "kanat@example.com",
            "Kanat <kanat@example.com>",
            "\"Kanat, Inc.\" <kanat@example.com>",
            "Çağrı <kanat@example.com>",
        ] {
            let sender: Sender = text.parse().unwrap();
            assert_eq!(sender.to_string(), text);
            assert_eq!(sender.0.email.to_string(), "kanat@example.com");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "kanat",
            "kanat@",
            "<kanat@example.com",
            "a@example.com, b@example.com",
            "Kanat\r\nBcc: a@example.com <kanat@example.com>",
        ] {
            assert!(text.parse::<Sender>().is_err(), "{text}");
        }
    }
}
