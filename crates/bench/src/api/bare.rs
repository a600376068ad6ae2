//! The yardsticks on hyper: one that reads a request and gives a fixed answer, and one that does
//! all that a published API does by libraries: the key's hash, a tree of the body, the crate
//! `jsonschema`, an answer made of the tree.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::{StatusCode, header};
use http_body_util::BodyExt;
use hyper::{Request, Response};
use jsonschema::Validator;
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::order;
use crate::process::Server;

/// The key that the whole loop takes.
pub const KEY: &str = "bench_ck_0123456789abcdefghijklmnopqrstuvwxyzABCDEF";

const ANSWER: &str = r#"{"status":"accepted"}"#;

/// What a bare server does with a call.
pub enum Work {
    /// Reads it, and gives a fixed answer.
    Static,
    /// Checks key and schema, and maps the answer.
    Whole,
}

pub async fn start(folder: &Path, work: Work) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--kanat", "-", "bare-api"]);
    if matches!(work, Work::Whole) {
        command.arg("--whole");
    }
    Server::start(&mut command, &folder.join("bare.err")).await
}

/// Serves on a free port until killed.
pub async fn serve(whole: bool) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare listening on http://{}", listener.local_addr()?);
    let whole = if whole {
        Some(Arc::new(Whole::new()?))
    } else {
        None
    };
    let service = tower::service_fn(move |request: Request<Inbound>| {
        let whole = whole.clone();
        async move { Ok::<_, Infallible>(answer(whole.as_deref(), request).await) }
    });
    server::serve(
        listener,
        service,
        Options::default(),
        CancellationToken::new(),
    )
    .await;
    Ok(())
}

async fn answer(whole: Option<&Whole>, request: Request<Inbound>) -> Response<kanat_net::Body> {
    let (parts, body) = request.into_parts();
    let answered = match (whole, body.collect().await) {
        (_, Err(_)) => Err(StatusCode::BAD_REQUEST),
        (None, Ok(_)) => Ok(ANSWER.as_bytes().to_vec()),
        (Some(whole), Ok(body)) => {
            whole.answer(parts.headers.get(header::AUTHORIZATION), &body.to_bytes())
        }
    };
    let (status, body) = match answered {
        Ok(body) => (StatusCode::OK, body),
        Err(status) => (status, Vec::new()),
    };
    let mut response = Response::new(kanat_net::body::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}

struct Whole {
    keys: HashSet<[u8; 32]>,
    schema: Validator,
}

impl Whole {
    fn new() -> Result<Self> {
        let schema = serde_json::from_str(order::SCHEMA)?;
        let options = jsonschema::options().should_validate_formats(true);
        let schema = options
            .build(&schema)
            .map_err(|error| anyhow::anyhow!("{error}"))
            .context("the schema")?;
        Ok(Self {
            keys: HashSet::from([Sha256::digest(KEY).into()]),
            schema,
        })
    }

    fn answer(
        &self,
        authorization: Option<&http::HeaderValue>,
        body: &[u8],
    ) -> Result<Vec<u8>, StatusCode> {
        let key = authorization.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let hash: [u8; 32] = Sha256::digest(key.unwrap_or_default()).into();
        if !self.keys.contains(&hash) {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let order: Value = serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)?;
        if !self.schema.is_valid(&order) {
            return Err(StatusCode::UNPROCESSABLE_ENTITY);
        }
        let text = |name: &str| order[name].as_str().unwrap_or_default();
        let answer = json!({
            "order_id": order["id"],
            "sent_at": order["sent_at"],
            "total": format!("{:.2}", order["amount"].as_f64().unwrap_or_default()),
            "currency": text("currency").to_uppercase(),
            "customer": { "name": order["name"], "email": text("email").to_lowercase() },
            "paid": order["paid"],
        });
        serde_json::to_vec(&answer).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    }
}
