//! Control planes over the network: their addresses, and the credentials of this node.

use std::time::Duration;

use http::{HeaderValue, Request, header};
use kanat_model::Secret;
use kanat_model::backoff::jitter;
use kanat_plan_stream::SILENCE_TIMEOUT;
use tonic::body::Body;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tower::ServiceExt;

use super::ControlPlanes;

/// Time limit of a connection; then the next control plane is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses of control planes, and the credentials of this node.
#[derive(Default)]
pub struct RemoteSettings {
    /// Addresses, such as `https://control.example.com:8443`.
    pub urls: Vec<String>,
    pub join_token: Option<Secret<String>>,
    /// Certificates in PEM of the authority of control planes; the public ones when there is none.
    pub authority: Option<Vec<u8>>,
    /// Certificate and key of this node, in PEM.
    pub identity: Option<(Vec<u8>, Secret<Vec<u8>>)>,
}

/// Reason why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a node needs the address of a control plane")]
    NoUrl,
    #[error("{url:?} cannot be used: {source}")]
    Url {
        url: String,
        source: tonic::transport::Error,
    },
    #[error("the join token has characters that no header can carry")]
    JoinToken,
}

impl RemoteSettings {
    /// Creates the clients of the control planes, which connect when they are used. Nodes begin at
    /// different control planes, so that these share the load.
    ///
    /// # Errors
    /// An address, a certificate or the token cannot be used.
    pub fn control_planes(&self) -> Result<ControlPlanes, Error> {
        let token = self.authorization()?;
        let endpoints = self.urls.iter().map(|url| {
            self.endpoint(url).map_err(|source| Error::Url {
                url: url.clone(),
                source,
            })
        });
        let mut endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
        let count = endpoints.len().max(1);
        endpoints.rotate_left((jitter() * count as f64) as usize % count);
        let mut services = endpoints.into_iter().map(|endpoint| {
            let token = token.clone();
            endpoint
                .connect_lazy()
                .map_request(move |mut request: Request<Body>| {
                    if let Some(token) = &token {
                        request
                            .headers_mut()
                            .insert(header::AUTHORIZATION, token.clone());
                    }
                    request
                })
        });
        let first = ControlPlanes::new(services.next().ok_or(Error::NoUrl)?);
        Ok(services.fold(first, ControlPlanes::or))
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, Error> {
        let Some(token) = &self.join_token else {
            return Ok(None);
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| Error::JoinToken)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(url.to_owned())?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(SILENCE_TIMEOUT / 3)
            .keep_alive_timeout(SILENCE_TIMEOUT / 3);
        if !url.starts_with("https://") {
            return Ok(endpoint);
        }
        let mut tls = ClientTlsConfig::new();
        tls = match &self.authority {
            Some(pem) => tls.ca_certificate(Certificate::from_pem(pem)),
            None => tls.with_webpki_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(certificate, key.expose()));
        }
        endpoint.tls_config(tls)
    }
}

/// Token and key stay out of logs.
impl std::fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSettings")
            .field("urls", &self.urls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_cannot_be_used_is_said_before_anything_connects() {
        let at = |urls: &[&str], token: &str| {
            let urls = urls.iter().map(|url| (*url).to_owned()).collect();
            RemoteSettings {
                urls,
                join_token: Some(Secret::new(token.to_owned())),
                ..RemoteSettings::default()
            }
            .control_planes()
            .map(|_| ())
        };
        assert!(at(&["http://127.0.0.1:1", "https://control.example.com"], "t").is_ok());
        assert!(matches!(at(&[], "t"), Err(Error::NoUrl)));
        assert!(matches!(at(&["http://"], "t"), Err(Error::Url { .. })));
        assert!(matches!(
            at(&["http://127.0.0.1:1"], "a\nb"),
            Err(Error::JoinToken)
        ));
    }
}
