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

    /// Where the webhook of this token is called; a path alone while the address is not known.
    pub fn webhook(&self, token: &str) -> String {
        let base = self.0.get().map(String::as_str).unwrap_or_default();
        format!("{base}/webhooks/receive/{token}")
    }

    /// Where providers send people back to after their consent.
    pub fn oauth_callback(&self) -> String {
        let base = self.0.get().map(String::as_str).unwrap_or_default();
        format!("{base}/inbound/oauth/callback")
    }
}
