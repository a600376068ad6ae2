//! Answers of an instance's endpoints right now: those are asked that can be without knowing more
//! than their path.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Method};
use kanat_catalog::Instance;
use kanat_catalog::shape::Shape;
use kanat_mapping::json;
use kanat_model::{Mask, Timestamp};
use kanat_net::outbound;
use url::Url;

use crate::app::App;

/// Endpoints that one check asks.
const MAX_ENDPOINTS: usize = 50;
/// Endpoints that are asked at one time.
const MAX_CONCURRENT: usize = 4;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the endpoints, `METHOD path` each, with the instance's credentials. An endpoint that is not
/// asked, because it changes something or needs params, is not in the answer; one that could not be
/// asked says why.
pub async fn ask(
    app: &App,
    instance: &Instance,
    endpoints: &[String],
) -> HashMap<String, Result<Shape, String>> {
    let asked = endpoints
        .iter()
        .filter_map(|endpoint| Some((endpoint.clone(), address(instance, endpoint)?)));
    let asked: Vec<_> = asked.take(MAX_ENDPOINTS).collect();
    let asked = futures::stream::iter(asked).map(|(endpoint, address)| async move {
        let answer = match address {
            Ok((url, headers)) => get(app, instance, url, headers).await,
            Err(message) => Err(message),
        };
        (endpoint, answer)
    });
    asked.buffer_unordered(MAX_CONCURRENT).collect().await
}

/// Returns where to ask for an endpoint, and with which headers of its own; `None` when it is not
/// one to ask.
fn address(instance: &Instance, endpoint: &str) -> Option<Result<(Url, HeaderMap), String>> {
    let path = endpoint
        .strip_prefix("GET ")
        .filter(|path| !path.contains(['{', '?']))?;
    let action = instance
        .entry()
        .actions
        .iter()
        .find(|action| action.method == "GET" && action.path == path);
    Some(match action {
        // With the params that have a default; where others are needed, nobody here knows them.
        Some(action) if action.check("{}").is_empty() => match action.call("{}") {
            Ok(call) => instance
                .request_url(&call.endpoint, Timestamp::now())
                .map(|url| (url, call.headers)),
            Err(error) => Err(error.message),
        },
        Some(_) => return None,
        // Of a poll: the path as it was asked for. Whatever it looks like, it is a path of this
        // origin.
        None => instance.request_url("", Timestamp::now()).map(|mut url| {
            url.set_path(path);
            url.set_query(None);
            (url, HeaderMap::new())
        }),
    })
}

async fn get(
    app: &App,
    instance: &Instance,
    mut url: Url,
    mut headers: HeaderMap,
) -> Result<Shape, String> {
    let mask = Mask::new(instance.secrets());
    instance.apply_auth(&mut url, &mut headers);
    let request = outbound::Request {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
        timeout: TIMEOUT,
    };
    let answer = app
        .outbound
        .send(request)
        .await
        .map_err(|error| mask.apply(&error.to_string()).into_owned())?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("it answered {}", answer.status));
    }
    if answer.truncated {
        return Err(format!(
            "its answer is longer than {} bytes",
            answer.body.len()
        ));
    }
    json::check(&answer.body, json::MAX_DEPTH)
        .map_err(|error| format!("its answer is no JSON: {error}"))?;
    let text =
        std::str::from_utf8(&answer.body).map_err(|_| "its answer is no UTF-8".to_owned())?;
    Ok(Shape::of(text).masked(&mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(entry: &str, config: &str, endpoint: &str) -> Option<String> {
        let instance = Instance::new("ci_1", "desk", entry, config).unwrap();
        address(&instance, endpoint).map(|made| made.unwrap().0.to_string())
    }

    #[test]
    fn only_what_reads_and_needs_no_params_is_asked() {
        let desk = r#"{"subdomain": "acme", "email": "a@b.example", "api_token": "t"}"#;
        let users = asked("support-ticketing", desk, "GET /api/v2/users").unwrap();
        assert!(
            users.starts_with("https://acme.") && users.contains("/api/v2/users"),
            "{users}"
        );
        for endpoint in [
            "POST /api/v2/tickets",
            "PUT /api/v2/tickets/{ticketId}",
            "GET /api/v2/tickets/{ticketId}",
            "GET /api/v2/search",
        ] {
            assert_eq!(
                asked("support-ticketing", desk, endpoint),
                None,
                "{endpoint}"
            );
        }
        // Polls track the path that they ask for, from the root.
        let shop = r#"{"base_url": "https://shop.example/api/", "auth": "none"}"#;
        assert_eq!(
            asked("http", shop, "GET /api/orders").unwrap(),
            "https://shop.example/api/orders"
        );
        assert_eq!(
            asked("http", shop, "GET //evil.example/x").unwrap(),
            "https://shop.example//evil.example/x"
        );
    }
}
