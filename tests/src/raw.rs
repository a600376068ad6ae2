//! A request byte by byte, for what well-behaved clients do not send or hide from their callers.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wait::DEADLINE;

/// An answer as it came over the connection.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Without chunks, and in the coding that it has.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// The values of a header, one after the other.
    pub fn header(&self, name: &str) -> String {
        let values = self
            .headers
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, value)| value.as_str());
        values.collect::<Vec<_>>().join(", ")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

/// A request with these lines and this body, with `Connection: close`.
/// The first line is the request line, without its HTTP version; unless a line says otherwise there
/// is a host and the body's length.
pub fn request(lines: &[&str], body: &[u8]) -> Vec<u8> {
    let has = |name: &str| {
        lines
            .iter()
            .any(|line| line.to_ascii_lowercase().starts_with(name))
    };
    let mut head = format!("{} HTTP/1.1\r\nconnection: close\r\n", lines[0]);
    if !has("host:") {
        head.push_str("host: kanat.test\r\n");
    }
    if !has("content-length:") && !has("transfer-encoding:") && !body.is_empty() {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    lines[1..]
        .iter()
        .for_each(|line| head.push_str(&format!("{line}\r\n")));
    [head.as_bytes(), b"\r\n", body].concat()
}

/// Sends bytes to the listener at `base`, and reads what it says until it closes the connection.
pub async fn send(base: &str, bytes: &[u8]) -> RawAnswer {
    let mut peer = TcpStream::connect(base.trim_start_matches("http://"))
        .await
        .expect("the service listens");
    // It may close, or reset, before it has read all.
    let _ = peer.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(DEADLINE, peer.read_to_end(&mut answer)).await;
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    assert!(read.is_ok(), "kept waiting by {start:?}");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| {
        panic!(
            "no answer to {start:?}: {:?}",
            String::from_utf8_lossy(&answer)
        )
    });
    let head = String::from_utf8(answer[..end].to_vec()).expect("a head is text");
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok())
        .expect("a status line");
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    RawAnswer {
        status,
        headers,
        body: answer[end + 4..].to_vec(),
    }
}
