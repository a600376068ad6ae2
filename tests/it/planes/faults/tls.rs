//! Targets over TLS, each with a certificate that is good or wrong in one way.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority of this test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// Takes every request, from those who take its certificate.
pub struct TlsTarget {
    address: String,
    _task: JoinSet<()>,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of this name that all who trust the authority take.
    pub async fn good(&self, name: &str) -> TlsTarget {
        self.signed(params(name)).await
    }

    /// Starts a target with a certificate that has expired.
    pub async fn expired(&self, name: &str) -> TlsTarget {
        let mut params = params(name);
        (params.not_before, params.not_after) = (
            rcgen::date_time_ymd(2019, 1, 1),
            rcgen::date_time_ymd(2020, 1, 1),
        );
        self.signed(params).await
    }

    async fn signed(&self, params: CertificateParams) -> TlsTarget {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        TlsTarget::start(certificate.der().clone(), &key).await
    }
}

impl TlsTarget {
    /// A certificate that nobody vouches for.
    pub async fn self_signed(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params(name).self_signed(&key).unwrap();
        Self::start(certificate.der().clone(), &key).await
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    async fn start(certificate: CertificateDer<'static>, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let acceptor = TlsAcceptor::from(Arc::new(
            config.with_single_cert(vec![certificate], key).unwrap(),
        ));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // It fails when the other side does not take the certificate.
                connections.spawn(answer(acceptor.clone(), stream));
            }
        });
        Self {
            address,
            _task: task,
        }
    }
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await?;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        .await?;
    stream.shutdown().await
}
