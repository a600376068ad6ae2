//! The egress guard: which addresses a call that users direct may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// What may be reached: every public address, and what is allowed by name.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: Vec<IpNet>,
    loopback_and_private: LocalTargets,
}

/// Whether loopback and private addresses may be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LocalTargets {
    #[default]
    Refused,
    /// For a service that only its own machine can reach.
    Allowed,
}

/// An address that the guard does not let through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the egress guard refuses {address}: it is {reason}; KANAT_EGRESS_ALLOW can allow it")]
pub struct Refused {
    pub address: IpAddr,
    pub reason: &'static str,
}

impl Policy {
    /// `allow` lists networks that may be reached whatever they are.
    pub fn new(allow: Vec<IpNet>, loopback_and_private: LocalTargets) -> Self {
        Self { allow, loopback_and_private }
    }

    /// Errors when `address` is in a special range and not allowed.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let effective = embedded(address);
        let Some(class) = classify(effective) else { return Ok(()) };
        let allowed = self.allow.iter().any(|net| net.contains(&address) || net.contains(&effective));
        let local = class.local && self.loopback_and_private == LocalTargets::Allowed;
        if allowed || local { Ok(()) } else { Err(Refused { address, reason: class.reason }) }
    }
}

struct Class {
    reason: &'static str,
    local: bool,
}

const fn special(reason: &'static str) -> Option<Class> {
    Some(Class { reason, local: false })
}

const fn local(reason: &'static str) -> Option<Class> {
    Some(Class { reason, local: true })
}

/// The address that packets end up at: IPv4 inside IPv6 (mapped, compatible, NAT64, 6to4) is taken out.
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let s = v6.segments();
    let low = |hi: u16, lo: u16| {
        let [a, b] = hi.to_be_bytes();
        let [c, d] = lo.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, hi, lo] => low(hi, lo),
        [0, 0, 0, 0, 0, 0, hi, lo] if (hi, lo) != (0, 0) && (hi, lo) != (0, 1) => low(hi, lo),
        [0x64, 0xff9b, 0, 0, 0, 0, hi, lo] => low(hi, lo),
        [0x64, 0xff9b, 1, _, _, _, hi, lo] => low(hi, lo),
        [0x2002, hi, lo, ..] => low(hi, lo),
        _ => address,
    }
}

fn classify(address: IpAddr) -> Option<Class> {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<Class> {
    match address.octets() {
        [127, ..] => local("a loopback address"),
        [10, ..] | [192, 168, ..] => local("a private address"),
        [172, b, ..] if (16..32).contains(&b) => local("a private address"),
        [169, 254, ..] => special("a link-local address"),
        [0, ..] => special("an unspecified address"),
        [100, b, ..] if (64..128).contains(&b) => special("a carrier's shared address"),
        [192, 0, 0, _] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => {
            special("a reserved address")
        }
        [198, 18 | 19, ..] => special("a benchmarking address"),
        [a, ..] if a >= 240 => special("a reserved address"),
        [a, ..] if a >= 224 => special("a multicast address"),
        _ => None,
    }
}

fn classify_v6(address: Ipv6Addr) -> Option<Class> {
    let s = address.segments();
    if address.is_loopback() {
        return local("a loopback address");
    }
    if address.is_unspecified() {
        return special("an unspecified address");
    }
    match s[0] {
        a if a & 0xfe00 == 0xfc00 => local("a private address"),
        a if a & 0xffc0 == 0xfe80 => special("a link-local address"),
        a if a & 0xffc0 == 0xfec0 => special("a site-local address"),
        a if a & 0xff00 == 0xff00 => special("a multicast address"),
        0x2001 if s[1] < 0x0200 || s[1] == 0x0db8 => special("a reserved address"),
        0x0100 if s[1..4] == [0, 0, 0] => special("a discard address"),
        0x3fff if s[1] < 0x1000 => special("a reserved address"),
        0x5f00 => special("a reserved address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &Policy, address: &str) -> bool {
        policy.check(address.parse().unwrap()).is_ok()
    }

    #[test]
    fn refuses_what_is_not_public() {
        let policy = Policy::default();
        for address in [
            "127.0.0.1",
            "127.255.0.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a9fe:a9fe",
            "2002:7f00:1::",
            "2001:db8::1",
            "::7f00:1",
        ] {
            assert!(!check(&policy, address), "{address}");
        }
    }

    #[test]
    fn lets_public_addresses_through() {
        let policy = Policy::default();
        for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"] {
            assert!(check(&policy, address), "{address}");
        }
    }

    #[test]
    fn local_targets_open_loopback_and_private_but_not_metadata() {
        let policy = Policy::new(Vec::new(), LocalTargets::Allowed);
        assert!(check(&policy, "127.0.0.1"));
        assert!(check(&policy, "192.168.0.7"));
        assert!(check(&policy, "::1"));
        assert!(!check(&policy, "169.254.169.254"));
        assert!(!check(&policy, "::ffff:169.254.169.254"));
    }

    #[test]
    fn an_allowed_network_opens_only_itself() {
        let policy = Policy::new(vec!["10.0.0.0/8".parse().unwrap()], LocalTargets::Refused);
        assert!(check(&policy, "10.9.9.9"));
        assert!(check(&policy, "::ffff:10.9.9.9"));
        assert!(!check(&policy, "192.168.0.1"));
    }
}
