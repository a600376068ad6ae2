//! The port of this machine to which the provider sends the browser back.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::client::oidc::Refusal;
use crate::exit::failure;

/// Path of the redirect address.
pub const PATH: &str = "/callback";

/// Marks of a genuine answer.
#[derive(Clone)]
pub struct Expectation {
    pub state: String,
    pub issuer: String,
}

/// Waits for the browser; returns the code of the provider. Answers that are not of this login, as
/// any page may send them, are refused and otherwise ignored.
///
/// # Errors
/// The provider refused the login, or its answer has no code.
pub async fn wait(listener: TcpListener, expectation: Expectation) -> Result<String> {
    // Browsers open connections on which they send nothing: several are served at once.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.context("cannot take the answer of the browser")?;
                connections.spawn(serve(stream, expectation.clone()));
            }
            Some(served) = connections.join_next() => {
                if let Ok(Some(code)) = served {
                    return code;
                }
            }
        }
    }
}

/// Answers one request, to the end; returns what it says about the login.
async fn serve(stream: TcpStream, expectation: Expectation) -> Option<Result<String>> {
    let outcome = OnceLock::new();
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(request.method(), request.uri(), &expectation, &outcome);
        async { Ok::<_, Infallible>(response) }
    });
    // A browser that goes away early has sent its answer.
    let _ = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    outcome.into_inner()
}

fn answer(
    method: &Method,
    uri: &http::Uri,
    expectation: &Expectation,
    outcome: &OnceLock<Result<String>>,
) -> Response<Full<Bytes>> {
    if uri.path() != PATH {
        return page(StatusCode::NOT_FOUND, "There is nothing at this address.");
    }
    if method != Method::GET {
        return page(StatusCode::METHOD_NOT_ALLOWED, "Only GET is answered here.");
    }
    let Some(code) = expectation.read(uri.query().unwrap_or_default()) else {
        let text = "This is not the answer that the command line waits for: log in once more.";
        return page(StatusCode::BAD_REQUEST, text);
    };
    let response = match &code {
        Ok(_) => page(
            StatusCode::OK,
            "The command line goes on. You can close this page.",
        ),
        Err(_) => page(
            StatusCode::BAD_REQUEST,
            "You are not logged in: the command line says why. You can close this page.",
        ),
    };
    // One connection has one request.
    let _ = outcome.set(code);
    response
}

impl Expectation {
    /// Reads the query of an answer; returns the code, or nothing where it is not of this login.
    fn read(&self, query: &str) -> Option<Result<String>> {
        let url = Url::parse(&format!("http://127.0.0.1/?{query}")).ok()?;
        let given: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let is_ours = given.get("state") == Some(&self.state)
            // RFC 9207: a provider may say who it is.
            && given.get("iss").is_none_or(|issuer| *issuer == self.issuer);
        if !is_ours {
            return None;
        }
        if let Some(error) = given.get("error") {
            let description = given.get("error_description");
            let refusal = Refusal::new(error, description.map_or("", String::as_str));
            let message = format!("{} refuses the login: {refusal}", self.issuer);
            return Some(Err(failure(message)));
        }
        let code = given.get("code").filter(|code| !code.is_empty());
        let code = code.cloned();
        Some(code.ok_or_else(|| failure("the answer of the browser has no code")))
    }
}

/// Returns a page with one sentence, which is never the provider's.
fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Kanat</title>\n\
         <h1>Kanat</h1>\n<p>{text}</p>\n</html>\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Option<Result<String, String>> {
        let expectation = Expectation {
            state: "s-1".to_owned(),
            issuer: "https://id.example".to_owned(),
        };
        let code = expectation.read(query)?;
        Some(code.map_err(|error| error.to_string()))
    }

    #[test]
    fn a_code_counts_with_the_state_of_the_login() {
        assert_eq!(read("code=a%2Fb&state=s-1"), Some(Ok("a/b".to_owned())));
        let issuer = "code=c&state=s-1&iss=https%3A%2F%2Fid.example";
        assert_eq!(read(issuer), Some(Ok("c".to_owned())));
        for other in [
            "code=c",
            "code=c&state=s-2",
            "",
            "code=c&state=s-1&iss=https%3A%2F%2Fother.example",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        let error = read("state=s-1").unwrap().unwrap_err();
        assert!(error.contains("no code"), "{error}");
    }

    #[test]
    fn a_refusal_is_in_the_words_of_the_provider() {
        let query = "error=access_denied&error_description=the+person+declined&state=s-1";
        assert_eq!(
            read(query).unwrap().unwrap_err(),
            "https://id.example refuses the login: the person declined (access_denied)"
        );
    }
}
