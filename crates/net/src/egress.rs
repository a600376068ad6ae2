//! Egress guard: the addresses that user-directed calls may reach.

mod own;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::Url;

pub use own::OwnListeners;

/// Addresses of cloud services that give credentials to every process of a machine or container.
const METADATA: [IpAddr; 12] = [
    // AWS, Azure, Google Cloud, Oracle Cloud and others.
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    // AWS: instances, containers of ECS, pods of EKS.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0023)),
    // Google Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254)),
    // Azure's agent.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Alibaba Cloud and Tencent Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 23)),
    // Oracle Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    // Scaleway.
    IpAddr::V4(Ipv4Addr::new(169, 254, 42, 42)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x0042)),
];

/// Addresses that may be reached: public ones, and those that are allowed explicitly. Metadata
/// services and the listeners of this process are never allowed.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: Vec<IpNet>,
    loopback_and_private: LocalTargets,
    own: OwnListeners,
}

/// Policy for loopback and private addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LocalTargets {
    #[default]
    Refused,
    Allowed,
}

/// Address that the guard refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    #[error("the egress guard refuses {address}: it is {reason}; KANAT_EGRESS_ALLOW can allow it")]
    Special {
        address: IpAddr,
        reason: &'static str,
    },
    #[error(
        "the egress guard refuses {0}: it is a cloud's metadata service, which no setting allows"
    )]
    Metadata(IpAddr),
    #[error(
        "the egress guard refuses {0}: this service listens there, and is called by its public \
         URL alone"
    )]
    OwnListener(IpAddr),
}

impl Policy {
    /// Makes a policy. `allow` lists networks that may be reached, except for metadata services.
    pub fn new(allow: Vec<IpNet>, loopback_and_private: LocalTargets) -> Self {
        Self {
            allow,
            loopback_and_private,
            own: OwnListeners::default(),
        }
    }

    /// Makes the policy of addresses that the operator's settings name: all but metadata services
    /// may be reached.
    pub fn unrestricted() -> Self {
        let all = [
            IpNet::new_assert(Ipv4Addr::UNSPECIFIED.into(), 0),
            IpNet::new_assert(Ipv6Addr::UNSPECIFIED.into(), 0),
        ];
        Self::new(all.into(), LocalTargets::Allowed)
    }

    /// Returns the policy of a process that listens itself.
    #[must_use]
    pub fn with_own_listeners(self, own: OwnListeners) -> Self {
        Self { own, ..self }
    }

    /// Returns whether calls to `url` must not end at this machine, where this process listens on
    /// its port.
    pub fn concerns_own_listeners(&self, url: &Url) -> bool {
        self.own.are_called_by(url)
    }

    /// Checks an address, whatever the port.
    ///
    /// # Errors
    /// Fails when `address` is in a special range and not allowed.
    pub fn check(&self, address: IpAddr) -> Result<(), EgressError> {
        let effective = embedded(address);
        if METADATA.contains(&effective) {
            return Err(EgressError::Metadata(address));
        }
        let Some(class) = classify(effective) else {
            return Ok(());
        };
        let allowed = self
            .allow
            .iter()
            .any(|net| net.contains(&address) || net.contains(&effective));
        let local = class.local && self.loopback_and_private == LocalTargets::Allowed;
        if allowed || local {
            Ok(())
        } else {
            Err(EgressError::Special {
                address,
                reason: class.reason,
            })
        }
    }

    /// Checks the address of a call that concerns the listeners of this process.
    ///
    /// # Errors
    /// Fails as `check` does, and when `address` is one of this machine.
    pub fn check_apart_from_own_listeners(&self, address: IpAddr) -> Result<(), EgressError> {
        self.check(address)?;
        if own::is_of_this_machine(embedded(address)) {
            Err(EgressError::OwnListener(address))
        } else {
            Ok(())
        }
    }
}

struct Class {
    reason: &'static str,
    local: bool,
}

const fn special(reason: &'static str) -> Option<Class> {
    Some(Class {
        reason,
        local: false,
    })
}

const fn local(reason: &'static str) -> Option<Class> {
    Some(Class {
        reason,
        local: true,
    })
}

/// Returns the final destination of packets: IPv4 inside IPv6 (mapped, translated, compatible,
/// NAT64, 6to4, Teredo) is extracted.
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let v4 = |hi: u16, lo: u16| {
        let [a, b] = hi.to_be_bytes();
        let [c, d] = lo.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, hi, lo] | [0, 0, 0, 0, 0xffff, 0, hi, lo] => v4(hi, lo),
        [0, 0, 0, 0, 0, 0, hi, lo] if (hi, lo) != (0, 0) && (hi, lo) != (0, 1) => v4(hi, lo),
        // Local translators may read other bits of 64:ff9b:1::/48 as the address, where those are
        // not zero.
        [0x64, 0xff9b, 0 | 1, 0, 0, 0, hi, lo] => v4(hi, lo),
        [0x2002, hi, lo, ..] => v4(hi, lo),
        [0x2001, 0, .., hi, lo] => v4(!hi, !lo),
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
        [192, 0, 0, _]
        | [192, 0, 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _] => special("a reserved address"),
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
        a if a & 0xe000 != 0x2000 => special("no public address"),
        0x2001 if s[1] < 0x0200 || s[1] == 0x0db8 => special("a reserved address"),
        0x3fff if s[1] < 0x1000 => special("a reserved address"),
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
            "::ffff:0:7f00:1",
            "64:ff9b:1:7f00:0:100:808:808",
            "2001:0:808:808:0:0:80ff:fffe",
            "1000::1",
            "4000::1",
            "e000::1",
            "0:0:0:1::1",
            "100::1",
            "5f00::1",
        ] {
            assert!(!check(&policy, address), "{address}");
        }
    }

    #[test]
    fn lets_public_addresses_through() {
        let policy = Policy::default();
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "::ffff:0:808:808",
        ] {
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
    fn nothing_opens_metadata_services() {
        let everything = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        let policy = Policy::new(everything, LocalTargets::Allowed);
        for address in [
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "fd00:ec2::254",
            "fd20:ce::254",
            "169.254.170.2",
            "169.254.170.23",
            "fd00:ec2::23",
            "169.254.0.23",
            "fd00:c1::a9fe:a9fe",
            "169.254.42.42",
            "fd00:42::42",
            "::ffff:169.254.169.254",
            "::ffff:0:a9fe:a9fe",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2001:0:808:808::5601:5601",
        ] {
            let refused = policy.check(address.parse().unwrap());
            assert!(
                matches!(refused, Err(EgressError::Metadata(_))),
                "{address}"
            );
        }
        assert!(check(&policy, "169.254.169.253"));
    }

    #[test]
    fn nothing_opens_the_listeners_of_this_process() {
        let policy = Policy::new(vec!["127.0.0.0/8".parse().unwrap()], LocalTargets::Allowed)
            .with_own_listeners(OwnListeners::new(vec![9090], None));
        assert!(policy.concerns_own_listeners(&"http://localhost:9090/metrics".parse().unwrap()));
        assert!(!policy.concerns_own_listeners(&"http://localhost:9091/".parse().unwrap()));
        for address in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            let refused = policy.check_apart_from_own_listeners(address.parse().unwrap());
            assert!(
                matches!(refused, Err(EgressError::OwnListener(_))),
                "{address}: {refused:?}"
            );
        }
        assert!(
            policy
                .check_apart_from_own_listeners("192.0.2.1".parse().unwrap())
                .is_err(),
            "it is reserved"
        );
        assert!(
            policy
                .check_apart_from_own_listeners("1.1.1.1".parse().unwrap())
                .is_ok()
        );
    }

    #[test]
    fn an_allowed_network_opens_only_itself() {
        let policy = Policy::new(vec!["10.0.0.0/8".parse().unwrap()], LocalTargets::Refused);
        assert!(check(&policy, "10.9.9.9"));
        assert!(check(&policy, "::ffff:10.9.9.9"));
        assert!(!check(&policy, "192.168.0.1"));
    }
}
