//! Actions of an entry, and the call that an action makes of its params: the place of each and its
//! form there. The request schema says what the params may be, see `schema.rs`.

mod text;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use kanat_json::{decode, members};
use kanat_model::FieldError;
use serde::Deserialize;

use crate::schema::{self, Schema};
use crate::template::{pairs, placeholders, schema_value};

/// Something that an instance of an entry can do.
///
/// The request schema describes all params of a call as one object. Those that `path` and `headers`
/// name go there, those of `query` into the query; the others are what `body` says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Unique in the entry; a step names it as `<entry>.<slug>`.
    pub slug: String,
    /// Name for people.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// HTTP method, in capitals.
    pub method: String,
    /// Under the base URL; `{param}` stands for a param as one segment, `{+param}` for one that may
    /// hold slashes.
    pub path: String,
    /// Params that go into the query; the others too where there is no body. Of `+param` its
    /// members do.
    #[serde(default)]
    pub query: Vec<String>,
    /// Headers of every call, names with texts in which `{param}` stands for a param. One whose
    /// params are missing is left out.
    #[serde(default, deserialize_with = "pairs")]
    pub headers: Vec<(String, String)>,
    /// Form of the params that go nowhere else; by its method when it is left out.
    #[serde(default)]
    pub body: Option<Body>,
    /// JSON Schema of the params, as JSON text. A `default` of a member is sent where the caller
    /// leaves it out.
    #[serde(deserialize_with = "json_text")]
    pub request_schema: String,
    /// JSON Schema of the answer's body, as JSON text.
    #[serde(deserialize_with = "json_text")]
    pub response_schema: String,
    /// The params that have a default, each with the JSON text of it; read from the request schema.
    #[serde(skip)]
    pub(crate) defaults: Vec<(String, String)>,
    #[serde(skip)]
    schema: Option<Schema>,
    #[serde(skip)]
    refusal: Refusals,
}

/// How a provider that answers everything with 200 says no.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    /// Path of the deciding value, from the answer's root: names and places of a list with dots
    /// between, `*` for any name.
    member: String,
    /// Its value, when the call was refused. Left out: any but null, false, 0 and what is empty.
    #[serde(default)]
    is: Option<serde_json::Value>,
    /// The path of what says why.
    #[serde(default)]
    message: String,
}

/// Several ways to say no, of which an entry may have one or a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Refusals {
    #[default]
    None,
    One(Refusal),
    Several(Vec<Refusal>),
}

impl Refusal {
    /// Why the call was refused, when this answer says that it was.
    pub(crate) fn reason(&self, body: &[u8]) -> Option<String> {
        let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
        let tells = |found: &serde_json::Value| match &self.is {
            Some(value) => found == value,
            None => is_something(found),
        };
        at(&answer, &self.member)
            .into_iter()
            .find(|found| tells(found))?;
        let whys = at(&answer, &self.message);
        let why = whys
            .into_iter()
            .find_map(serde_json::Value::as_str)
            .unwrap_or("it does not say why");
        Some(format!("the provider refused the call: {why}"))
    }
}

impl Refusals {
    fn all(&self) -> &[Refusal] {
        match self {
            Self::None => &[],
            Self::One(refusal) => std::slice::from_ref(refusal),
            Self::Several(refusals) => refusals,
        }
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns why the call was refused, when this answer says that it was.
    pub(crate) fn reason(&self, body: &[u8]) -> Option<String> {
        self.all().iter().find_map(|refusal| refusal.reason(body))
    }
}

/// Returns the values at a path: several where it has `*`.
fn at<'a>(answer: &'a serde_json::Value, path: &str) -> Vec<&'a serde_json::Value> {
    let mut found = vec![answer];
    for name in path.split('.') {
        found = found
            .into_iter()
            .flat_map(|value| members_of(value, name))
            .collect();
    }
    found
}

fn members_of<'a>(value: &'a serde_json::Value, name: &str) -> Vec<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(members) if name == "*" => members.values().collect(),
        serde_json::Value::Object(members) => members.get(name).into_iter().collect(),
        serde_json::Value::Array(items) => name
            .parse()
            .ok()
            .and_then(|place: usize| items.get(place))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

fn is_something(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => false,
        serde_json::Value::Bool(value) => *value,
        serde_json::Value::Number(number) => number.as_f64() != Some(0.0),
        serde_json::Value::String(text) => !text.is_empty(),
        serde_json::Value::Array(items) => !items.is_empty(),
        serde_json::Value::Object(members) => !members.is_empty(),
    }
}

/// Form of the params that go neither into the path nor into the query nor into a header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// There is no body: they are the query.
    None,
    /// A JSON object of them.
    Json,
    /// This param's value is the JSON body, whatever it is; the others are the query.
    Param(String),
    /// `application/x-www-form-urlencoded`; members of objects are written as `name[member]`.
    Form,
}

/// A call that is ready for an instance: its URL is still to be made (`Instance::request_url`), the
/// instance's headers and credentials are still to be added (`Instance::apply_auth`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// HTTP method.
    pub method: Method,
    /// Path and query, percent-encoded.
    pub endpoint: String,
    /// Headers of the action, and the content type of the body.
    pub headers: HeaderMap,
    /// Absent where the params are the query.
    pub body: Option<Vec<u8>>,
}

/// A param that cannot go where its action puts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamError {
    /// The param's name.
    pub param: String,
    /// Description of the fault.
    pub message: String,
}

impl Action {
    /// How the body is written.
    pub fn body(&self) -> Body {
        match &self.body {
            Some(body) => body.clone(),
            None if matches!(self.method.as_str(), "GET" | "HEAD" | "DELETE") => Body::None,
            None => Body::Json,
        }
    }

    /// Completes the parsed file: reads schemas, finds defaults.
    pub(crate) fn complete(&mut self, refusal: &Refusals) -> Result<(), String> {
        let request = schema_value(&self.request_schema);
        self.defaults = schema::defaults(&request);
        self.schema = Some(Schema::new(request).map_err(|why| format!("request_schema {why}"))?);
        Schema::new(schema_value(&self.response_schema))
            .map_err(|why| format!("response_schema {why}"))?;
        self.refusal = refusal.clone();
        Ok(())
    }

    /// Returns the faults of params by the request schema, each under its path from `params`.
    pub fn check(&self, params: &str) -> Vec<FieldError> {
        let Some(schema) = &self.schema else {
            return Vec::new();
        };
        match serde_json::from_str(params) {
            Ok(params) => schema.faults(&params, "params"),
            Err(_) => vec![FieldError::new(
                "params",
                "hold a number or a nesting that cannot be checked",
            )],
        }
    }

    /// Returns how closely its path is that of `segments`, the greater the closer: a literal
    /// segment before a param, and a param of one segment before one that may hold slashes. `None`
    /// when it is another path.
    pub(crate) fn closeness(&self, segments: &[&str]) -> Option<Vec<u8>> {
        let template: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        let mut closeness = Vec::with_capacity(template.len());
        for (at, own) in template.iter().enumerate() {
            let given = *segments.get(at)?;
            if own.starts_with("{+") {
                // It takes all that is left, for nothing stands behind it in any path.
                closeness.push(0);
                return Some(closeness);
            }
            if own.contains('{') && !given.is_empty() {
                closeness.push(1);
            } else if *own == given {
                closeness.push(2);
            } else {
                return None;
            }
        }
        (segments.len() == template.len()).then_some(closeness)
    }

    /// Why the provider refused, when an answer with a status of success says so in its body.
    pub fn refusal(&self, body: &[u8]) -> Option<String> {
        self.refusal.reason(body)
    }

    /// The call for these params, a JSON object that has been checked. Numbers in the body keep
    /// their digits.
    pub fn call(&self, params: &str) -> Result<Call, ParamError> {
        let method = Method::from_bytes(self.method.as_bytes()).map_err(|_| {
            wrong(
                "",
                format!("the action's method {:?} is none of HTTP", self.method),
            )
        })?;
        let mut params = Params::new(members(params), &self.defaults);
        let mut endpoint = self.fill_path(&mut params)?;
        let mut headers = self.fill_headers(&mut params)?;
        let (mut rest, mut query) =
            params.split(|name| self.query_params().any(|known| known == name));
        let body = match self.body() {
            Body::None => {
                query.append(&mut rest);
                None
            }
            Body::Json => Some(("application/json", text::object(&rest))),
            Body::Form => Some(("application/x-www-form-urlencoded", text::form(&rest))),
            Body::Param(name) => {
                let at = rest.iter().position(|(key, _)| *key == name);
                let body = at.map(|at| rest.remove(at).1.as_bytes().to_vec());
                query.append(&mut rest);
                body.map(|body| ("application/json", body))
            }
        };
        text::write_query(&self.spread(query), &mut endpoint);
        if let Some((kind, _)) = &body {
            headers
                .entry(header::CONTENT_TYPE)
                .or_insert(HeaderValue::from_static(kind));
        }
        Ok(Call {
            method,
            endpoint,
            headers,
            body: body.map(|(_, body)| body),
        })
    }

    /// Puts the members of those params that the query names with a plus in their place.
    fn spread<'p>(&self, query: Vec<(String, &'p str)>) -> Vec<(String, &'p str)> {
        let mut spread = Vec::with_capacity(query.len());
        for (name, value) in query {
            if self
                .query
                .iter()
                .any(|known| known.strip_prefix('+') == Some(&name))
            {
                spread.extend(
                    members(value)
                        .into_iter()
                        .map(|(key, value)| (decode(key).into_owned(), value)),
                );
            } else {
                spread.push((name, value));
            }
        }
        spread
    }

    /// The names of the params that go into the query, where the action says so.
    pub(crate) fn query_params(&self) -> impl Iterator<Item = &str> {
        self.query
            .iter()
            .map(|name| name.strip_prefix('+').unwrap_or(name))
    }

    /// The names of the params that the path takes, and whether each may hold slashes.
    pub(crate) fn path_params(&self) -> impl Iterator<Item = (&str, bool)> {
        placeholders(&self.path).map(|name| match name.strip_prefix('+') {
            Some(name) => (name, true),
            None => (name, false),
        })
    }

    /// The names of the params that headers take.
    pub(crate) fn header_params(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().flat_map(|(_, text)| placeholders(text))
    }

    /// The param that is the whole path, where the action is for any path.
    pub fn open_path(&self) -> Option<&str> {
        self.path
            .strip_prefix("/{+")
            .and_then(|rest| rest.strip_suffix('}'))
    }

    fn fill_path(&self, params: &mut Params) -> Result<String, ParamError> {
        let filled = fill(&self.path, |name| match name.strip_prefix('+') {
            Some(name) => text::path(name, params.value(name)),
            None => text::segment(name, params.value(name)),
        })?;
        params
            .used
            .extend(self.path_params().map(|(name, _)| name.to_owned()));
        Ok(filled)
    }

    fn fill_headers(&self, params: &mut Params) -> Result<HeaderMap, ParamError> {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 1);
        for (name, template) in &self.headers {
            let missing = |name| params.value(name).is_none_or(|value| value == "null");
            if placeholders(template).any(missing) {
                continue;
            }
            let filled = fill(template, |name| text::plain(name, params.value(name)))?;
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| wrong("", format!("the action's header {name:?} is none of HTTP")))?;
            let value = HeaderValue::from_str(&filled)
                .map_err(|_| wrong(name.as_str(), "has a character that no header may have"))?;
            headers.insert(name, value);
        }
        params.used.extend(self.header_params().map(str::to_owned));
        Ok(headers)
    }
}

/// A param of a call: its decoded name, and its JSON.
type Member<'p> = (String, &'p str);

/// The params of one call.
struct Params<'p> {
    members: Vec<Member<'p>>,
    used: Vec<String>,
}

impl<'p> Params<'p> {
    fn new(given: Vec<(&'p str, &'p str)>, defaults: &'p [(String, String)]) -> Self {
        let mut members: Vec<_> = given
            .into_iter()
            .map(|(key, value)| (decode(key).into_owned(), value))
            .collect();
        for (name, value) in defaults {
            if !members.iter().any(|(key, _)| key == name) {
                members.push((name.clone(), value));
            }
        }
        Self {
            members,
            used: Vec::new(),
        }
    }

    fn value(&self, name: &str) -> Option<&'p str> {
        self.members
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    }

    /// Splits the params: those that are not `named`, and those that are.
    fn split(self, named: impl Fn(&str) -> bool) -> (Vec<Member<'p>>, Vec<Member<'p>>) {
        let used = self.used;
        let rest = self
            .members
            .into_iter()
            .filter(|(key, _)| !used.contains(key));
        rest.partition(|(key, _)| !named(key))
    }
}

/// `template` with each `{name}` replaced by what `value` makes of it.
fn fill(
    template: &str,
    value: impl Fn(&str) -> Result<String, ParamError>,
) -> Result<String, ParamError> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        filled.push_str(before);
        filled.push_str(&value(name)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn wrong(param: &str, message: impl Into<String>) -> ParamError {
    ParamError {
        param: param.to_owned(),
        message: message.into(),
    }
}

fn json_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    serde_json::Value::deserialize(deserializer).map(|schema| schema.to_string())
}

#[cfg(test)]
mod tests;
