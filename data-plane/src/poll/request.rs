//! Requests of a poll: URL, parameters and headers, rendered once per cycle. Credentials are sent
//! to the origin of the poll's URL, and to no other origin that a link leads to.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use kanat_catalog::Instance;
use kanat_mapping::{Effort, EvaluationError, Root, Scope, Template};
use kanat_model::Timestamp;
use kanat_proto::plan::v1::{Pagination, Poll};
use url::{Url, form_urlencoded};

use super::state::{Position, State};

/// The requests of one cycle. It carries credentials and has no `Debug`.
pub(super) struct Requests {
    pub method: Method,
    url: Url,
    /// Headers of the flow and of the instance, with its credentials.
    headers: HeaderMap,
    /// True when the credentials of the instance are sent.
    pub authorized: bool,
    /// True when the requests depend on the state, so that they ask for what came since.
    pub reads_state: bool,
    /// Query parameters that hold secrets: credentials of the instance and values rendered from its
    /// secrets.
    credentials: Vec<(String, String)>,
    /// Texts rendered from the secrets of the instance, which must not be shown either.
    pub secrets: Vec<String>,
    /// Query parameter of the position.
    parameter: String,
    first: Position,
}

impl Requests {
    /// Renders the requests of a cycle.
    ///
    /// # Errors
    /// Names the part that cannot be rendered, without values of the instance.
    pub fn prepare(
        poll: &Poll,
        instance: Option<&Instance>,
        variables: &[u8],
        state: &State,
        agent: &HeaderValue,
        now: Timestamp,
    ) -> Result<Self, String> {
        let document = state.document();
        let config = instance.map_or(&b""[..], Instance::config_json);
        let effort = Effort::default();
        let scope = Scope {
            instance: config,
            state: &document,
            variables,
            ..Scope::new(b"", now, &effort)
        };
        let is_secret =
            |names: &[String]| instance.is_none_or(|instance| instance.entry().is_secret(names));
        let mut url = url(&poll.url, &scope)?;
        let mut secrets = template(&poll.url)?.secret_texts(&scope, &is_secret);
        for param in &poll.params {
            let value = template(&param.text)?;
            secrets.extend(value.secret_texts(&scope, &is_secret));
            let value = value
                .evaluate(&scope)
                .map_err(|error| within("params", &param.name, &error))?;
            if !value.is_missing() {
                url.query_pairs_mut()
                    .append_pair(&param.name, &value.rendered());
            }
        }
        if let Some(pagination) = &poll.pagination
            && !pagination.page_size_param.is_empty()
        {
            let size = pagination.page_size.to_string();
            url = with(&url, &pagination.page_size_param, &size);
        }
        let mut headers = HeaderMap::new();
        for named in &poll.headers {
            let value = template(&named.text)?;
            secrets.extend(value.secret_texts(&scope, &is_secret));
            let value = value
                .evaluate(&scope)
                .map_err(|error| within("headers", &named.name, &error))?;
            if value.is_missing() {
                continue;
            }
            let wrong = || {
                format!(
                    "source.poll.headers.{}: no header may have this name or value",
                    named.name
                )
            };
            let name = HeaderName::from_bytes(named.name.as_bytes()).map_err(|_| wrong())?;
            headers.insert(
                name,
                HeaderValue::from_str(&value.rendered()).map_err(|_| wrong())?,
            );
        }
        secrets.retain(|secret| !secret.is_empty());
        let instance = instance.filter(|instance| is_for(instance, &url));
        if instance.is_none() && !secrets.is_empty() {
            return Err(
                "source.poll.url leads elsewhere than to the connector, whose secrets go with it"
                    .to_owned(),
            );
        }
        let mut credentials: Vec<_> = url
            .query_pairs()
            .filter(|(_, value)| secrets.iter().any(|secret| value.contains(secret.as_str())))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        if let Some(instance) = instance {
            credentials.extend(self::credentials(instance, &url, &mut headers)?);
        }
        headers
            .entry(header::USER_AGENT)
            .or_insert_with(|| agent.clone());
        headers
            .entry(header::ACCEPT)
            .or_insert(HeaderValue::from_static("application/json"));
        let authorized = instance.is_some();
        let mut reads_state = false;
        let named = poll.params.iter().chain(&poll.headers);
        for text in named.map(|named| &named.text).chain([&poll.url]) {
            reads_state |= template(text)?.references().roots.contains(&Root::State);
        }
        let (parameter, first) = positions(poll.pagination.as_ref());
        let method = Method::from_bytes(poll.method.as_bytes()).unwrap_or(Method::GET);
        Ok(Self {
            method,
            url,
            headers,
            authorized,
            reads_state,
            credentials,
            secrets,
            parameter,
            first,
        })
    }

    /// Returns the position of the first page.
    pub fn first(&self) -> Position {
        self.first.clone()
    }

    /// Returns the URL and headers of a page.
    pub fn at(&self, position: &Position) -> Result<(Url, HeaderMap), String> {
        let mut url = match position {
            Position::First => self.url.clone(),
            Position::Value(value) => with(&self.url, &self.parameter, value),
            Position::Offset(number) | Position::Page(number) => {
                with(&self.url, &self.parameter, &number.to_string())
            }
            Position::Url(url) => {
                Url::parse(url).map_err(|error| format!("the next page is no URL: {error}"))?
            }
        };
        if url.origin() != self.url.origin() {
            let public = [header::USER_AGENT, header::ACCEPT];
            let headers = public
                .into_iter()
                .filter_map(|name| Some((name.clone(), self.headers.get(&name)?.clone())));
            return Ok((url, headers.collect()));
        }
        // A link may contain them already.
        let names: Vec<String> = url
            .query_pairs()
            .map(|(name, _)| name.into_owned())
            .collect();
        for (name, value) in self
            .credentials
            .iter()
            .filter(|(name, _)| !names.contains(name))
        {
            url.query_pairs_mut().append_pair(name, value);
        }
        Ok((url, self.headers.clone()))
    }

    /// Removes the secrets that [`Self::at`] adds to a position: endpoints may repeat them in their
    /// links.
    pub fn bare(&self, position: Position) -> Position {
        let Position::Url(text) = position else {
            return position;
        };
        match Url::parse(&text) {
            Ok(mut url) if url.origin() == self.url.origin() => {
                let kept: Vec<&str> = url
                    .query()
                    .unwrap_or_default()
                    .split('&')
                    .filter(|pair| !self.is_credential(pair))
                    .collect();
                let query = kept.join("&");
                url.set_query((!query.is_empty()).then_some(query.as_str()));
                Position::Url(url.into())
            }
            Ok(_) | Err(_) => Position::Url(text),
        }
    }

    /// Returns whether `name=value` of a query is one of the credentials.
    fn is_credential(&self, pair: &str) -> bool {
        form_urlencoded::parse(pair.as_bytes()).any(|(name, value)| {
            self.credentials
                .iter()
                .any(|(own, secret)| own.eq_ignore_ascii_case(&name) && *secret == value)
        })
    }
}

/// Returns a URL with this value of a parameter of its query, and no other.
fn with(url: &Url, parameter: &str, value: &str) -> Url {
    let others: Vec<_> = url
        .query_pairs()
        .filter(|(name, _)| name != parameter)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let mut url = url.clone();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(others)
        .append_pair(parameter, value);
    url
}

/// Returns the position parameter and the first position.
fn positions(pagination: Option<&Pagination>) -> (String, Position) {
    let Some(pagination) = pagination else {
        return (String::new(), Position::First);
    };
    match pagination.strategy.as_str() {
        "offset" => (pagination.offset_param.clone(), Position::Offset(0)),
        "page" => (
            pagination.page_param.clone(),
            Position::Page(pagination.first_page.into()),
        ),
        "next_token" => (pagination.token_param.clone(), Position::First),
        _ => (pagination.cursor_param.clone(), Position::First),
    }
}

/// Returns whether the credentials of the instance are for the origin of a URL.
fn is_for(instance: &Instance, url: &Url) -> bool {
    Url::parse(instance.base_url()).is_ok_and(|place| place.origin() == url.origin())
}

/// Adds the headers and credentials of the instance. Headers of the flow take precedence.
fn credentials(
    instance: &Instance,
    url: &Url,
    headers: &mut HeaderMap,
) -> Result<Vec<(String, String)>, String> {
    instance.check_connected(Timestamp::now())?;
    let mut bare = url.clone();
    bare.set_query(None);
    instance.apply_auth(&mut bare, headers);
    Ok(bare
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect())
}

/// Renders the URL. An expression at its start gives scheme and host verbatim; others are encoded.
fn url(text: &str, scope: &Scope) -> Result<Url, String> {
    let failed = |error: EvaluationError| format!("source.poll.url: {}", error.message);
    let (head, rest) = match text.find("}}") {
        Some(end) if text.starts_with("{{") => text.split_at(end + 2),
        _ => ("", text),
    };
    let mut rendered = match head {
        "" => String::new(),
        head => template(head)?
            .evaluate(scope)
            .map_err(failed)?
            .rendered()
            .into_owned(),
    };
    if !rendered.is_empty() && rest.starts_with('/') {
        rendered.truncate(rendered.trim_end_matches('/').len());
    }
    rendered.push_str(&template(rest)?.render_endpoint(scope).map_err(failed)?);
    let url =
        Url::parse(&rendered).map_err(|error| format!("source.poll.url is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("source.poll.url is neither http nor https".to_owned());
    }
    Ok(url)
}

fn template(text: &str) -> Result<Template, String> {
    Template::parse(text)
        .map_err(|_| format!("{text:?} is in a language that this build does not speak"))
}

fn within(part: &str, name: &str, error: &EvaluationError) -> String {
    format!("source.poll.{part}.{name}: {}", error.message)
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::NamedText;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

    fn named(name: &str, text: &str) -> NamedText {
        NamedText {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    fn prepared(poll: &Poll, config: &str) -> Requests {
        let instance = Instance::new("ci_1", "shop", "http", config).unwrap();
        let state = State {
            cursor: Some("a b".to_owned()),
            last_success_at: Some(NOW),
            ..State::default()
        };
        Requests::prepare(
            poll,
            Some(&instance),
            br#"{"SHOP":"north"}"#,
            &state,
            &HeaderValue::from_static("kanat/1"),
            NOW,
        )
        .unwrap()
    }

    fn poll(url: &str) -> Poll {
        Poll {
            url: url.to_owned(),
            method: "GET".to_owned(),
            ..Poll::default()
        }
    }

    const CONFIG: &str = concat!(
        r#"{"base_url": "https://shop.example/api/", "auth": "bearer", "token": "t0p", "#,
        r#""headers": {"X-Own": "1"}}"#
    );

    #[test]
    fn templates_see_the_instance_and_the_state() {
        let pagination = Pagination {
            strategy: "offset".to_owned(),
            offset_param: "from".to_owned(),
            ..Pagination::default()
        };
        let asked = Poll {
            params: vec![
                named("since", "{{ state.last_success_at }}"),
                named("none", "{{ state.nothing }}"),
                named("from", "7"),
            ],
            headers: vec![named("X-Key", "{{ instance.token }}")],
            pagination: Some(pagination),
            ..poll("{{ instance.base_url }}/orders/{{ state.cursor }}?a={{ state.cursor }}")
        };
        let requests = prepared(&asked, CONFIG);
        let (url, headers) = requests.at(&Position::Offset(200)).unwrap();
        let since = "since=2026-01-31T08%3A15%3A00.123Z";
        assert_eq!(
            url.as_str(),
            format!("https://shop.example/api/orders/a%20b?a=a+b&{since}&from=200")
        );
        assert_eq!(requests.first(), Position::Offset(0));
        let counted = Poll {
            params: vec![named("page", "7"), named("per", "5"), named("a", "b")],
            pagination: Some(Pagination {
                strategy: "page".to_owned(),
                page_param: "page".to_owned(),
                page_size_param: "per".to_owned(),
                page_size: 50,
                ..Pagination::default()
            }),
            ..poll("https://shop.example/orders?page=3&c=d")
        };
        let counted = prepared(&counted, CONFIG);
        assert_eq!(counted.first(), Position::Page(0));
        assert_eq!(
            counted.at(&Position::Page(2)).unwrap().0.as_str(),
            "https://shop.example/orders?c=d&a=b&per=50&page=2"
        );
        for (name, value) in [
            ("x-key", "t0p"),
            ("authorization", "Bearer t0p"),
            ("x-own", "1"),
            ("user-agent", "kanat/1"),
        ] {
            assert_eq!(headers[name], value);
        }
    }

    #[test]
    fn credentials_stay_at_their_origin() {
        let asked = Poll {
            headers: vec![named("X-Key", "{{ instance.token }}")],
            ..poll("https://shop.example/orders")
        };
        let requests = prepared(&asked, CONFIG);
        let names = |url: &str| {
            let (_, headers) = requests.at(&Position::Url(url.to_owned())).unwrap();
            let mut names: Vec<_> = headers
                .keys()
                .map(|name| name.as_str().to_owned())
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(
            names("https://shop.example/orders?page=2"),
            ["accept", "authorization", "user-agent", "x-key", "x-own"]
        );
        for other in [
            "http://shop.example/",
            "https://shop.example:444/",
            "https://evil.example/",
            "https://a.shop.example/",
        ] {
            assert_eq!(names(other), ["accept", "user-agent"], "{other}");
        }
        // Nor do those of an instance go to a poll that asks elsewhere.
        let elsewhere = prepared(&poll("https://other.example/orders"), CONFIG);
        assert!(
            !elsewhere
                .at(&Position::First)
                .unwrap()
                .1
                .contains_key("authorization")
        );
        let header = named("X-Key", "{{ instance.token }}");
        let param = named("key", "{{ instance.token | base64 }}");
        for leading in [
            Poll {
                headers: vec![header],
                ..poll("https://other.example/orders")
            },
            Poll {
                params: vec![param],
                ..poll("https://other.example/orders")
            },
            poll("https://other.example/orders?key={{ instance.token }}"),
        ] {
            let instance = Instance::new("ci_1", "shop", "http", CONFIG).unwrap();
            let state = State::default();
            let agent = HeaderValue::from_static("kanat/1");
            let refused = Requests::prepare(&leading, Some(&instance), b"", &state, &agent, NOW);
            assert!(
                refused.is_err_and(|why| why.contains("leads elsewhere")),
                "{}",
                leading.url
            );
        }
    }

    #[test]
    fn a_key_in_the_query_is_there_once() {
        let config = r#"{"base_url": "https://shop.example", "auth": "api_key", "api_key": "k",
            "api_key_in": "query", "api_key_name": "key"}"#;
        let requests = prepared(&poll("https://shop.example/orders?x=1"), config);
        let at = |position: &Position| requests.at(position).unwrap().0.to_string();
        assert_eq!(
            at(&Position::First),
            "https://shop.example/orders?x=1&key=k"
        );
        let link = |text: &str| Position::Url(text.to_owned());
        assert_eq!(
            at(&link("https://shop.example/orders?key=k&page=2")),
            "https://shop.example/orders?key=k&page=2"
        );
        assert_eq!(
            at(&link("https://shop.example/orders?page=2")),
            "https://shop.example/orders?page=2&key=k"
        );
        assert_eq!(
            at(&link("https://evil.example/?page=2")),
            "https://evil.example/?page=2"
        );
    }

    #[test]
    fn a_position_is_kept_without_the_secrets_that_a_link_repeats() {
        let key = r#"{"base_url": "https://shop.example", "auth": "api_key", "api_key": "k/1",
            "api_key_in": "query", "api_key_name": "key"}"#;
        let param = Poll {
            params: vec![named("Sign", "v1 {{ instance.token }}")],
            ..poll("https://shop.example/orders?t={{ instance.token }}")
        };
        let bare =
            |requests: &Requests, link: &str| match requests.bare(Position::Url(link.to_owned())) {
                Position::Url(url) => url,
                other => panic!("{other:?}"),
            };
        let by_key = prepared(&poll("https://shop.example/orders"), key);
        for (link, kept) in [
            ("?a[]=%20b&key=k%2F1&flag", "?a[]=%20b&flag"),
            ("?KEY=k/1", ""),
            ("?key=other&page=k/1", "?key=other&page=k/1"),
            ("", ""),
        ] {
            assert_eq!(
                bare(&by_key, &format!("https://shop.example/orders{link}")),
                format!("https://shop.example/orders{kept}")
            );
        }
        assert_eq!(
            bare(&by_key, "https://evil.example/?key=k/1"),
            "https://evil.example/?key=k/1"
        );
        let by_param = prepared(&param, CONFIG);
        let link = "https://shop.example/orders?page=2&t=t0p&sign=v1+t0p";
        let kept = bare(&by_param, link);
        assert_eq!(kept, "https://shop.example/orders?page=2");
        let (asked, _) = by_param.at(&Position::Url(kept)).unwrap();
        assert_eq!(
            asked.as_str(),
            "https://shop.example/orders?page=2&t=t0p&Sign=v1+t0p"
        );
    }
}
