//! The systems that the demo delivers to: small HTTP servers on free ports, each with a behaviour
//! of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode};
use kanat_net::Inbound;
use kanat_net::{Body, body, server};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;

use crate::process::listener::Port;
use crate::process::plain;
use crate::process::ports::Ports;

const BODY_LIMIT: usize = 1 << 20;

/// How a target behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Works,
    /// Answers each message with 503 so many times before it takes it.
    FailsFirst(usize),
    NeverWorks,
}

/// A request that a target got, and its answer.
#[derive(Debug, Clone)]
pub struct TargetRequest {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub idempotency_key: String,
    pub body: Bytes,
    pub status: u16,
}

/// A running target.
pub struct Target {
    pub address: SocketAddr,
    behaviour: Behaviour,
    received: Arc<Mutex<Vec<TargetRequest>>>,
    ports: Ports,
}

impl Target {
    pub async fn start(behaviour: Behaviour) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("cannot listen for a target of the demo")?;
        let address = listener.local_addr()?;
        let received = Arc::default();
        let shared = Arc::clone(&received);
        let service =
            tower::service_fn(move |request| answer(request, behaviour, Arc::clone(&shared)));
        let ports = Ports::default();
        let options = server::Options::default();
        let port = Port {
            listener,
            options,
            address,
        };
        ports.serve(port, service);
        Ok(Self {
            address,
            behaviour,
            received,
            ports,
        })
    }

    /// Returns the behaviour in words.
    pub fn describe(&self) -> String {
        match self.behaviour {
            Behaviour::Works => "works".to_owned(),
            Behaviour::FailsFirst(times) => format!("fails {times} times, then works"),
            Behaviour::NeverWorks => "never works".to_owned(),
        }
    }

    /// Everything that came with this idempotency key, in order.
    pub fn received(&self, idempotency_key: &str) -> Vec<TargetRequest> {
        let all = self.received.lock();
        all.iter()
            .filter(|request| request.idempotency_key == idempotency_key)
            .cloned()
            .collect()
    }

    /// How many requests it took.
    pub fn taken(&self) -> usize {
        let all = self.received.lock();
        all.iter().filter(|request| request.status < 300).count()
    }

    pub async fn stop(self) {
        self.ports.stop().await;
    }
}

async fn answer(
    request: Request<Inbound>,
    behaviour: Behaviour,
    received: Arc<Mutex<Vec<TargetRequest>>>,
) -> Result<Response<Body>, Infallible> {
    let (head, incoming) = request.into_parts();
    let Ok(content) = body::read_limited(incoming, BODY_LIMIT).await else {
        let error = json!({ "error": "the body broke off" });
        return Ok(plain::json(StatusCode::BAD_REQUEST, &error));
    };
    let key = head.headers.get("idempotency-key");
    let key = key
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let path = head.uri.path_and_query();
    let path = path.map_or(head.uri.path(), PathAndQuery::as_str);
    let mut all = received.lock();
    let before = all
        .iter()
        .filter(|request| request.idempotency_key == key)
        .count();
    let (status, answer) = match behaviour {
        Behaviour::FailsFirst(times) if before < times => {
            (StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "busy" }))
        }
        Behaviour::NeverWorks => (
            StatusCode::INTERNAL_SERVER_ERROR,
            json!({ "error": "the ledger is closed" }),
        ),
        Behaviour::Works | Behaviour::FailsFirst(_) => (StatusCode::CREATED, json!({ "ok": true })),
    };
    all.push(TargetRequest {
        method: head.method.to_string(),
        path: path.to_owned(),
        idempotency_key: key.to_owned(),
        body: content,
        status: status.as_u16(),
    });
    Ok(plain::json(status, &answer))
}
