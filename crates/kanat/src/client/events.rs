//! Server-sent events as the live stream of messages sends them, picked up again where they broke
//! off.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use reqwest::Method;

use super::{Client, Refusal};
use crate::output::Json;

/// The server sends a comment every 15 s: silence for this long is a dead connection.
const SILENCE: Duration = Duration::from_secs(45);
const RECONNECT: Duration = Duration::from_secs(1);

/// The event that ends the stream of a reader that does not keep up.
const LAGGED: &str = "lagged";

/// The messages of one flow, live: one event for every change of state.
pub struct Messages {
    client: Client,
    query: Vec<(&'static str, String)>,
    last_id: Option<String>,
    open: Option<reqwest::Response>,
    parser: Parser,
    ready: VecDeque<Event>,
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: String,
}

impl Messages {
    /// Opens the stream; events after `last_id` come first, when given.
    pub async fn open(
        client: &Client,
        query: Vec<(&'static str, String)>,
        last_id: Option<String>,
    ) -> Result<Self> {
        let parser = Parser::default();
        let ready = VecDeque::new();
        let mut stream = Self {
            client: client.clone(),
            query,
            last_id,
            open: None,
            parser,
            ready,
        };
        stream.connect().await?;
        Ok(stream)
    }

    /// The next message. A broken connection is opened again and goes on after the last event; what
    /// the service refuses is an error.
    pub async fn next(&mut self) -> Result<Json> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last_id = Some(event.id);
                if event.name == LAGGED {
                    self.open = None;
                    continue;
                }
                return Ok(Json::parse(&event.data)?);
            }
            let Some(open) = &mut self.open else {
                tokio::time::sleep(RECONNECT).await;
                if let Err(error) = self.connect().await
                    && error
                        .downcast_ref::<Refusal>()
                        .is_some_and(|refusal| refusal.status < 500)
                {
                    return Err(error);
                }
                continue;
            };
            match tokio::time::timeout(SILENCE, open.chunk()).await {
                Ok(Ok(Some(bytes))) => self.ready.extend(self.parser.push(&bytes)),
                Ok(Ok(None) | Err(_)) | Err(_) => self.open = None,
            }
        }
    }

    async fn connect(&mut self) -> Result<()> {
        let mut request = self
            .client
            .request(Method::GET, "/messages/stream")
            .query(&self.query);
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
        }
        self.parser = Parser::default();
        self.open = Some(self.client.send(request).await?);
        Ok(())
    }
}

/// Cuts the bytes of a stream into events.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    event: Event,
}

impl Parser {
    fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line)
                .trim_end_matches('\r')
                .to_owned();
            self.line.clear();
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                events.extend((!event.data.is_empty()).then_some(event));
            } else {
                self.field(&line);
            }
        }
        events
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event.name),
            "id" => value.clone_into(&mut self.event.id),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_however_the_bytes_are_cut() {
        let text =
            ": hello\n\nevent: message\nid: 7\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\ndata:x\r\n\r\n";
        let expected = [
            Event {
                name: "message".to_owned(),
                id: "7".to_owned(),
                data: "{\"a\":\n1}".to_owned(),
            },
            Event {
                name: String::new(),
                id: "8".to_owned(),
                data: "x".to_owned(),
            },
        ];
        for size in [1, 3, 100] {
            let mut parser = Parser::default();
            let events: Vec<Event> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| parser.push(chunk))
                .collect();
            assert_eq!(events, expected, "in chunks of {size}");
        }
    }
}
