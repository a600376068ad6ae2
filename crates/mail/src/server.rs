//! The address of a mail server: `smtp://` or `smtps://`, with user and password where it needs
//! them.

use std::fmt;
use std::net::IpAddr;

use lettre::transport::smtp::authentication::Credentials;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// Port of submission (RFC 6409).
const SUBMISSION_PORT: u16 = 587;
/// Port of submission over TLS (RFC 8314).
const SUBMISSIONS_PORT: u16 = 465;

/// Mail server, as its URL describes it. Neither `Debug` nor `Display` shows the password.
#[derive(Debug, Clone)]
pub struct SmtpServer {
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
    pub(crate) encryption: Encryption,
    pub(crate) credentials: Option<Credentials>,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// By STARTTLS where the server offers it.
    Opportunistic,
    /// By STARTTLS. A server that does not offer it gets no mail.
    Required,
    /// From the first byte.
    Implicit,
}

/// Fault of the URL of a mail server. It does not repeat the URL, which may have a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    #[error(
        "it is not an address such as smtp://mail.example.com:587 or \
         smtps://user:password@mail.example.com (in user and password, % and two hexadecimal \
         digits stand for characters such as @, /, : and #)"
    )]
    Url,
    #[error("it begins with neither smtp:// nor smtps://")]
    Scheme,
    #[error("it has a path or a fragment")]
    Rest,
    #[error("its only parameter is ?tls=required")]
    Parameter,
    #[error("it has a user without a password, or a password without a user")]
    Credentials,
}

impl SmtpServer {
    /// Reads a URL.
    ///
    /// # Errors
    /// The first fault of the URL.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let url = Url::parse(text).map_err(|_| InvalidUrl::Url)?;
        let is_implicit = match url.scheme() {
            "smtp" => false,
            "smtps" => true,
            _ => return Err(InvalidUrl::Scheme),
        };
        let host = url.host_str().ok_or(InvalidUrl::Url)?;
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(InvalidUrl::Rest);
        }
        let is_required = match url.query() {
            None => false,
            Some("tls=required") => true,
            Some(_) => return Err(InvalidUrl::Parameter),
        };
        let (encryption, default_port) = match (is_implicit, is_required) {
            (true, _) => (Encryption::Implicit, SUBMISSIONS_PORT),
            (false, true) => (Encryption::Required, SUBMISSION_PORT),
            (false, false) => (Encryption::Opportunistic, SUBMISSION_PORT),
        };
        Ok(Self {
            // Names of schemes that are not of the web are left as they are written: this makes
            // them lower case and ASCII, and recognises IPv4 addresses.
            host: Host::parse(host).map_err(|_| InvalidUrl::Url)?,
            port: url.port().unwrap_or(default_port),
            encryption,
            credentials: credentials(&url)?,
        })
    }

    /// Returns whether mails may leave the machine unencrypted: nothing insists on TLS, and the
    /// server is not on this machine.
    pub fn may_be_unencrypted(&self) -> bool {
        self.encryption == Encryption::Opportunistic && !self.is_loopback()
    }

    /// Host without the brackets of an IPv6 address.
    pub(crate) fn host_name(&self) -> String {
        match &self.host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        }
    }

    fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().is_loopback(),
        }
    }
}

impl fmt::Display for SmtpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn credentials(url: &Url) -> Result<Option<Credentials>, InvalidUrl> {
    let decoded = |text| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(|text| text.into_owned())
            .map_err(|_| InvalidUrl::Url)
    };
    match (url.username(), url.password()) {
        ("", None) => Ok(None),
        ("", Some(_)) | (_, None) => Err(InvalidUrl::Credentials),
        (user, Some(password)) => Ok(Some(Credentials::new(decoded(user)?, decoded(password)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> SmtpServer {
        SmtpServer::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_scheme_chooses_encryption_and_port() {
        for (text, encryption, shown) in [
            (
                "smtp://Mail.example.com",
                Encryption::Opportunistic,
                "mail.example.com:587",
            ),
            (
                "smtp://127.0.0.1:25/",
                Encryption::Opportunistic,
                "127.0.0.1:25",
            ),
            (
                "smtp://mail.example.com?tls=required",
                Encryption::Required,
                "mail.example.com:587",
            ),
            ("smtps://[::1]", Encryption::Implicit, "[::1]:465"),
            (
                "smtps://mail.example.com:2465?tls=required",
                Encryption::Implicit,
                "mail.example.com:2465",
            ),
        ] {
            let server = server(text);
            assert_eq!(server.encryption, encryption, "{text}");
            assert_eq!(server.to_string(), shown);
            assert_eq!(server.credentials, None);
        }
    }

    #[test]
    fn user_and_password_are_decoded_and_not_shown() {
        let server = server("smtps://kanat%40example.com:p%2Fss@mail.example.com");
        let credentials = Credentials::new("kanat@example.com".to_owned(), "p/ss".to_owned());
        assert_eq!(server.credentials, Some(credentials));
        let shown = format!("{server} {server:?}");
        assert!(!shown.contains("p/ss"), "{shown}");
    }

    #[test]
    fn only_a_connection_off_this_machine_may_be_unencrypted() {
        for text in [
            "smtp://localhost:1025",
            "smtp://LOCALHOST",
            "smtp://127.0.0.1",
            "smtp://[::1]:25",
            "smtp://[::ffff:127.0.0.1]",
            "smtps://mail.example.com",
            "smtp://mail.example.com?tls=required",
        ] {
            assert!(!server(text).may_be_unencrypted(), "{text}");
        }
        for text in ["smtp://mail.example.com", "smtp://10.0.0.7:25"] {
            assert!(server(text).may_be_unencrypted(), "{text}");
        }
    }

    #[test]
    fn faults_are_named_without_the_password() {
        for (text, fault) in [
            ("mail.example.com", InvalidUrl::Url),
            ("smtp://", InvalidUrl::Url),
            ("smtp:mail.example.com", InvalidUrl::Url),
            ("smtp://u:hunter2@mail.example.com:port", InvalidUrl::Url),
            ("http://u:hunter2@mail.example.com", InvalidUrl::Scheme),
            ("smtp://u:hunter2@mail.example.com/x", InvalidUrl::Rest),
            ("smtp://u:hunter2@mail.example.com#x", InvalidUrl::Rest),
            ("smtp://mail.example.com?tls=none", InvalidUrl::Parameter),
            (
                "smtp://mail.example.com?tls=required&x=1",
                InvalidUrl::Parameter,
            ),
            ("smtp://hunter2@mail.example.com", InvalidUrl::Credentials),
            ("smtp://:hunter2@mail.example.com", InvalidUrl::Credentials),
        ] {
            let found = SmtpServer::parse(text).unwrap_err();
            assert_eq!(found, fault, "{text}");
            assert!(!found.to_string().contains("hunter2"));
        }
    }
}
