//! Compiled published API: what a node needs of it to answer its calls.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use kanat_engine::Answer;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::published_api::Validation;
use kanat_proto::plan::v1;
use kanat_schema::Schema;

use super::path::Path;
use super::response_mapping::ResponseMapping;

/// Headers that a page may always send: a call may need them.
const ALWAYS_ALLOWED: [&str; 3] = ["authorization", "content-type", "idempotency-key"];

/// Time limit of a synchronous call when the API does not have one.
const DEADLINE: Duration = Duration::from_secs(30);

/// One method on one path, in all its versions.
#[derive(Debug)]
pub(crate) struct Api {
    pub id: String,
    pub method: Method,
    pub path: Path,
    pub auth: Auth,
    /// Fate of a request that does not fit the schema.
    pub request_validation: Validation,
    /// Versions in the order of their numbers; at least one.
    pub versions: Vec<Version>,
    /// Time limit of a synchronous call.
    pub deadline: Duration,
    /// True if the message of a call that ran out of time is discarded; otherwise it goes on.
    pub discard_late: bool,
    pub cors: Option<Cors>,
}

/// Authentication of callers.
#[derive(Debug)]
pub(crate) enum Auth {
    Anyone,
    ConsumerKey,
    OAuth2(v1::OAuth2),
}

#[derive(Debug)]
pub(crate) struct Version {
    /// The label, such as `v2`; `number` is the number in it.
    pub label: String,
    pub number: u32,
    pub state: State,
    pub flow_id: FlowId,
    pub request_schema: Option<Schema>,
    /// Form of the answers to synchronous calls; `None` when calls are asynchronous.
    pub response_mapping: Option<Arc<ResponseMapping>>,
}

/// State of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Deprecated { sunset: Option<Timestamp> },
    Retired,
}

impl State {
    pub fn is_deprecated(self) -> bool {
        match self {
            Self::Deprecated { .. } => true,
            Self::Active | Self::Retired => false,
        }
    }
}

/// Pages of other origins that may call from a browser.
#[derive(Debug)]
pub(crate) struct Cors {
    pub origins: Origins,
    /// Headers that requests may have, as the answer lists them.
    pub allowed_headers: HeaderValue,
    /// True if requests may have any header.
    pub any_header: bool,
    pub exposed_headers: Option<HeaderValue>,
    pub credentials: bool,
    pub max_age: Option<HeaderValue>,
}

#[derive(Debug)]
pub(crate) enum Origins {
    Any,
    Listed(Vec<String>),
}

impl Api {
    /// Compiles a plan.
    ///
    /// # Errors
    /// The API cannot run; the text is for an operator.
    pub fn compile(plan: v1::PublishedApi) -> Result<Self, String> {
        let method = match plan.method.as_str() {
            "GET" | "POST" | "PUT" | "PATCH" | "DELETE" => {
                Method::from_bytes(plan.method.as_bytes()).ok()
            }
            _ => None,
        };
        let response_validation = validation(plan.strict_response);
        let versions = plan
            .versions
            .into_iter()
            .map(|version| Version::compile(version, response_validation));
        let mut versions = versions.collect::<Result<Vec<_>, _>>()?;
        versions.sort_by_key(|version| version.number);
        if versions.is_empty() {
            return Err("a published API has at least one version".to_owned());
        }
        if versions
            .windows(2)
            .any(|pair| pair[0].number == pair[1].number)
        {
            return Err("two versions have one number".to_owned());
        }
        Ok(Self {
            id: plan.id,
            method: method
                .ok_or_else(|| format!("{:?} is no method of a published API", plan.method))?,
            path: Path::parse(&plan.path)?,
            auth: Auth::compile(&plan.auth, plan.oauth2)?,
            request_validation: validation(plan.strict),
            versions,
            deadline: if plan.deadline_ms == 0 {
                DEADLINE
            } else {
                Duration::from_millis(plan.deadline_ms)
            },
            discard_late: plan.discard_late,
            cors: plan.cors.map(Cors::compile).transpose()?,
        })
    }

    /// Returns the index in [`Self::versions`] of the one with this number; without a number, of
    /// the latest active one, else of the latest deprecated one, else of the latest.
    pub fn version_index(&self, number: Option<u32>) -> Option<usize> {
        if let Some(number) = number {
            return self
                .versions
                .iter()
                .position(|version| version.number == number);
        }
        let last = |holds: fn(State) -> bool| {
            self.versions
                .iter()
                .rposition(|version| holds(version.state))
        };
        last(|state| state == State::Active)
            .or_else(|| last(|state| state != State::Retired))
            .or_else(|| self.versions.len().checked_sub(1))
    }

    /// The version that callers of another one are pointed to.
    pub fn successor(&self) -> Option<&Version> {
        self.versions
            .iter()
            .rev()
            .find(|version| version.state == State::Active)
    }
}

impl Auth {
    fn compile(kind: &str, oauth2: Option<v1::OAuth2>) -> Result<Self, String> {
        match (kind, oauth2) {
            ("none", _) => Ok(Self::Anyone),
            ("api_key", _) => Ok(Self::ConsumerKey),
            // An empty audience would let in tokens that were made for others.
            ("oauth2", Some(oauth2))
                if !oauth2.issuer.is_empty() && !oauth2.audience.is_empty() =>
            {
                Ok(Self::OAuth2(oauth2))
            }
            ("oauth2", _) => Err("oauth2 needs an issuer and an audience".to_owned()),
            (other, _) => Err(format!(
                "{other:?} is not an authentication of a published API"
            )),
        }
    }
}

/// Returns the validation that a plan asks for.
fn validation(strict: bool) -> Validation {
    match strict {
        true => Validation::Strict,
        false => Validation::Lenient,
    }
}

impl Version {
    fn compile(plan: v1::ApiVersion, response_validation: Validation) -> Result<Self, String> {
        let state = match plan.status.as_str() {
            "active" => State::Active,
            "deprecated" => {
                let sunset = (plan.sunset_at != 0).then(|| Timestamp::from_millis(plan.sunset_at));
                State::Deprecated { sunset }
            }
            "retired" => State::Retired,
            other => return Err(format!("{other:?} is no status of a version")),
        };
        let request_schema = schema(&plan.label, "requestSchema", &plan.request_schema)?;
        let response_mapping = plan
            .synchronous
            .then(|| response_mapping(&plan, response_validation).map(Arc::new))
            .transpose()?;
        let v1::ApiVersion {
            label,
            number,
            flow_id,
            ..
        } = plan;
        Ok(Self {
            label,
            number,
            state,
            flow_id: FlowId::new(flow_id),
            request_schema,
            response_mapping,
        })
    }
}

fn response_mapping(
    plan: &v1::ApiVersion,
    validation: Validation,
) -> Result<ResponseMapping, String> {
    let mapping = plan
        .response_mapping
        .as_ref()
        .map(Answer::compile)
        .transpose();
    Ok(ResponseMapping {
        mapping: mapping.map_err(|error| format!("{error}, in {}", plan.label))?,
        schema: schema(&plan.label, "responseSchema", &plan.response_schema)?,
        validation,
    })
}

fn schema(version: &str, name: &str, text: &str) -> Result<Option<Schema>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    Schema::compile(text)
        .map(Some)
        .map_err(|error| format!("{name} of {version}: {error}"))
}

impl Cors {
    fn compile(plan: v1::Cors) -> Result<Self, String> {
        let origins = if plan.origins.iter().any(|origin| origin == "*") {
            Origins::Any
        } else {
            Origins::Listed(
                plan.origins
                    .iter()
                    .map(|origin| origin.to_ascii_lowercase())
                    .collect(),
            )
        };
        let always = ALWAYS_ALLOWED.map(str::to_owned);
        let allowed: Vec<String> = always
            .into_iter()
            .chain(plan.headers.iter().cloned())
            .collect();
        Ok(Self {
            origins,
            allowed_headers: names(&allowed)?.unwrap_or(HeaderValue::from_static("authorization")),
            any_header: plan.headers.iter().any(|header| header == "*"),
            exposed_headers: names(&plan.exposed_headers)?,
            credentials: plan.credentials,
            max_age: (plan.max_age_seconds > 0).then(|| HeaderValue::from(plan.max_age_seconds)),
        })
    }
}

/// A list of names of headers.
fn names(names: &[String]) -> Result<Option<HeaderValue>, String> {
    if let Some(wrong) = names
        .iter()
        .find(|name| *name != "*" && HeaderName::from_bytes(name.as_bytes()).is_err())
    {
        return Err(format!("{wrong:?} is no name of an HTTP header"));
    }
    Ok(HeaderValue::from_str(&names.join(", "))
        .ok()
        .filter(|list| !list.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(states: &[&str]) -> Api {
        let versions = states
            .iter()
            .zip(1..)
            .map(|(status, number)| v1::ApiVersion {
                label: format!("v{number}"),
                number,
                status: (*status).to_owned(),
                ..Default::default()
            });
        let plan = v1::PublishedApi {
            method: "POST".to_owned(),
            path: "orders".to_owned(),
            auth: "none".to_owned(),
            versions: versions.collect(),
            ..Default::default()
        };
        Api::compile(plan).unwrap()
    }

    #[test]
    fn a_request_without_a_version_goes_to_the_latest_active_one() {
        let number = |states: &[&str]| {
            let api = api(states);
            api.versions[api.version_index(None).unwrap()].number
        };
        assert_eq!(number(&["active", "active"]), 2);
        assert_eq!(number(&["active", "deprecated", "retired"]), 1);
        assert_eq!(number(&["deprecated", "deprecated", "retired"]), 2);
        assert_eq!(number(&["retired", "retired"]), 2);
        assert_eq!(api(&["active"]).version_index(Some(2)), None);
    }

    #[test]
    fn what_this_build_does_not_know_is_refused() {
        let with = |change: fn(&mut v1::PublishedApi)| {
            let version = v1::ApiVersion {
                number: 1,
                status: "active".into(),
                ..Default::default()
            };
            let mut plan = v1::PublishedApi {
                method: "POST".into(),
                path: "a".into(),
                auth: "none".into(),
                versions: vec![version],
                ..Default::default()
            };
            change(&mut plan);
            Api::compile(plan).map(drop)
        };
        assert_eq!(with(|_| {}), Ok(()));
        for wrong in [
            with(|plan| plan.method = "BREW".into()),
            with(|plan| plan.path = "a//b".into()),
            with(|plan| plan.auth = "mtls".into()),
            with(|plan| plan.auth = "oauth2".into()),
            with(|plan| plan.versions.clear()),
            with(|plan| plan.versions[0].status = "asleep".into()),
            with(|plan| plan.versions.push(plan.versions[0].clone())),
        ] {
            assert!(wrong.is_err());
        }
    }
}
