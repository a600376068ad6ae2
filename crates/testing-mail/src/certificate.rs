//! Certificate of the server: it is its own authority.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Identity of a server.
#[derive(Clone)]
pub struct Identity {
    pub acceptor: TlsAcceptor,
    pub certificate_pem: String,
}

/// Makes a certificate of `127.0.0.1`.
pub fn identity() -> Identity {
    let key = KeyPair::generate().expect("a key can be made");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name of a certificate");
    let certificate = params.self_signed(&key).expect("a key signs");
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("certificate and key are of each other");
    Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        certificate_pem: certificate.pem(),
    }
}
