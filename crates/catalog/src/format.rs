//! Formats of texts in a config: the `format` of its schema.

use http::{HeaderName, HeaderValue, header};
use url::Url;

use crate::base_url;

kanat_model::texts! {
    /// The formats that the schemas of configs may name.
    pub enum Format {
        /// An address under which endpoints lie.
        BaseUrl = "base-url",
        /// An absolute HTTP address, maybe with a query.
        Url = "http-url",
        DnsLabel = "dns-label",
        Email = "email",
        /// The name of a header; what is one can be the name of a query parameter too.
        Token = "token",
        /// The name of a header that a user may set.
        HeaderName = "header-name",
        HeaderValue = "header-value",
    }
}

impl Format {
    /// Returns the fault of a text, in words that follow the field's name. The empty text is for
    /// `minLength` to judge.
    pub(crate) fn fault(self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        match self {
            Self::BaseUrl => base_url::parse(text).err(),
            Self::Url => url_fault(text),
            Self::DnsLabel => (!is_dns_label(text))
                .then(|| "must be one label of letters, digits and hyphens".to_owned()),
            Self::Email => (!is_email(text)).then(|| "must be an e-mail address".to_owned()),
            Self::Token => HeaderName::from_bytes(text.as_bytes())
                .is_err()
                .then(|| "must be the name of a header".to_owned()),
            Self::HeaderName => header_name_fault(text).map(str::to_owned),
            Self::HeaderValue => header_value_fault(text).map(str::to_owned),
        }
    }
}

/// Returns the reason why a text is no name of a header that a user may give.
pub fn header_name_fault(name: &str) -> Option<&'static str> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Some("is not the name of a header"),
        Ok(name) if OURS.contains(&name) => {
            Some("is set by the connection itself and cannot be given")
        }
        Ok(_) => None,
    }
}

/// Returns the reason why a text is no value of a header.
pub fn header_value_fault(text: &str) -> Option<&'static str> {
    HeaderValue::from_str(text)
        .is_err()
        .then_some("must not hold line breaks or other control characters")
}

/// Headers that frame the message or the connection: giving them would let a config smuggle
/// requests.
const OURS: &[HeaderName] = &[
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
];

fn url_fault(text: &str) -> Option<String> {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return Some(format!("is not an absolute URL: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Some(format!(
            "must begin with http:// or https://, not {}:",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Some("must not carry a user name, a password or a fragment".to_owned());
    }
    None
}

fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_email(text: &str) -> bool {
    text.split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'))
        && text
            .chars()
            .all(|c| !c.is_whitespace() && !c.is_control() && c != ':')
}
