//! A database that is away when a process starts: it is waited for, however long that takes.
//! Meanwhile the process says on its listeners that it is alive and not ready, so that a supervisor
//! lets it be and a proxy sends nothing.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result};
use http::{HeaderMap, Request, Response, StatusCode};
use kanat_net::{Body, Inbound};
use tokio::net::TcpListener;

use super::listener::Port;
use super::plain;
use super::ports::Ports;

/// Pause after the first failure; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Requests that are open when the database has come are given so long.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The ports of a process that is about to start.
pub struct Listeners<'a>(Vec<&'a Port>);

impl<'a> Listeners<'a> {
    pub fn new(ports: impl IntoIterator<Item = &'a Port>) -> Self {
        Self(ports.into_iter().collect())
    }

    /// Opens a database, again and again as long as the error `may_pass`.
    pub async fn wait_for<T, E, F>(
        &self,
        mut open: impl FnMut() -> F,
        may_pass: impl Fn(&E) -> bool,
    ) -> Result<T>
    where
        E: Display + Send + Sync + std::error::Error + 'static,
        F: Future<Output = Result<T, E>>,
    {
        let mut answering: Option<Ports> = None;
        let mut pause = FIRST_PAUSE;
        let opened = loop {
            match open().await {
                Err(error) if may_pass(&error) => {
                    let again = pause.as_millis();
                    tracing::warn!(
                        %error,
                        retry.ms = again,
                        "the database is out of reach: waiting for it, not ready",
                    );
                }
                opened => break opened,
            }
            if answering.is_none() {
                answering = Some(
                    self.answer()
                        .context("cannot answer while the database is away")?,
                );
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        };
        if let Some(answering) = answering {
            // A request that is still open by then is answered nevertheless, beside the further
            // start.
            let _ = tokio::time::timeout(CLOSE_WITHIN, answering.stop()).await;
            tracing::info!("the database is in reach: starting");
        }
        Ok(opened?)
    }

    fn answer(&self) -> Result<Ports> {
        let answering = Ports::default();
        for port in &self.0 {
            let port = Port {
                listener: share(&port.listener)?,
                options: port.options.clone(),
                ..**port
            };
            let answer = |request: Request<Inbound>| async move {
                Ok::<_, Infallible>(answer(request.uri().path(), request.headers()))
            };
            answering.serve(port, tower::service_fn(answer));
        }
        Ok(answering)
    }
}

/// Duplicates a socket: connections that wait when this one is closed are accepted by the
/// other.
fn share(listener: &TcpListener) -> std::io::Result<TcpListener> {
    let socket = listener.as_fd().try_clone_to_owned()?;
    TcpListener::from_std(std::net::TcpListener::from(socket))
}

fn answer(path: &str, headers: &HeaderMap) -> Response<Body> {
    match path {
        "/health" => plain::state(StatusCode::OK, "ok", headers),
        "/ready" => plain::state(
            StatusCode::SERVICE_UNAVAILABLE,
            "waiting for the database",
            headers,
        ),
        _ => {
            let text = "the service waits for its database, try again later";
            plain::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "UNAVAILABLE",
                text,
                headers,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_does_not_pass_ends_the_wait() {
        let mut tried = 0;
        let open = || {
            tried += 1;
            let kind = if tried == 1 {
                std::io::ErrorKind::ConnectionRefused
            } else {
                std::io::ErrorKind::NotFound
            };
            std::future::ready(Err::<(), _>(std::io::Error::from(kind)))
        };
        let may_pass =
            |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
        let error = Listeners::new([])
            .wait_for(open, may_pass)
            .await
            .unwrap_err();
        assert_eq!(
            error.downcast::<std::io::Error>().unwrap().kind(),
            std::io::ErrorKind::NotFound
        );
        assert_eq!(tried, 2);
    }

    #[tokio::test]
    async fn says_that_it_is_alive_and_not_ready() {
        let answer = |path: &str| answer(path, &HeaderMap::new());
        assert_eq!(answer("/health").status(), StatusCode::OK);
        for path in ["/ready", "/webhooks/receive/x", "/api/v1/flows"] {
            let response = answer(path);
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
            assert_eq!(response.headers()[http::header::RETRY_AFTER], "1", "{path}");
            let id = response.headers()["x-request-id"]
                .to_str()
                .unwrap()
                .to_owned();
            let body = http_body_util::BodyExt::collect(response.into_body())
                .await
                .unwrap()
                .to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["requestId"], id, "{path}");
        }
    }
}
