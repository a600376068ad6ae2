//! Which environment a request is for, by the host that it names.

use std::collections::HashMap;

use kanat_model::id::EnvironmentId;
use kanat_proto::plan::v1::EnvironmentSettings;
use url::Url;

/// What an environment says of the requests that are for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Where its APIs are reached, without a slash at the end; `None` when hosts do not tell environments apart.
    pub base_url: Option<Box<str>>,
    authority: Option<Box<str>>,
    /// It takes the requests whose host names no environment, unless it has an address of its own.
    is_default: bool,
}

impl Host {
    /// Errors with what is wrong with the settings.
    pub fn compile(settings: EnvironmentSettings) -> Result<Self, String> {
        let EnvironmentSettings { base_url, is_default, .. } = settings;
        if base_url.is_empty() {
            return Ok(Self { base_url: None, authority: None, is_default });
        }
        let url = Url::parse(&base_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let authority = url.as_ref().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        let authority = authority.ok_or_else(|| format!("{base_url:?} is no address of an environment"))?;
        let base_url = Some(base_url.trim_end_matches('/').into());
        Ok(Self { base_url, authority: Some(authority.into()), is_default })
    }
}

impl Host {
    fn takes_the_rest(&self) -> bool {
        self.is_default && self.authority.is_none()
    }
}

/// The environments of a node by host.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    named: HashMap<Box<str>, EnvironmentId>,
    default: Option<EnvironmentId>,
}

impl Hosts {
    /// Of environments in the order of their ids, with what each says. The only one is the default one, whatever it says. Of
    /// several, a default one that has an address takes the requests to that address alone.
    pub fn new<'a>(environments: impl Iterator<Item = (&'a EnvironmentId, Option<&'a Host>)>) -> Self {
        let environments: Vec<_> = environments.collect();
        let named =
            environments.iter().filter_map(|(id, host)| Some((host.as_ref()?.authority.clone()?, (*id).clone())));
        let default = match environments.as_slice() {
            [(only, _)] => Some(*only),
            several => several.iter().find(|(_, host)| host.is_some_and(Host::takes_the_rest)).map(|(id, _)| *id),
        };
        Self { default: default.cloned(), named: named.collect() }
    }

    /// The environment of a request to `host`, which may have a port.
    pub fn find(&self, host: &str) -> Option<&EnvironmentId> {
        if self.named.is_empty() {
            return self.default.as_ref();
        }
        let host = host.to_ascii_lowercase();
        let plain = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(&host);
        self.named.get(host.as_str()).or_else(|| self.named.get(plain)).or(self.default.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(base_url: &str, is_default: bool) -> Host {
        let settings = EnvironmentSettings { base_url: base_url.to_owned(), is_default, ..Default::default() };
        Host::compile(settings).unwrap()
    }

    #[test]
    fn a_host_names_its_environment_and_every_other_one_the_default() {
        let (one, two, three) = (EnvironmentId::new("env_1"), EnvironmentId::new("env_2"), EnvironmentId::new("env_3"));
        let (first, second, third) =
            (host("https://API.example.com", false), host("", true), host("http://t:81/x/", false));
        let all = [(&one, Some(&first)), (&two, Some(&second)), (&three, Some(&third))];
        let hosts = Hosts::new(all.into_iter());
        for (asked, expected) in [
            ("api.example.com", &one),
            ("API.example.com:443", &one),
            ("api.example.com:8443", &two),
            ("t:81", &three),
            ("t", &two),
            ("", &two),
        ] {
            assert_eq!(hosts.find(asked), Some(expected), "{asked}");
        }
        assert_eq!(third.base_url.as_deref(), Some("http://t:81/x"));
    }

    #[test]
    fn an_unknown_host_is_nobodys_where_the_default_environment_has_an_address() {
        let (one, two) = (EnvironmentId::new("env_1"), EnvironmentId::new("env_2"));
        let (first, second) = (host("https://api.example.com", true), host("", false));
        let hosts = Hosts::new([(&one, Some(&first)), (&two, Some(&second))].into_iter());
        assert_eq!(hosts.find("api.example.com"), Some(&one));
        assert_eq!(hosts.find("qa.example.com"), None);
    }

    #[test]
    fn the_only_environment_takes_all() {
        let only = EnvironmentId::new("env_1");
        assert_eq!(Hosts::new([(&only, None)].into_iter()).find("x"), Some(&only));
        assert_eq!(Hosts::new([(&only, None), (&only, None)].into_iter()).find("x"), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in ["example.com", "ftp://x", "https://"] {
            let settings = EnvironmentSettings { base_url: wrong.to_owned(), ..Default::default() };
            assert!(Host::compile(settings).is_err(), "{wrong}");
        }
    }
}
