//! A caller of `/api/v1` and of webhooks, and the steps that most tests begin with.

use serde_json::{Value, json};

/// A client with one base address and one credential.
#[derive(Clone)]
pub struct Rest {
    pub base: String,
    key: Option<String>,
    headers: Vec<(String, String)>,
    http: reqwest::Client,
}

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body of an answer that must have this status.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The `details` of an error that must have this status and code.
    pub fn expect_error(self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["code"], code, "{body}");
        assert!(
            body["error"].is_string()
                && body["details"].is_array()
                && body["requestId"].is_string(),
            "{body}"
        );
        body["details"].clone()
    }
}

impl Rest {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests call the service on loopback only"
    )]
    pub fn new(base: &str, key: &str) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client can be built");
        Self {
            base: base.to_owned(),
            key: Some(key.to_owned()),
            headers: Vec::new(),
            http,
        }
    }

    /// A caller without a credential whose requests share one connection of HTTP/2.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests call the service on loopback only"
    )]
    pub fn over_http2(base: &str) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .http2_prior_knowledge();
        Self {
            http: http.build().expect("a client can be built"),
            ..Self::new(base, "")
        }
        .without_key()
    }

    /// A caller over TLS who trusts this authority (PEM) alone.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests call the service on loopback only"
    )]
    pub fn trusting(base: &str, key: &str, authority: &str) -> Self {
        let authority =
            reqwest::Certificate::from_pem(authority.as_bytes()).expect("a certificate");
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([authority]);
        Self {
            http: http.build().expect("a client can be built"),
            ..Self::new(base, key)
        }
    }

    pub fn without_key(&self) -> Self {
        Self {
            key: None,
            ..self.clone()
        }
    }

    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    /// Returns this caller with one more header on every request.
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.push((name.to_owned(), value.to_owned()));
        Self {
            headers,
            ..self.clone()
        }
    }

    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// A request with credential and headers; `path` is absolute or a whole URL.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.base)
        };
        let method = method.parse().expect("a method");
        let mut request = self.http.request(method, url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    /// Sends what was built; a connection that fails is an error, as in tests that kill.
    pub async fn try_send(request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        Ok(Answer {
            status,
            headers,
            text: answer.text().await?,
        })
    }

    pub async fn send(request: reqwest::RequestBuilder) -> Answer {
        Self::try_send(request).await.expect("the service answers")
    }

    pub async fn get(&self, path: &str) -> Answer {
        Self::send(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request("POST", path).json(body)).await
    }

    /// Posts a body; the future may outlive this value.
    pub fn post_owned(&self, path: &str, body: &Value) -> impl Future<Output = Answer> + use<> {
        Self::send(self.request("POST", path).json(body))
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request("PUT", path).json(body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request("PATCH", path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Self::send(self.request("DELETE", path)).await
    }

    /// A body of any bytes under any content type.
    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        Self::send(
            self.request(method, path)
                .header("content-type", content_type)
                .body(body),
        )
        .await
    }

    /// Makes an instance of the generic `http` entry that calls `base_url` without credentials;
    /// gives its id.
    pub async fn http_instance(&self, name: &str, base_url: &str) -> String {
        let body = json!({
            "catalogId": "http",
            "name": name,
            "config": { "base_url": base_url, "auth": "none" },
        });
        let made = self
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        text(&made["id"])
    }

    /// Makes a flow of this definition; gives its id.
    pub async fn flow(&self, yaml: &str) -> String {
        let made = self
            .post("/api/v1/flows", &json!({ "yamlConfig": yaml }))
            .await
            .expect(201);
        text(&made["id"])
    }

    /// Makes and deploys a flow; gives its id and, for a webhook flow, its webhook URL.
    pub async fn deployed(&self, yaml: &str) -> (String, String) {
        let id = self.flow(yaml).await;
        let flow = self
            .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
            .await
            .expect(200);
        (
            id,
            flow["webhookUrl"].as_str().unwrap_or_default().to_owned(),
        )
    }

    /// Posts JSON to a webhook; gives the message's id.
    pub async fn webhook(&self, url: &str, payload: &Value) -> String {
        let answer = Self::send(self.http.post(url).json(payload))
            .await
            .expect(202);
        text(&answer["messageId"])
    }

    pub async fn message(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/messages/{id}"))
            .await
            .expect(200)
    }

    /// Waits until the message has this status, and gives it with its trace.
    pub async fn message_becomes(&self, id: &str, status: &str) -> Value {
        crate::until(&format!("message {id} becomes {status}"), || async {
            let message = self.message(id).await;
            (message["status"] == status).then_some(message)
        })
        .await
    }
}

/// The text of a JSON string.
pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}
