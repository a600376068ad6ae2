//! Peer of a request: the other end of the socket, or the client that trusted proxies name.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The client of a request. Listeners put it into the extensions of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Address of the client: the socket's, or what trusted proxies say of it. IPv4-mapped
    /// addresses are IPv4.
    pub address: IpAddr,
    /// TLS between the client and the listener, or the trusted proxy in front of it.
    pub is_encrypted: bool,
}

impl Peer {
    /// Returns the address that bounds count by: all of an IPv4 address, and the first 64 bits of
    /// an IPv6 address, because one machine usually has all addresses below them.
    pub fn network(&self) -> IpAddr {
        network(self.address)
    }
}

/// Networks of the proxies that are believed what they say of their clients.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks.into())
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// The socket that requests come from, as one connection sees it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    socket: Peer,
    /// The proxies, when the socket's peer is one of them.
    proxies: Option<TrustedProxies>,
}

impl Origin {
    pub fn new(socket: Peer, proxies: &TrustedProxies) -> Self {
        let socket = Peer {
            address: socket.address.to_canonical(),
            ..socket
        };
        Self {
            socket,
            proxies: proxies.contains(socket.address).then(|| proxies.clone()),
        }
    }

    /// Returns whether the socket's peer is a trusted proxy.
    pub fn is_proxy(&self) -> bool {
        self.proxies.is_some()
    }

    /// Returns the peer of a request with these headers.
    pub fn peer(&self, headers: &HeaderMap) -> Peer {
        match &self.proxies {
            None => self.socket,
            Some(proxies) => Peer {
                address: client(self.socket.address, headers, proxies),
                is_encrypted: self.socket.is_encrypted || says_https(headers),
            },
        }
    }
}

/// Returns the last address of `X-Forwarded-For`, counted from the right, that is no trusted
/// proxy's. What stands on its left is the client's word. Where an address cannot be read, the one
/// on its right is the client.
fn client(socket: IpAddr, headers: &HeaderMap, proxies: &TrustedProxies) -> IpAddr {
    let mut client = socket;
    for value in headers.get_all(FORWARDED_FOR).iter().rev() {
        for text in value.as_bytes().rsplit(|byte| *byte == b',') {
            let Some(address) = address(text) else {
                return client;
            };
            client = address;
            if !proxies.contains(client) {
                return client;
            }
        }
    }
    client
}

/// Reads an address with or without a port, and with or without brackets.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let bare = || {
        text.strip_prefix('[')?
            .strip_suffix(']')?
            .parse::<Ipv6Addr>()
            .ok()
            .map(IpAddr::V6)
    };
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse::<IpAddr>()
        .ok()
        .or_else(with_port)
        .or_else(bare)
        .map(|address| address.to_canonical())
}

/// Returns whether the nearest proxy says that its client speaks TLS.
fn says_https(headers: &HeaderMap) -> bool {
    let said = headers.get_all(FORWARDED_PROTO).iter().next_back();
    let nearest = said.and_then(|value| value.as_bytes().rsplit(|byte| *byte == b',').next());
    nearest.is_some_and(|scheme| scheme.trim_ascii().eq_ignore_ascii_case(b"https"))
}

pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn peer(socket: &str, forwarded: &[&'static str]) -> String {
        let proxies =
            ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"].map(|network| network.parse().unwrap());
        let socket = Peer {
            address: socket.parse().unwrap(),
            is_encrypted: false,
        };
        let origin = Origin::new(socket, &TrustedProxies::new(proxies.to_vec()));
        let said = forwarded
            .iter()
            .map(|value| (FORWARDED_FOR, HeaderValue::from_static(value)));
        origin.peer(&said.collect()).address.to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(peer("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(peer("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(peer("::ffff:10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(peer("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn forwarded_addresses_are_counted_from_the_right() {
        assert_eq!(peer("10.0.0.1", &["1.1.1.1, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(
            peer("10.0.0.1", &["1.1.1.1, 198.51.100.1, 192.0.2.7"]),
            "198.51.100.1"
        );
        assert_eq!(
            peer("10.0.0.1", &["1.1.1.1, 198.51.100.1", "10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(
            peer("10.0.0.1", &["10.0.0.3, 10.0.0.2"]),
            "10.0.0.3",
            "all are proxies"
        );
        assert_eq!(
            peer("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"]),
            "10.0.0.2",
            "nothing beyond is believed"
        );
    }

    #[test]
    fn forwarded_addresses_may_have_ports_and_brackets() {
        assert_eq!(peer("fd00::1", &["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(peer("fd00::1", &["[2001:db8::1]:4711"]), "2001:db8::1");
        assert_eq!(peer("fd00::1", &["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(peer("fd00::1", &["::ffff:198.51.100.1"]), "198.51.100.1");
    }

    #[test]
    fn the_scheme_is_the_listeners_or_a_trusted_proxys() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let is_encrypted = |socket: &str, is_encrypted, said: &'static str| {
            let socket = Peer {
                address: socket.parse().unwrap(),
                is_encrypted,
            };
            let origin = Origin::new(socket, &trusted);
            origin
                .peer(&HeaderMap::from_iter([(
                    FORWARDED_PROTO,
                    HeaderValue::from_static(said),
                )]))
                .is_encrypted
        };
        assert!(is_encrypted("10.0.0.1", false, "https"));
        assert!(is_encrypted("10.0.0.1", false, "http, HTTPS"));
        assert!(!is_encrypted("10.0.0.1", false, "https, http"));
        assert!(!is_encrypted("203.0.113.9", false, "https"));
        assert!(is_encrypted("203.0.113.9", true, "http"));
    }

    #[test]
    fn bounds_count_ipv6_by_its_network() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("198.51.100.1"), "198.51.100.1");
        assert_eq!(network("::ffff:198.51.100.1"), "198.51.100.1");
    }
}
