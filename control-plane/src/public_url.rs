//! The address under which callers reach the service: known once it listens.

use std::sync::{Arc, OnceLock};

/// The `{base_url}` of webhook URLs, shared by all who hold a clone. Without a trailing slash.
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

    /// Where the webhook of this token is called; a path alone while the address is not known.
    pub fn webhook(&self, token: &str) -> String {
        format!("{}/webhooks/receive/{token}", self.base())
    }

    /// Where providers send people back to after their consent.
    pub fn oauth_callback(&self) -> String {
        format!("{}/inbound/oauth/callback", self.base())
    }
}
