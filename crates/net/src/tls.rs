//! TLS of listeners: certificate and key from PEM files, and the authority that vouches for
//! clients, when there is one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Certificate of a listener, and the authority of its clients.
#[derive(Clone)]
pub struct ServerTls {
    acceptor: TlsAcceptor,
}

/// Certificate of a client, issued by the configured authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// DNS names among its subject alternative names.
    names: Arc<[String]>,
}

impl ClientCertificate {
    /// Takes the names of a certificate.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self {
            names: names.into_iter().collect(),
        }
    }

    /// Returns whether it is of this DNS name. A wildcard is the name that it is written as, and no
    /// other.
    pub fn is_of(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn of_chain(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(chain.first()?).ok()?;
        Some(Self::new(certificate.valid_dns_names().map(str::to_owned)))
    }
}

/// Reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    File { path: PathBuf, source: pem::Error },
    #[error("{0} holds no certificate")]
    NoCertificate(PathBuf),
    #[error("{path} holds a certificate that cannot vouch for others: {source}")]
    Authority {
        path: PathBuf,
        source: rustls::Error,
    },
    #[error("the authority for clients cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error("certificate and key cannot be used: {0}")]
    Identity(#[from] rustls::Error),
}

impl ServerTls {
    /// Reads the certificate (with its chain), its key, and the certificates of `client_authority`:
    /// clients may then show one of its certificates, and those who show another are refused.
    pub fn read(
        certificate: &Path,
        key: &Path,
        client_authority: Option<&Path>,
    ) -> Result<Self, Error> {
        let chain = certificates(certificate)?;
        let of_key = |source| Error::File {
            path: key.to_owned(),
            source,
        };
        let key = PrivateKeyDer::from_pem_file(key).map_err(of_key)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(path, provider)?),
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Performs the handshake; `None` when the client fails it or does not finish within `timeout`.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        timeout: Duration,
    ) -> Option<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        match tokio::time::timeout(timeout, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                let shown = stream
                    .get_ref()
                    .1
                    .peer_certificates()
                    .and_then(ClientCertificate::of_chain);
                Some((stream, shown))
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }
}

/// Omits the key from logs.
impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |source| Error::File {
        path: path.to_owned(),
        source,
    };
    let found = CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    if found.is_empty() {
        Err(Error::NoCertificate(path.to_owned()))
    } else {
        Ok(found)
    }
}

fn verifier(
    path: &Path,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|source| Error::Authority {
            path: path.to_owned(),
            source,
        })?;
    }
    // Callers of the public API have no certificate; paths that need one check it.
    Ok(
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()?,
    )
}
