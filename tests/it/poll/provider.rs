//! An endpoint with numbered records in pages of a hundred, by cursor, offset, link, token and
//! page.

use std::collections::HashMap;

use kanat_tests::FakeTarget;
use kanat_tests::target::{ReceivedRequest, Reply};
use serde_json::{Value, json};

pub const PAGE: u64 = 100;

pub struct Provider {
    pub target: FakeTarget,
}

impl Provider {
    /// With so many records.
    pub async fn start(records: u64) -> Self {
        Self::scripted(records, |_, _| None).await
    }

    /// Starts a provider on which `script` may answer a request otherwise.
    pub async fn scripted(
        records: u64,
        script: impl Fn(&ReceivedRequest, usize) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let answer = move |received: &ReceivedRequest, earlier: usize| {
            script(received, earlier).unwrap_or_else(|| page(received, records))
        };
        Self {
            target: FakeTarget::scripted(answer).await,
        }
    }

    pub fn url(&self) -> String {
        self.target.url()
    }

    /// Queries of the requests so far, as `name=value`.
    pub fn asked(&self) -> Vec<String> {
        self.target
            .received()
            .iter()
            .map(|r| r.path.clone())
            .collect()
    }
}

/// `/cursor`, `/offset`, `/total`, `/link`, `/token` and `/page`, whose first is 1.
pub fn page(received: &ReceivedRequest, records: u64) -> Reply {
    let (path, query) = received
        .path
        .split_once('?')
        .unwrap_or((&received.path, ""));
    let query: HashMap<&str, &str> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .collect();
    let number = |name: &str| {
        query
            .get(name)
            .and_then(|value| value.trim_start_matches("at-").parse::<u64>().ok())
    };
    let from: u64 = ["cursor", "offset", "page_token", "from"]
        .into_iter()
        .find_map(number)
        .or_else(|| Some(number("page")?.saturating_sub(1) * PAGE))
        .unwrap_or(0);
    let end = (from + PAGE).min(records).max(from);
    let items: Vec<Value> = (from..end)
        .map(|id| json!({ "id": id, "name": format!("record {id}, \"quoted\"") }))
        .collect();
    let more = end < records;
    let at = |end: u64| {
        if more {
            json!(format!("at-{end}"))
        } else {
            Value::Null
        }
    };
    let body = match path {
        "/cursor" => json!({ "data": { "items": items }, "meta": { "next": at(end) } }),
        "/token" => {
            json!({
                "items": items,
                "nextPageToken": if more { format!("at-{end}") } else { String::new() },
            })
        }
        "/total" => json!({ "items": items, "total": records }),
        "/offset" | "/link" | "/page" => Value::Array(items),
        _ => return Reply::Answer(404, Vec::new(), "{}".to_owned()),
    };
    let mut headers = Vec::new();
    if path == "/link" {
        headers.push((
            "link".to_owned(),
            "</link?from=0>; title=\"a, b; rel=next\"; rel=\"first\"".to_owned(),
        ));
        if more {
            headers.push((
                "link".to_owned(),
                format!("</link?from={end}>; rel=\"next last\""),
            ));
        }
    }
    Reply::Answer(200, headers, body.to_string())
}
