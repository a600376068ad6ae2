//! The page that a browser finds at the address of a service: what this is, and how to go on.
//! Programs are answered as everywhere else.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use kanat_net::{Body, body, request_id};

/// The page of one service.
#[derive(Clone)]
pub struct Page(Bytes);

impl Page {
    /// Makes the page of the service whose management API is at `api_url`.
    pub fn new(api_url: &str) -> Self {
        let url = escape(api_url);
        let version = env!("CARGO_PKG_VERSION");
        Self(Bytes::from(format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta \
             charset=\"utf-8\">\n<title>Kanat</title>\n<style>body {{ font: 16px/1.5 sans-serif; \
             margin: 3em auto; max-width: 40em; padding: 0 1em \
             }}</style>\n<h1>Kanat</h1>\n<p>Kanat {version} runs at <code>{url}</code>. Its API \
             is under <code>{url}/api/v1</code>.</p>\n<p>Log in on a command \
             line:</p>\n<pre>kanat login --url {url}</pre>\n<p>The documentation is \
             <code>README.md</code> and the folder <code>docs</code> of the source; <code>kanat \
             --help</code> lists the commands.</p>\n</html>\n"
        )))
    }

    /// Answers a request for the page; none when the request is for something else.
    pub fn answer<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let mut accepted = request
            .headers()
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let is_browser = accepted.any(|value| value.to_ascii_lowercase().contains("text/html"));
        if !is_read || !is_browser || request.uri().path() != "/" {
            return None;
        }
        let mut response = Response::new(body::full(self.0.clone()));
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::VARY, "accept"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(request_id::HEADER, request_id::of(request.headers()));
        Some(response)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_browsers_that_read_the_root_see_the_page() {
        let page = Page::new("http://127.0.0.1:8080");
        let asked = |method: &str, path: &str, accept: &str| {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("accept", accept)
                .body(())
                .unwrap();
            page.answer(&request).is_some()
        };
        assert!(asked(
            "GET",
            "/",
            "text/html,application/xhtml+xml,*/*;q=0.8"
        ));
        assert!(asked("HEAD", "/", "text/html"));
        assert!(!asked("GET", "/", "*/*"));
        assert!(!asked("POST", "/", "text/html"));
        assert!(!asked("GET", "/orders", "text/html"));
    }

    #[test]
    fn what_a_setting_says_is_no_markup() {
        assert_eq!(escape("https://a/<b>&\""), "https://a/&lt;b&gt;&amp;&quot;");
    }
}
