//! Listeners: where they are bound, what they speak, and how they are called from this machine.

use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use anyhow::Result;
use kanat_net::peer::TrustedProxies;
use kanat_net::server;
use kanat_net::tls::ServerTls;
use tokio::net::TcpListener;

use crate::exit::usage;
use crate::settings::process::{Settings, TlsFiles};

/// A bound address that is not served yet.
pub struct Port {
    pub listener: TcpListener,
    pub options: server::Options,
    pub address: SocketAddr,
}

impl Port {
    /// Takes an address to listen on. Warns where other machines reach it in clear text.
    pub async fn bind(address: SocketAddr, options: server::Options) -> Result<Self> {
        let listener = bind(address).await?;
        let address = listener.local_addr()?;
        warn_of_clear_text(address, &options);
        Ok(Self {
            listener,
            options,
            address,
        })
    }

    /// Returns a URL that can be called from this machine.
    pub fn url(&self) -> String {
        url(self.address, &self.options)
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => usage(format!(
            "cannot listen on {address}: another process does\nstop it, or take another address \
             with --listen (port 0 takes a free one)"
        )),
        _ => usage(format!("cannot listen on {address}: {error}")),
    })
}

/// Warns where other machines reach an address, and nothing hides on the way what they send and
/// read.
fn warn_of_clear_text(address: SocketAddr, options: &server::Options) {
    if !address.ip().is_loopback() && options.tls.is_none() {
        tracing::warn!(
            "{address} is open to other machines without TLS: keys and payloads pass in clear \
             text, unless a proxy or a network that is private hides them",
        );
    }
}

/// The bounds of a listener, with TLS when there is a certificate; `clients` vouches for those who
/// call.
///
/// # Errors
/// Files that cannot be read or used, by the names of their settings.
pub fn options(settings: &Settings, clients: Option<&Path>) -> Result<server::Options> {
    let tls = settings
        .tls
        .as_ref()
        .map(|files| tls(files, clients, ["tls_cert", "tls_key"]))
        .transpose()?;
    let trusted_proxies = TrustedProxies::new(settings.trusted_proxies.clone());
    Ok(server::Options {
        tls,
        trusted_proxies,
        ..server::Options::default()
    })
}

/// Reads the files of a listener, whose settings have these names.
///
/// # Errors
/// Files that cannot be read or used, by the names of their settings.
pub fn tls(files: &TlsFiles, clients: Option<&Path>, names: [&str; 2]) -> Result<ServerTls> {
    let certificate = files.certificate.as_path();
    let key = files.key.as_path();
    let named = [
        (names[0], Some(certificate)),
        (names[1], Some(key)),
        ("tls_client_ca", clients),
    ];
    let faults = named.into_iter().filter_map(|(setting, path)| {
        let path = path?;
        let error = File::open(path).err()?;
        Some(format!(
            "\n  {setting}: cannot read {}: {error}",
            path.display()
        ))
    });
    let faults: String = faults.collect();
    if !faults.is_empty() {
        return Err(usage(format!("bad settings:{faults}")));
    }
    ServerTls::read(certificate, key, clients)
        .map_err(|error| usage(format!("bad setting: {}: {error}", names[0])))
}

/// Returns an address that can be called from this machine: nobody can call 0.0.0.0.
fn url(address: SocketAddr, options: &server::Options) -> String {
    let ip = match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        SocketAddr::V4(_) | SocketAddr::V6(_) => address.ip(),
    };
    let scheme = if options.tls.is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_all_interfaces_is_called_by_loopback() {
        let url = |text: &str| url(text.parse().unwrap(), &server::Options::default());
        assert_eq!(url("0.0.0.0:8080"), "http://127.0.0.1:8080");
        assert_eq!(url("[::]:8080"), "http://[::1]:8080");
        assert_eq!(url("10.0.0.7:80"), "http://10.0.0.7:80");
    }
}
