//! Finds the environment of a request by the host that it names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_model::id::EnvironmentId;
use kanat_net::Authority;
use kanat_proto::plan::v1::EnvironmentSettings;
use url::Url;

/// Settings of an environment: the hosts of requests to it, its sealing key, and its variables.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Address of the environment's APIs, without a slash at the end; `None` when it has none.
    pub base_url: Option<Box<str>>,
    authority: Option<Authority>,
    /// True if the environment gets the requests whose host names no environment, unless it has an
    /// address.
    is_default: bool,
    /// Host name of the service's public URL.
    public_host: Option<Box<str>>,
    /// Sealer of content that nobody may read in the message log; `None` from a control plane of a
    /// former build.
    pub sealer: Option<Arc<Sealer>>,
    /// Variables that expressions read, a JSON object of texts.
    pub variables: Box<[u8]>,
}

impl Settings {
    /// Compiles settings.
    ///
    /// # Errors
    /// The settings are not valid; the text is for an operator.
    pub fn compile(settings: EnvironmentSettings) -> Result<Self, String> {
        let EnvironmentSettings {
            base_url,
            is_default,
            public_host,
            sealing_key,
            variables,
            ..
        } = settings;
        let variables: BTreeMap<_, _> = variables
            .into_iter()
            .map(|variable| (variable.name, variable.value))
            .collect();
        let variables = serde_json::to_vec(&variables).map_err(|error| error.to_string())?;
        let variables = variables.into_boxed_slice();
        let sealer = match sealing_key.as_slice() {
            [] => None,
            key => {
                let key: [u8; 32] = key
                    .try_into()
                    .map_err(|_| "the sealing key is not of 32 bytes".to_owned())?;
                Some(Arc::new(
                    Sealer::from_keys(&[key]).map_err(|error| error.to_string())?,
                ))
            }
        };
        let public_host = Some(public_host)
            .filter(|host| !host.is_empty())
            .map(|host| Authority::new(&host).name().into());
        if base_url.is_empty() {
            return Ok(Self {
                base_url: None,
                authority: None,
                is_default,
                public_host,
                sealer,
                variables,
            });
        }
        let url = Url::parse(&base_url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let authority = url
            .as_ref()
            .and_then(Authority::of_url)
            .ok_or_else(|| format!("{base_url:?} is no address of an environment"))?;
        let base_url = Some(base_url.trim_end_matches('/').into());
        Ok(Self {
            base_url,
            authority: Some(authority),
            is_default,
            public_host,
            sealer,
            variables,
        })
    }
}

impl Settings {
    /// Returns whether requests to hosts that no environment has belong to this one.
    fn is_catch_all(&self) -> bool {
        self.is_default && self.authority.is_none()
    }
}

/// Part of the account's environments that an index has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    Whole,
    /// The node may lack some.
    Partial,
}

/// The environments of a node by host.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Environments by their hosts; `None` for a host that several environments have.
    named: HashMap<Authority, Option<EnvironmentId>>,
    default: Option<EnvironmentId>,
    /// Host names of the service itself.
    public: HashSet<Box<str>>,
    /// True if an unknown host may be that of another environment.
    uses_host_names: bool,
}

impl Hosts {
    /// Builds the index of environments, which are in the order of their ids. The only environment
    /// is the default one, whatever its settings are. If there are several, a default environment
    /// with an address gets only the requests to it. An address that two environments have is used
    /// for neither. Only the default environment may have the host of the service as its address.
    pub fn new<'a>(
        environments: impl Iterator<Item = (&'a EnvironmentId, Option<&'a Settings>)>,
        coverage: Coverage,
    ) -> Self {
        let environments: Vec<_> = environments.collect();
        let public: HashSet<_> = environments
            .iter()
            .filter_map(|(_, host)| host.as_ref()?.public_host.clone())
            .collect();
        let mut named = HashMap::new();
        let mut uses_host_names = coverage == Coverage::Partial;
        for (id, host) in &environments {
            let Some((host, authority)) =
                host.and_then(|host| Some((host, host.authority.as_ref()?)))
            else {
                continue;
            };
            uses_host_names = true;
            if host.is_default || !public.contains(authority.name()) {
                named
                    .entry(authority.clone())
                    .and_modify(|one| *one = None)
                    .or_insert_with(|| Some((*id).clone()));
            }
        }
        let default = match environments.as_slice() {
            [(only, _)] if coverage == Coverage::Whole => Some(*only),
            several => several
                .iter()
                .find(|(_, host)| host.is_some_and(Settings::is_catch_all))
                .map(|(id, _)| *id),
        };
        Self {
            default: default.cloned(),
            named,
            public,
            uses_host_names,
        }
    }

    /// Returns the environment of a request to `host`, which may have a port. If environments have
    /// host names, a request to an unknown host has no environment, because the host may be that of
    /// an environment that this node does not know yet. An IP address, a name without a domain, and
    /// the service's own host cannot be: these belong to the default environment.
    pub fn find(&self, host: &str) -> Option<&EnvironmentId> {
        if !self.uses_host_names {
            return self.default.as_ref();
        }
        let authority = Authority::new(host);
        match self.named.get(&authority) {
            Some(named) => named.as_ref(),
            None if authority.has_no_domain() || self.public.contains(authority.name()) => {
                self.default.as_ref()
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(base_url: &str, is_default: bool) -> Settings {
        let public_host = "hooks.example.com".to_owned();
        let settings = EnvironmentSettings {
            base_url: base_url.to_owned(),
            is_default,
            public_host,
            ..Default::default()
        };
        Settings::compile(settings).unwrap()
    }

    #[test]
    fn a_host_names_its_environment_and_one_of_the_service_the_default() {
        let one = EnvironmentId::new("env_1");
        let two = EnvironmentId::new("env_2");
        let three = EnvironmentId::new("env_3");
        let first = host("https://API.example.com", false);
        let second = host("", true);
        let third = host("http://t:81/x/", false);
        let all = [
            (&one, Some(&first)),
            (&two, Some(&second)),
            (&three, Some(&third)),
        ];
        let hosts = Hosts::new(all.into_iter(), Coverage::Whole);
        for (asked, expected) in [
            ("api.example.com", &one),
            ("API.example.com:443", &one),
            ("t:81", &three),
            ("t", &two),
            ("", &two),
            ("10.0.0.7", &two),
            ("10.0.0.7:8080", &two),
            ("[::1]", &two),
            ("[::1]:8080", &two),
            ("::1", &two),
            ("localhost:8080", &two),
            ("api.LOCALHOST", &two),
            ("kanat:8080", &two),
            ("hooks.example.com", &two),
            ("Hooks.example.com:8443", &two),
            ("hooks.example.com.", &two),
        ] {
            assert_eq!(hosts.find(asked), Some(expected), "{asked}");
        }
        assert_eq!(third.base_url.as_deref(), Some("http://t:81/x"));
    }

    #[test]
    fn a_host_that_several_environments_name_is_nobodys() {
        let ids = ["env_1", "env_2", "env_3"].map(EnvironmentId::new);
        let settings = [
            host("http://api.example.com", false),
            host("https://api.example.com", false),
            host("", true),
        ];
        let hosts = Hosts::new(ids.iter().zip(settings.iter().map(Some)), Coverage::Whole);
        for asked in ["api.example.com", "api.example.com:443"] {
            assert_eq!(hosts.find(asked), None, "{asked}");
        }
        assert_eq!(hosts.find("hooks.example.com"), Some(&ids[2]));
    }

    #[test]
    fn the_host_of_the_service_is_the_default_environments_whatever_another_one_says() {
        let ids = ["env_1", "env_2"].map(EnvironmentId::new);
        for (default, expected) in [
            ("", Some(&ids[1])),
            ("https://hooks.example.com", Some(&ids[1])),
            ("https://api.example.com", None),
        ] {
            let settings = [host("http://Hooks.example.com", false), host(default, true)];
            let hosts = Hosts::new(ids.iter().zip(settings.iter().map(Some)), Coverage::Whole);
            assert_eq!(hosts.find("hooks.example.com"), expected, "{default}");
            assert_eq!(hosts.find("qa.example.com"), None, "{default}");
        }
    }

    #[test]
    fn an_unknown_host_is_nobodys_where_an_environment_has_an_address() {
        let one = EnvironmentId::new("env_1");
        let two = EnvironmentId::new("env_2");
        let first = host("https://api.example.com", false);
        let second = host("", true);
        let hosts = Hosts::new(
            [(&one, Some(&first)), (&two, Some(&second))].into_iter(),
            Coverage::Whole,
        );
        for asked in [
            "qa.example.com",
            "api.example.com:8443",
            "hooks.example.com.evil.example",
            "1.2.3.4.example:80",
        ] {
            assert_eq!(hosts.find(asked), None, "{asked}");
        }
    }

    #[test]
    fn every_host_is_the_default_environments_where_none_has_an_address() {
        let one = EnvironmentId::new("env_1");
        let two = EnvironmentId::new("env_2");
        let first = host("", false);
        let second = host("", true);
        let hosts = Hosts::new(
            [(&one, Some(&first)), (&two, Some(&second))].into_iter(),
            Coverage::Whole,
        );
        assert_eq!(hosts.find("api.example.com"), Some(&two));
    }

    #[test]
    fn an_unknown_host_is_nobodys_where_the_default_environment_has_an_address() {
        let one = EnvironmentId::new("env_1");
        let two = EnvironmentId::new("env_2");
        let first = host("https://api.example.com", true);
        let second = host("", false);
        let hosts = Hosts::new(
            [(&one, Some(&first)), (&two, Some(&second))].into_iter(),
            Coverage::Whole,
        );
        assert_eq!(hosts.find("api.example.com"), Some(&one));
        assert_eq!(hosts.find("qa.example.com"), None);
    }

    #[test]
    fn the_only_environment_takes_all() {
        let only = EnvironmentId::new("env_1");
        let found = |hosts: &Hosts, asked| hosts.find(asked).cloned();
        assert_eq!(
            found(
                &Hosts::new([(&only, None)].into_iter(), Coverage::Whole),
                "x.example"
            ),
            Some(only.clone())
        );
        assert_eq!(
            found(
                &Hosts::new([(&only, None), (&only, None)].into_iter(), Coverage::Whole),
                "x.example"
            ),
            None
        );
    }

    #[test]
    fn the_only_environment_takes_its_own_host_and_those_of_the_service() {
        let only = EnvironmentId::new("env_1");
        let own = host("https://api.example.com", false);
        let hosts = Hosts::new([(&only, Some(&own))].into_iter(), Coverage::Whole);
        assert_eq!(hosts.find("api.example.com"), Some(&only));
        assert_eq!(hosts.find("10.0.0.7"), Some(&only));
        assert_eq!(hosts.find("qa.example.com"), None);
    }

    #[test]
    fn a_host_may_be_that_of_an_environment_of_which_the_node_has_not_heard() {
        let one = EnvironmentId::new("env_1");
        let two = EnvironmentId::new("env_2");
        let first = host("", true);
        let second = host("", false);
        let hosts = Hosts::new([(&one, Some(&first))].into_iter(), Coverage::Partial);
        assert_eq!(hosts.find("10.0.0.7"), Some(&one));
        assert_eq!(hosts.find("hooks.example.com"), Some(&one));
        assert_eq!(hosts.find("api.example.com"), None);
        let hosts = Hosts::new([(&two, Some(&second))].into_iter(), Coverage::Partial);
        assert_eq!(
            hosts.find("10.0.0.7"),
            None,
            "it is not the default environment because it came first"
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in ["example.com", "ftp://x", "https://"] {
            let settings = EnvironmentSettings {
                base_url: wrong.to_owned(),
                ..Default::default()
            };
            assert!(Settings::compile(settings).is_err(), "{wrong}");
        }
    }
}
