//! Listeners of this process as targets of its own calls.

use std::net::{IpAddr, UdpSocket};

use url::Url;

/// Ports that this process listens on. A call that a user directs reaches them by the public URL
/// alone: what is open to this machine only, such as metrics, is not open to flows.
#[derive(Debug, Clone, Default)]
pub struct OwnListeners {
    ports: Vec<u16>,
    public: Option<Url>,
}

impl OwnListeners {
    /// Makes the set of listeners. `public` is the prefix of the URLs by which the process may be
    /// called.
    pub fn new(ports: Vec<u16>, public: Option<Url>) -> Self {
        Self { ports, public }
    }

    /// Returns whether a call to `url` would come to one of the listeners if its host was this
    /// machine, by another way than the public URL.
    pub(super) fn are_called_by(&self, url: &Url) -> bool {
        url.port_or_known_default()
            .is_some_and(|port| self.ports.contains(&port))
            && !self.is_public(url)
    }

    /// Returns whether `url` begins with the public URL. The base URL of a connector instance,
    /// which its test calls, has no slash at its end.
    fn is_public(&self, url: &Url) -> bool {
        let path = format!("{}/", url.path());
        let begins =
            |public: &Url| url.origin() == public.origin() && path.starts_with(public.path());
        self.public.as_ref().is_some_and(begins)
    }
}

/// Returns whether packets to `address` stay on this machine. The system lets nobody take a socket
/// of another's address.
pub(super) fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_listener_is_called_by_every_url_of_its_port_but_the_public_one() {
        let own = OwnListeners::new(
            vec![8080, 80],
            Some(url("http://127.0.0.1:8080/webhooks/receive/")),
        );
        for called in [
            "http://127.0.0.1:8080/api/v1/flows",
            "http://localhost:8080/webhooks/receive/x",
            "https://127.0.0.1:8080/webhooks/receive/x",
            "http://127.0.0.1:8080/webhooks/receive/../../metrics",
            "http://127.0.0.1:8080/webhooks/received",
            "http://127.0.0.1:8080/webhooks",
            "http://hooks.example.com/",
        ] {
            assert!(own.are_called_by(&url(called)), "{called}");
        }
        for other in [
            "http://127.0.0.1:8080/webhooks/receive/x",
            "http://127.0.0.1:8080/webhooks/receive",
            "https://127.0.0.1/",
            "http://127.0.0.1:9/",
        ] {
            assert!(!own.are_called_by(&url(other)), "{other}");
        }
    }

    #[test]
    fn this_machine_has_its_loopback_addresses_and_not_those_of_others() {
        for own in ["127.0.0.1", "127.9.9.9", "0.0.0.0"] {
            assert!(is_of_this_machine(own.parse().unwrap()), "{own}");
        }
        assert!(!is_of_this_machine("192.0.2.1".parse().unwrap()));
    }
}
