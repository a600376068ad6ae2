//! The options `google.api.http` and `kanat.v1.rest` of a method, read from its descriptor.

use http::{Method, StatusCode};
use kanat_proto::google::api::HttpRule;
use kanat_proto::google::api::http_rule::Pattern;
use kanat_proto::v1::{self, Permission};
use prost::Message;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};

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
    let Some(mut rule) = option::<HttpRule>(pool, method, "google.api.http") else {
        return Ok(Vec::new());
    };
    let more = std::mem::take(&mut rule.additional_bindings);
    [rule].into_iter().chain(more).map(binding).collect()
}

/// Returns whether the method needs no credential.
fn is_public(pool: &DescriptorPool, method: &MethodDescriptor) -> bool {
    let Some(extension) = pool.get_extension_by_name("kanat.v1.permission") else {
        return false;
    };
    let permission = method.options().get_extension(&extension).as_enum_number();
    permission == Some(Permission::Public.into())
}

/// Returns the `rest` option of a method, or its defaults.
pub(crate) fn rest(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<Rest, String> {
    let rest: v1::Rest = option(pool, method, "kanat.v1.rest").unwrap_or_default();
    let input = method.input();
    let output = method.output();
    let status = match rest.status {
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
        upload: field(&input, &rest.upload)?.map(raw).transpose()?,
        download: field(&output, &rest.download)?.map(raw).transpose()?,
        content_type: rest.content_type,
        file_name: rest.file_name,
        event_data: field(&output, &rest.event_data)?,
        response_body: field(&output, &rest.response_body)?,
        text: field(&output, &rest.text)?.map(raw).transpose()?,
        stream: field(&input, &rest.stream)?.map(list).transpose()?,
        unknown_query: if rest.any_query {
            UnknownQuery::Ignored
        } else {
            UnknownQuery::Refused
        },
    })
}

fn binding(rule: HttpRule) -> Result<Binding, String> {
    let (method, path) = match rule.pattern {
        Some(Pattern::Get(path)) => (Method::GET, path),
        Some(Pattern::Put(path)) => (Method::PUT, path),
        Some(Pattern::Post(path)) => (Method::POST, path),
        Some(Pattern::Delete(path)) => (Method::DELETE, path),
        Some(Pattern::Patch(path)) => (Method::PATCH, path),
        Some(Pattern::Custom(_)) | None => {
            return Err("the http rule names no get, put, post, delete or patch".to_owned());
        }
    };
    let takes_body = match rule.body.as_str() {
        "" => false,
        "*" => true,
        field => return Err(format!("body {field:?} is not supported, only \"*\"")),
    };
    Ok(Binding {
        method,
        path,
        takes_body,
    })
}

fn option<M>(pool: &DescriptorPool, method: &MethodDescriptor, name: &str) -> Option<M>
where
    M: Message + Default,
{
    let extension = pool.get_extension_by_name(name)?;
    let options = method.options();
    if !options.has_extension(&extension) {
        return None;
    }
    let value = options.get_extension(&extension);
    value.as_message()?.transcode_to().ok()
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

#[cfg(test)]
mod tests;
