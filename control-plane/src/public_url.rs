//! The address under which callers reach the service: known once it listens.

use std::sync::{Arc, OnceLock};

use url::{Host, Url};

/// The `{base_url}` of webhook URLs, shared by all clones. Without a trailing slash.
#[derive(Debug, Clone, Default)]
pub struct PublicUrl(Arc<OnceLock<String>>);

impl PublicUrl {
    /// Says the address; only the first one counts.
    pub fn set(&self, url: &str) {
        let _ = self.0.set(url.trim_end_matches('/').to_owned());
    }

    /// The address itself; empty while it is not known.
    pub fn base(&self) -> &str {
        self.0.get().map(String::as_str).unwrap_or_default()
    }

    /// The host name of the address, in lower case, and an empty one of an IP address; `None` while
    /// the address is not known.
    pub fn host(&self) -> Option<String> {
        let url = Url::parse(self.0.get()?).ok();
        match url.as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => Some(name.to_ascii_lowercase()),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => Some(String::new()),
        }
    }

    /// Returns the address of the webhook with this token; a path alone while the public URL is not
    /// known.
    pub fn webhook(&self, token: &str) -> String {
        format!("{}/webhooks/receive/{token}", self.base())
    }

    /// Returns the address that OAuth2 providers redirect to after consent.
    pub fn oauth_callback(&self) -> String {
        format!("{}/inbound/oauth/callback", self.base())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str) -> Option<String> {
        let public_url = PublicUrl::default();
        public_url.set(url);
        public_url.host()
    }

    #[test]
    fn the_host_is_the_name_without_scheme_port_and_path() {
        assert_eq!(
            host("https://Hooks.example.com:8443/in/"),
            Some("hooks.example.com".to_owned())
        );
    }

    #[test]
    fn an_ip_address_is_no_host_name() {
        assert_eq!(host("http://127.0.0.1:8080"), Some(String::new()));
        assert_eq!(host("http://[::1]:8080"), Some(String::new()));
    }

    #[test]
    fn there_is_no_host_while_the_address_is_not_known() {
        assert_eq!(PublicUrl::default().host(), None);
    }
}
