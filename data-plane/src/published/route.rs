//! Routing of a request to a version of an API: by host, version prefix, path and method.

use std::ops::ControlFlow;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use kanat_mapping::json::write_string;
use kanat_model::published_api::version_label;
use kanat_net::Peer;

use crate::error::Refusal;
use crate::plans::published::api::{Api, State, Version};
use crate::plans::published::path::RequestPath;
use crate::plans::{Environment, Snapshot};

/// Result of routing.
pub(crate) enum Route {
    Call(Box<Target>),
    /// `OPTIONS` at an address with APIs.
    Options(Others),
    /// The address has APIs, but none with this method.
    Method(Others),
    /// The request names more than one host.
    Hosts,
    /// The address has APIs, but not in the version of the request. Labels of that version and of
    /// the current one.
    Version {
        asked: String,
        current: String,
    },
    Nothing,
}

/// APIs at an address of which none is called.
pub(crate) struct Others {
    pub apis: Vec<Arc<Api>>,
    /// One of the APIs, if all are deprecated.
    deprecated: Option<Target>,
}

/// Version that a request calls.
pub(crate) struct Target {
    pub environment: Arc<Environment>,
    pub api: Arc<Api>,
    place: usize,
    /// Values of the path parameters.
    pub parameters: Vec<(String, String)>,
    /// Base of the successor's URL: scheme and host as the caller sees them, or nothing, and the
    /// path of the request without its version, with a leading `/`.
    address: (String, String),
}

impl Route {
    pub fn find(snapshot: &Snapshot, parts: &Parts) -> Self {
        let Some(host) = host(parts) else {
            return Self::Hosts;
        };
        let Some(environment) = snapshot.of_host(host) else {
            return Self::Nothing;
        };
        let path = parts.uri.path();
        let Some(requested) = RequestPath::parse(path) else {
            return Self::Nothing;
        };
        let method = if parts.method == Method::HEAD {
            &Method::GET
        } else {
            &parts.method
        };
        let mut others = Vec::new();
        let found = environment.routes.visit(&requested.segments, &mut |apis| {
            let here = apis
                .iter()
                .filter_map(|api| Some((api, api.version_index(requested.version)?)));
            for (api, place) in here {
                if api.method == *method {
                    return ControlFlow::Break((api, place));
                }
                others.push((api, place));
            }
            ControlFlow::Continue(())
        });
        let target = |api: &Arc<Api>, place: usize| Target {
            environment: Arc::clone(environment),
            api: Arc::clone(api),
            place,
            parameters: owned(api.path.parameters(&requested.segments)),
            address: match api.versions[place].state {
                // An active version needs no headers.
                State::Active => Default::default(),
                State::Deprecated { .. } | State::Retired => (
                    base(environment, host, parts.extensions.get()),
                    unversioned(path, &requested).to_owned(),
                ),
            },
        };
        if let Some((api, place)) = found {
            return Self::Call(Box::new(target(api, place)));
        }
        let Some(&(first, place)) = others.first() else {
            return Self::other_version(environment, &requested);
        };
        let are_deprecated = others
            .iter()
            .all(|(api, place)| api.versions[*place].state.is_deprecated());
        let others = Others {
            apis: others.iter().map(|(api, _)| Arc::clone(api)).collect(),
            deprecated: are_deprecated.then(|| target(first, place)),
        };
        if parts.method == Method::OPTIONS {
            Self::Options(others)
        } else {
            Self::Method(others)
        }
    }

    /// Finds the current version of an API at an address that has none in the version of the
    /// request.
    fn other_version(environment: &Environment, requested: &RequestPath<'_>) -> Self {
        let Some(number) = requested.version else {
            return Self::Nothing;
        };
        let current = environment.routes.visit(&requested.segments, &mut |apis| {
            let mut versions = apis.iter().filter_map(|api| {
                let current = &api.versions[api.version_index(None)?];
                (current.state != State::Retired).then(|| current.label.clone())
            });
            versions
                .next()
                .map_or(ControlFlow::Continue(()), ControlFlow::Break)
        });
        match current {
            Some(current) => Self::Version {
                asked: version_label(number),
                current,
            },
            None => Self::Nothing,
        }
    }
}

impl Others {
    /// Adds the deprecation headers if all versions are deprecated.
    pub fn mark(&self, headers: &mut HeaderMap) {
        if let Some(target) = &self.deprecated {
            target.mark(headers);
        }
    }
}

impl Target {
    pub fn version(&self) -> &Version {
        &self.api.versions[self.place]
    }

    /// Refuses a call of a retired version, with a link to its successor.
    pub fn check_state(&self) -> Result<(), Refusal> {
        match self.version().state {
            State::Active | State::Deprecated { .. } => return Ok(()),
            State::Retired => {}
        }
        let label = &self.version().label;
        let current = self
            .api
            .version_index(None)
            .map(|place| &self.api.versions[place]);
        let current = current.filter(|version| version.state != State::Retired);
        let message = match current {
            Some(current) => format!(
                "version {label} of this API is retired: call {}",
                current.label
            ),
            None => format!("version {label} of this API is retired, and no other one serves"),
        };
        let mut members = b"\"currentVersion\":".to_vec();
        write_text(current.map(|version| version.label.as_str()), &mut members);
        members.extend_from_slice(b",\"currentUrl\":");
        write_text(
            current.map(|version| self.url(version)).as_deref(),
            &mut members,
        );
        Err(Refusal::new(StatusCode::GONE, message).with_members(members))
    }

    /// Adds the headers of a deprecated version.
    pub fn mark(&self, headers: &mut HeaderMap) {
        let State::Deprecated { sunset } = self.version().state else {
            return;
        };
        headers.insert("deprecation", HeaderValue::from_static("true"));
        if let Some(sunset) = sunset.and_then(|sunset| u64::try_from(sunset.as_millis()).ok()) {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(sunset);
            if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(at)) {
                headers.insert("sunset", date);
            }
        }
        let link = self
            .api
            .successor()
            .map(|version| format!("<{}>; rel=\"successor-version\"", self.url(version)));
        if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
            headers.append(header::LINK, link);
        }
    }

    /// Returns the URL of the request at another version.
    fn url(&self, version: &Version) -> String {
        let (base, path) = &self.address;
        format!("{base}/{}{path}", version.label)
    }
}

/// Returns the methods of these APIs, for `Allow`.
pub(crate) fn allow(apis: &[Arc<Api>]) -> HeaderValue {
    let mut methods: Vec<&str> = apis.iter().map(|api| api.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.push("OPTIONS");
    methods.sort_unstable();
    methods.dedup();
    HeaderValue::from_str(&methods.join(", ")).unwrap_or(HeaderValue::from_static("OPTIONS"))
}

/// Returns the path of a request without its version.
fn unversioned<'r>(path: &'r str, requested: &RequestPath<'_>) -> &'r str {
    match requested.version {
        Some(_) => path
            .get(1..)
            .and_then(|rest| Some(&rest[rest.find('/')?..]))
            .unwrap_or_default(),
        None => path,
    }
}

fn owned<'a>(parameters: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    parameters
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn write_text(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => write_string(text, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Returns the host and port of a request; empty when it names none, `None` when it names several.
fn host(parts: &Parts) -> Option<&str> {
    if let Some(authority) = parts.uri.authority() {
        return Some(authority.as_str());
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let first = hosts
        .next()
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    hosts.next().is_none().then_some(first)
}

/// Returns the public base URL of the environment, else the one that the caller seems to use.
fn base(environment: &Environment, host: &str, peer: Option<&Peer>) -> String {
    if let Some(base_url) = environment.base_url() {
        return base_url.to_owned();
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_plain) {
        return String::new();
    }
    let scheme = if peer.is_some_and(|peer| peer.is_encrypted) {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{host}")
}
