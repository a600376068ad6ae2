//! CORS headers, and answers to `OPTIONS`.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use kanat_net::{Body, body as bodies};

use super::route;
use crate::plans::published::api::{Api, Cors, Origins};

/// Answers `OPTIONS`, including preflight requests, at an address of these APIs.
pub(crate) fn options(apis: &[Arc<Api>], headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(bodies::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
        .headers_mut()
        .insert(header::ALLOW, route::allow(apis));
    if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD) {
        let asked = if asked == "HEAD" {
            b"GET"
        } else {
            asked.as_bytes()
        };
        let api = apis
            .iter()
            .find(|api| api.method.as_str().as_bytes() == asked);
        preflight(
            api.and_then(|api| api.cors.as_ref()),
            apis,
            headers,
            response.headers_mut(),
        );
    }
    response
}

/// Answers a preflight request. The absence of headers denies it.
fn preflight(cors: Option<&Cors>, apis: &[Arc<Api>], asked: &HeaderMap, answer: &mut HeaderMap) {
    let varies = HeaderValue::from_static(
        "origin, access-control-request-method, access-control-request-headers",
    );
    answer.append(header::VARY, varies);
    let Some(cors) = cors else { return };
    let Some(origin) = allowed(cors, asked.get(header::ORIGIN)) else {
        return;
    };
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, route::allow(apis));
    let asked_for = asked
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .filter(|_| cors.any_header);
    answer.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        asked_for.unwrap_or(&cors.allowed_headers).clone(),
    );
    if cors.credentials {
        answer.insert(
            header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
    }
    if let Some(max_age) = &cors.max_age {
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, max_age.clone());
    }
}

/// Adds the headers that let a page of `origin` read a response.
pub(crate) fn mark(cors: Option<&Cors>, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
    let Some(cors) = cors else { return };
    if !matches!(cors.origins, Origins::Any) || cors.credentials {
        answer.append(header::VARY, HeaderValue::from_static("origin"));
    }
    let Some(origin) = allowed(cors, origin) else {
        return;
    };
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if cors.credentials {
        answer.insert(
            header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
    }
    if let Some(exposed) = &cors.exposed_headers {
        answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
    }
}

/// Returns the value of `Access-Control-Allow-Origin`, if `origin` may call.
fn allowed(cors: &Cors, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
    let origin = origin?;
    match &cors.origins {
        // Browsers reject `*` together with credentials.
        Origins::Any if cors.credentials => Some(origin.clone()),
        Origins::Any => Some(HeaderValue::from_static("*")),
        Origins::Listed(listed) => {
            let text = origin.to_str().ok()?;
            listed
                .iter()
                .any(|known| known.eq_ignore_ascii_case(text))
                .then(|| origin.clone())
        }
    }
}
