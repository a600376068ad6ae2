//! Host and port of a request or URL, in a canonical form that can be compared.

use std::net::{IpAddr, Ipv6Addr};

use url::Url;

/// Host with its port: in lower case, without a dot at the end, and without the ports of HTTP and
/// HTTPS, whichever of the two is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority(Box<str>);

impl Authority {
    /// Takes a host, which may have a port, as `Host` headers have it.
    pub fn new(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        let name = without_port(&text);
        let port = text[name.len()..].trim_start_matches(':');
        let name = name.strip_suffix('.').unwrap_or(name);
        Self(match port {
            "" | "80" | "443" => name.into(),
            port => format!("{name}:{port}").into(),
        })
    }

    /// Returns that of an address; `None` when it has no host.
    pub fn of_url(url: &Url) -> Option<Self> {
        let host = url.host_str()?;
        let port = url.port().map(|port| format!(":{port}"));
        Some(Self::new(&format!("{host}{}", port.unwrap_or_default())))
    }

    /// Returns the host without its port. An IPv6 address keeps its brackets.
    pub fn name(&self) -> &str {
        without_port(&self.0)
    }

    /// Returns whether it names no domain: an IP address, a name without a dot, this machine, or
    /// nothing at all.
    pub fn has_no_domain(&self) -> bool {
        let name = self.name();
        !name.contains('.') || name.ends_with(".localhost") || is_address(name)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !is_address(host) =>
        {
            name
        }
        Some(_) | None => host,
    }
}

fn is_address(name: &str) -> bool {
    let bracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bracketed {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_case_and_usual_ports_do_not_distinguish_hosts() {
        let same = Authority::new("api.example.com");
        for text in [
            "API.example.com",
            "api.example.com.",
            "api.example.com:80",
            "Api.example.com.:443",
            "api.example.com:",
        ] {
            assert_eq!(Authority::new(text), same, "{text}");
        }
        for url in [
            "http://api.example.com",
            "https://api.example.com/",
            "http://api.example.com:443",
            "https://API.example.com:80",
            "https://api.example.com.",
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(Authority::of_url(&url), Some(same.clone()), "{url}");
        }
        for other in ["api.example.com:8443", "example.com", "api.example.com:080"] {
            assert_ne!(Authority::new(other), same, "{other}");
        }
    }

    #[test]
    fn the_name_has_no_port_and_may_have_no_domain() {
        for (text, name, has_no_domain) in [
            ("api.example.com:8443", "api.example.com", false),
            ("1.2.3.4.example:80", "1.2.3.4.example", false),
            ("", "", true),
            ("kanat:8080", "kanat", true),
            ("localhost.:8080", "localhost", true),
            ("api.LOCALHOST", "api.localhost", true),
            ("10.0.0.7:8080", "10.0.0.7", true),
            ("10.0.0.7.", "10.0.0.7", true),
            ("[::1]:8080", "[::1]", true),
            ("[::ffff:10.0.0.7]", "[::ffff:10.0.0.7]", true),
            ("::1", "::1", true),
        ] {
            let authority = Authority::new(text);
            assert_eq!(authority.name(), name, "{text}");
            assert_eq!(authority.has_no_domain(), has_no_domain, "{text}");
        }
    }
}
