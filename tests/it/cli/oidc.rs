//! `kanat login` of people: at an OpenID provider, with a browser, by a code, or with a token at
//! hand. The service of most tests is a script, which says what it makes of a token.

mod browser;
mod device;
mod member;
mod renewal;
mod token;

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kanat_tests::FakeTarget;
use kanat_tests::cli::{Cli, Outcome};
use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::token_issuer::{CLIENT_ID, Person, TokenIssuer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr};

const NOT_A_MEMBER: &str = "you are not a member: ask an admin for an invitation";

/// A service by the answers that logins need.
struct Service {
    target: FakeTarget,
    membership: Arc<Mutex<Membership>>,
}

/// What the service makes of the tokens of an audience.
#[derive(Clone)]
struct Membership {
    audience: &'static str,
    is_member: bool,
}

impl Service {
    /// Starts a service with these providers, which takes ID tokens of its members.
    async fn start(providers: Value) -> Self {
        let membership = Arc::new(Mutex::new(Membership {
            audience: CLIENT_ID,
            is_member: true,
        }));
        let shared = Arc::clone(&membership);
        let target = FakeTarget::scripted(move |request, _| {
            let membership = shared.lock().unwrap().clone();
            answer(request, &providers, &membership)
        })
        .await;
        Self { target, membership }
    }

    /// Starts a service whose provider is `issuer`.
    async fn of(issuer: &TokenIssuer) -> Self {
        Self::start(json!([provider(&issuer.url())])).await
    }

    fn set(&self, membership: Membership) {
        *self.membership.lock().unwrap() = membership;
    }

    fn url(&self) -> String {
        self.target.url()
    }

    /// Returns the tokens of all requests, in order.
    fn tokens(&self) -> Vec<String> {
        let received = self.target.received();
        let tokens = received.iter().filter_map(bearer);
        tokens.map(str::to_owned).collect()
    }
}

/// Returns a provider as `GET /auth/providers` lists it.
fn provider(issuer: &str) -> Value {
    let scopes = ["openid", "email", "profile", "offline_access"];
    json!({"issuer": issuer, "clientId": CLIENT_ID, "scopes": scopes})
}

fn bearer(request: &ReceivedRequest) -> Option<&str> {
    request.header("authorization").strip_prefix("Bearer ")
}

/// Returns the claims of a token, whose signature is not looked at.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn answer(request: &ReceivedRequest, providers: &Value, membership: &Membership) -> Reply {
    let id = vec![("x-request-id".to_owned(), "req_1".to_owned())];
    let reply = |status, body: Value| Reply::Answer(status, id.clone(), body.to_string());
    let refusal = |status, code: &str, error: &str| {
        reply(status, json!({"error": error, "code": code, "details": []}))
    };
    if request.path == "/api/v1/auth/providers" {
        return reply(200, providers.clone());
    }
    let Some(token) = bearer(request) else {
        return refusal(401, "UNAUTHENTICATED", "there is no credential");
    };
    let claims = claims(token);
    if claims["aud"] != membership.audience {
        return refusal(401, "UNAUTHENTICATED", "the token is for another audience");
    }
    if !membership.is_member {
        return refusal(403, "PERMISSION_DENIED", NOT_A_MEMBER);
    }
    match request.path.as_str() {
        "/api/v1/me" => reply(
            200,
            json!({
                "type": "user", "id": "mem_1", "role": "editor",
                "name": claims["name"], "email": claims["email"],
                "account": {"id": "acc_1", "name": "Account"},
                "environment": {"id": "env_1", "name": "development"},
            }),
        ),
        "/api/v1/environments" => reply(
            200,
            json!({"data": [{"id": "env_1", "name": "development"}]}),
        ),
        _ => refusal(404, "NOT_FOUND", "there is nothing at this address"),
    }
}

fn anna() -> Person {
    Person::new("Anna", "anna@example.com")
}

/// A `kanat login` that waits for a person.
struct Pending {
    child: Child,
    errors: Lines<BufReader<ChildStderr>>,
    printed: String,
}

impl Pending {
    fn start(cli: &Cli, arguments: &[&str]) -> Self {
        let mut command = cli.command(arguments);
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            errors,
            printed: String::new(),
        }
    }

    /// Waits for a line of standard error with `part`.
    async fn line_with(&mut self, part: &str) -> String {
        while let Some(line) = self.errors.next_line().await.unwrap() {
            self.printed += &format!("{line}\n");
            if line.contains(part) {
                return line;
            }
        }
        panic!("no line with {part:?}: {}", self.printed);
    }

    async fn end(mut self) -> Outcome {
        let mut stdout = String::new();
        let mut output = self.child.stdout.take().unwrap();
        output.read_to_string(&mut stdout).await.unwrap();
        while let Some(line) = self.errors.next_line().await.unwrap() {
            self.printed += &format!("{line}\n");
        }
        Outcome {
            code: self.child.wait().await.unwrap().code(),
            stdout,
            stderr: self.printed,
        }
    }
}

/// Logs `person` in with a browser.
async fn log_in(cli: &Cli, url: &str, issuer: &TokenIssuer, person: &Person) -> Outcome {
    let mut login = Pending::start(cli, &["login", "--oidc", "--url", url]);
    let address = login.line_with("/authorize?").await;
    browse(issuer.consent(&address, person).as_str()).await;
    login.end().await
}

/// Opens an address as a browser does; returns the status and the page.
async fn browse(address: &str) -> (u16, String) {
    #[expect(clippy::disallowed_methods, reason = "a browser of a test")]
    let response = reqwest::get(address).await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Returns the file of `kanat login`; none where nothing is saved.
fn saved(cli: &Cli) -> Option<String> {
    let file = cli.home().join(".config/kanat/credentials.toml");
    std::fs::read_to_string(file).ok()
}
