//! From the parts of a mail to its bytes. What a caller passes cannot add a header or a recipient.

use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox};
use lettre::{Address, Message};
use url::Host;

use crate::{MailError, Sender};

/// Length of a line in bytes, without its end (RFC 5322).
const MAX_LINE_LENGTH: usize = 998;

/// Mail of plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Address without a display name.
    pub to: String,
    /// One line.
    pub subject: String,
    /// Lines that end with `\n`. Each is sent as it is, so that the links in it can be followed.
    pub text: String,
}

impl Mail {
    /// Makes the message with its headers.
    pub(crate) fn compose(self, sender: &Sender) -> Result<Message, MailError> {
        let to = recipient(&self.to).ok_or(MailError::Recipient(self.to))?;
        if self.subject.contains(char::is_control) {
            return Err(MailError::Subject);
        }
        // Answering machines stay silent (RFC 3834).
        let automatic = HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        Message::builder()
            .from(sender.0.clone())
            .to(Mailbox::new(None, to))
            .subject(self.subject)
            .message_id(None)
            .raw_header(automatic)
            .header(ContentType::TEXT_PLAIN)
            .body(body(&self.text)?)
            .map_err(|_| MailError::Text)
    }
}

/// Reads an address. The name of its domain becomes ASCII, as servers take it.
fn recipient(text: &str) -> Option<Address> {
    if text.contains(char::is_control) {
        return None;
    }
    let (user, domain) = text.rsplit_once('@')?;
    if domain.is_ascii() {
        return text.parse().ok();
    }
    let domain = Host::parse(domain).ok()?;
    Address::new(user, domain.to_string()).ok()
}

/// Makes a body whose lines are those of the text. Quoted-printable and Base64, which would break
/// or hide links, are not used.
fn body(text: &str) -> Result<Body, MailError> {
    // The transfer ends the last line.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let is_unfit = |line: &str| {
        line.len() > MAX_LINE_LENGTH || line.contains(|c: char| c.is_control() && c != '\t')
    };
    if text.split('\n').any(is_unfit) {
        return Err(MailError::Text);
    }
    let encoding = match text.is_ascii() {
        true => ContentTransferEncoding::SevenBit,
        false => ContentTransferEncoding::EightBit,
    };
    // `Body::new` would encode every text that has a line of more than 76 bytes.
    let bytes = text.replace('\n', "\r\n").into_bytes();
    Ok(Body::dangerous_pre_encoded(bytes, encoding))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail() -> Mail {
        Mail {
            to: "ada@example.com".to_owned(),
            subject: "Invitation".to_owned(),
            text: "Hello\n".to_owned(),
        }
    }

    fn composed(mail: Mail) -> Result<String, MailError> {
        let sender = "Kanat <kanat@example.com>".parse().unwrap();
        let message = mail.compose(&sender)?;
        Ok(String::from_utf8(message.formatted()).unwrap())
    }

    #[test]
    fn a_long_link_stays_in_one_line() {
        let link = format!(
            "https://kanat.example.com/api/v1/invite#token={}",
            "a=b.".repeat(30)
        );
        for greeting in ["Hello Ada", "Merhaba Çağrı"] {
            let text = format!("{greeting},\n\n{link}\nEnd\n");
            let message = composed(Mail { text, ..mail() }).unwrap();
            assert!(message.contains(&format!("\r\n{link}\r\n")), "{message}");
            assert!(
                message.contains("\r\nContent-Type: text/plain; charset=utf-8\r\n"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_text_of_ascii_needs_no_server_of_eight_bits() {
        let message = composed(mail()).unwrap();
        assert!(
            message.contains("\r\nContent-Transfer-Encoding: 7bit\r\n"),
            "{message}"
        );
    }

    #[test]
    fn a_recipient_cannot_add_a_header_or_another_recipient() {
        for to in [
            "",
            "ada",
            "ada@",
            "@example.com",
            "ada@example.com, bob@example.com",
            "ada@example.com\r\nBcc: bob@example.com",
            "\"ada\r\nBcc: bob\"@example.com",
            "ada@example.com\n",
            "Ada <ada@example.com>",
            "ada@exam ple.com",
            "ada@exämple.com>",
            "ada@b\u{fc}cher.example\u{0}",
        ] {
            let to = to.to_owned();
            let refused = composed(Mail {
                to: to.clone(),
                ..mail()
            });
            assert_eq!(refused, Err(MailError::Recipient(to)));
        }
    }

    #[test]
    fn a_domain_of_unicode_becomes_ascii() {
        let message = composed(Mail {
            to: "ada@bücher.example".to_owned(),
            ..mail()
        });
        let message = message.unwrap();
        assert!(
            message.contains("\r\nTo: ada@xn--bcher-kva.example\r\n"),
            "{message}"
        );
    }

    #[test]
    fn a_subject_is_one_line() {
        for subject in ["a\r\nBcc: bob@example.com", "a\nb", "a\0b"] {
            let subject = subject.to_owned();
            assert_eq!(
                composed(Mail { subject, ..mail() }),
                Err(MailError::Subject)
            );
        }
    }

    #[test]
    fn a_text_that_would_have_to_be_encoded_is_refused() {
        for text in ["a\rb".to_owned(), "a\0".to_owned(), "a".repeat(999)] {
            assert_eq!(composed(Mail { text, ..mail() }), Err(MailError::Text));
        }
    }
}
