//! The options `google.api.http` and `kanat.v1.rest` of a method, read from its descriptor.

use http::{Method, StatusCode};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    Value,
};

/// One REST form of a method.
#[derive(Debug)]
pub(crate) struct Binding {
    pub method: Method,
    pub path: String,
    /// The body carries the request's fields; otherwise the query does.
    pub takes_body: bool,
}

/// `kanat.v1.Rest`, its field names resolved.
#[derive(Debug)]
pub(crate) struct Rest {
    pub status: StatusCode,
    pub public: bool,
    pub upload: Option<FieldDescriptor>,
    pub download: Option<FieldDescriptor>,
    pub content_type: String,
    pub file_name: String,
    pub event_data: Option<FieldDescriptor>,
    pub response_body: Option<FieldDescriptor>,
    pub text: Option<FieldDescriptor>,
    pub unknown_query: UnknownQuery,
    /// The list whose items a client stream carries.
    pub stream: Option<FieldDescriptor>,
}

/// Treatment of query parameters that are no fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownQuery {
    Refused,
    Ignored,
}

/// Returns the REST forms of a method; none when it has no annotation.
pub(crate) fn bindings(
    pool: &DescriptorPool,
    method: &MethodDescriptor,
) -> Result<Vec<Binding>, String> {
    let Some(rule) = option(pool, method, "google.api.http") else {
        return Ok(Vec::new());
    };
    let mut rules = vec![rule.clone()];
    if let Some(Value::List(more)) = rule.get_field_by_name("additional_bindings").as_deref() {
        rules.extend(more.iter().filter_map(Value::as_message).cloned());
    }
    rules.iter().map(binding).collect()
}

/// Returns whether the method needs no credential.
fn is_public(pool: &DescriptorPool, method: &MethodDescriptor) -> bool {
    let Some(extension) = pool.get_extension_by_name("kanat.v1.permission") else {
        return false;
    };
    let kind = extension.kind();
    let value = method.options().get_extension(&extension).as_enum_number();
    let name = kind
        .as_enum()
        .zip(value)
        .and_then(|(kind, value)| kind.get_value(value));
    name.is_some_and(|value| value.name() == "PERMISSION_PUBLIC")
}

/// Returns the `rest` option of a method, or its defaults.
pub(crate) fn rest(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<Rest, String> {
    let rest = option(pool, method, "kanat.v1.rest");
    let text = |name: &str| {
        rest.as_ref()
            .and_then(|r| string(r, name))
            .unwrap_or_default()
    };
    let flag = |name: &str| {
        rest.as_ref()
            .and_then(|r| r.get_field_by_name(name)?.as_bool())
            .unwrap_or_default()
    };
    let input = method.input();
    let output = method.output();
    let status = match rest
        .as_ref()
        .and_then(|r| r.get_field_by_name("status")?.as_i32())
        .unwrap_or_default()
    {
        0 => StatusCode::OK,
        code => u16::try_from(code)
            .ok()
            .and_then(|code| StatusCode::from_u16(code).ok())
            .filter(StatusCode::is_success)
            .ok_or(format!("{code} is not a status of success"))?,
    };
    Ok(Rest {
        status,
        public: is_public(pool, method),
        upload: field(&input, &text("upload"))?.map(raw).transpose()?,
        download: field(&output, &text("download"))?.map(raw).transpose()?,
        content_type: text("content_type"),
        file_name: text("file_name"),
        event_data: field(&output, &text("event_data"))?,
        response_body: field(&output, &text("response_body"))?,
        text: field(&output, &text("text"))?.map(raw).transpose()?,
        stream: field(&input, &text("stream"))?.map(list).transpose()?,
        unknown_query: if flag("any_query") {
            UnknownQuery::Ignored
        } else {
            UnknownQuery::Refused
        },
    })
}

fn binding(rule: &DynamicMessage) -> Result<Binding, String> {
    let verbs = [
        Method::GET,
        Method::PUT,
        Method::POST,
        Method::DELETE,
        Method::PATCH,
    ]
    .map(|m| (m.as_str().to_lowercase(), m));
    let found = verbs
        .into_iter()
        .find_map(|(name, method)| Some((method, string(rule, &name)?)));
    let (method, path) = found.ok_or("the http rule names no get, put, post, delete or patch")?;
    let takes_body = match string(rule, "body").as_deref() {
        None => false,
        Some("*") => true,
        Some(field) => return Err(format!("body {field:?} is not supported, only \"*\"")),
    };
    Ok(Binding {
        method,
        path,
        takes_body,
    })
}

fn option(pool: &DescriptorPool, method: &MethodDescriptor, name: &str) -> Option<DynamicMessage> {
    let extension = pool.get_extension_by_name(name)?;
    let options = method.options();
    options
        .has_extension(&extension)
        .then(|| options.get_extension(&extension).as_message().cloned())
        .flatten()
}

/// Returns a string field that is not empty.
fn string(message: &DynamicMessage, name: &str) -> Option<String> {
    message
        .get_field_by_name(name)?
        .as_str()
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
}

fn field(message: &MessageDescriptor, name: &str) -> Result<Option<FieldDescriptor>, String> {
    match name {
        "" => Ok(None),
        name => message
            .get_field_by_name(name)
            .map(Some)
            .ok_or_else(|| format!("{} has no field {name:?}", message.full_name())),
    }
}

/// Requires a field that can hold the content of a file or a text.
fn raw(field: FieldDescriptor) -> Result<FieldDescriptor, String> {
    match field.kind() {
        Kind::String | Kind::Bytes if !field.is_list() => Ok(field),
        _ => Err(format!(
            "field {:?} is neither a string nor bytes",
            field.name()
        )),
    }
}

/// Requires a list.
fn list(field: FieldDescriptor) -> Result<FieldDescriptor, String> {
    if field.is_list() {
        Ok(field)
    } else {
        Err(format!("field {:?} is no list", field.name()))
    }
}
