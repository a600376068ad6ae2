//! A certificate authority for one test.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};

/// Vouches for certificates of 127.0.0.1; its files lie in a folder of the test.
pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Files of a certificate and its key.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// Makes one, and `<name>.pem` in `folder`.
    pub fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("an authority needs no names");
        params.distinguished_name = called(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a key can sign");
        write(&folder.join(format!("{name}.pem")), &issuer.pem());
        Self {
            folder: folder.join(name),
            issuer,
        }
    }

    /// The file of its own certificate.
    pub fn file(&self) -> String {
        path(&self.folder.with_extension("pem"))
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Certificate of the authority in DER, for TLS libraries.
    pub fn der(&self) -> &[u8] {
        self.issuer.der()
    }

    /// Makes a certificate that it vouches for.
    pub fn identity(&self, name: &str) -> Identity {
        self.identity_for(name, &[])
    }

    /// Issues an identity for these host names as well.
    pub fn identity_for(&self, name: &str, hosts: &[&str]) -> Identity {
        let names: Vec<_> = ["127.0.0.1"]
            .iter()
            .chain(hosts)
            .map(|host| (*host).to_owned())
            .collect();
        let mut params = CertificateParams::new(names).expect("addresses and hosts are names");
        params.distinguished_name = called(name);
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the authority can sign");
        let stem = self.folder.with_file_name(name);
        let certificate_file = stem.with_extension("pem");
        let key_file = stem.with_extension("key");
        write(&certificate_file, &certificate.pem());
        write(&key_file, &key.serialize_pem());
        Identity {
            certificate: path(&certificate_file),
            key: path(&key_file),
        }
    }
}

/// OpenSSL takes a certificate for self-signed that has its authority's name.
fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("the folder of the test can be written");
}

fn path(file: &Path) -> String {
    file.to_str()
        .expect("temporary folders have plain names")
        .to_owned()
}
