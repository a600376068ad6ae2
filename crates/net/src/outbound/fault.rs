//! Errors of calls without an answer. Messages name host and port, and never path or query, which
//! may contain a key.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;
use url::Url;

use super::Error;
use crate::egress::EgressError;

/// A host whose name has no address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ResolveError(#[from] io::Error);

/// Returns the error of a call to `url`.
pub(super) fn classify(error: &reqwest::Error, url: &Url) -> Error {
    let place = place(url);
    for cause in causes(error) {
        if let Some(refused) = cause.downcast_ref::<EgressError>() {
            return Error::Egress(refused.to_string());
        }
        if let Some(unresolved) = cause.downcast_ref::<ResolveError>() {
            return Error::Network(format!("cannot resolve {place}: {unresolved}"));
        }
        if let Some(fault) = cause.downcast_ref::<rustls::Error>() {
            return Error::Tls(tls(fault, &place));
        }
    }
    Error::Network(network(error, &place))
}

/// `host:port`
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns the error and its sources, from the outside in. `source` of an I/O error skips the error
/// that it wraps.
fn causes<'e>(error: &'e reqwest::Error) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    let mut next: Option<&'e (dyn StdError + 'static)> = Some(error);
    std::iter::from_fn(move || {
        let current = next?;
        next = match current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => current.source(),
        };
        Some(current)
    })
}

fn network(error: &reqwest::Error, place: &str) -> String {
    if error.is_body() || error.is_decode() {
        return format!("{place} broke off its answer");
    }
    if error.is_connect() && error.is_timeout() {
        return format!("no connection to {place} in time");
    }
    let io = causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind)
        .last();
    let cut_off = causes(error)
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(|fault| fault.is_incomplete_message() || fault.is_closed());
    match io {
        Some(io::ErrorKind::ConnectionRefused) => format!("connection refused by {place}"),
        Some(
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof,
        ) => closed(place),
        None if cut_off => closed(place),
        Some(_) | None => {
            let what = if error.is_connect() {
                "cannot connect to"
            } else {
                "the call failed at"
            };
            let innermost = causes(error)
                .last()
                .map(ToString::to_string)
                .unwrap_or_default();
            format!("{what} {place}: {innermost}")
        }
    }
}

fn closed(place: &str) -> String {
    format!("{place} closed the connection before it answered")
}

fn tls(fault: &rustls::Error, place: &str) -> String {
    let certificate = match fault {
        rustls::Error::InvalidCertificate(certificate) => certificate,
        rustls::Error::InvalidMessage(_) => return format!("{place} does not speak TLS"),
        rustls::Error::AlertReceived(alert) => {
            return format!("{place} ended the TLS handshake: {alert:?}");
        }
        _ => return format!("TLS with {place} failed: {fault}"),
    };
    let what = match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is for another name"
        }
        CertificateError::UnknownIssuer => "comes from an authority that is not trusted here",
        CertificateError::Revoked => "is revoked",
        _ => return format!("the certificate of {place} is not accepted: {fault}"),
    };
    format!("the certificate of {place} {what}")
}
