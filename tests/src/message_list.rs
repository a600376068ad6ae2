//! The messages of a service, by its API.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Rest;
use crate::rest::text;
use crate::wait::DEADLINE;

/// The most messages that one page may have.
pub const MAX_PAGE_SIZE: usize = 500;

/// Returns all messages of a list, by id: from cursor to cursor, so that the last page costs no
/// more than the first.
pub async fn messages(api: &Rest, query: &str) -> HashMap<String, Value> {
    let mut all = HashMap::new();
    let mut position = String::new();
    loop {
        let path = format!("/api/v1/messages?{query}&limit={MAX_PAGE_SIZE}{position}");
        let page = readable(api, &path).await;
        let items = page["data"].as_array().expect("a page has a list").iter();
        all.extend(items.map(|message| (text(&message["id"]), message.clone())));
        match page["pagination"]["nextCursor"].as_str() {
            Some(cursor) => position = format!("&cursor={cursor}"),
            None => return all,
        }
    }
}

/// Waits until every message of a list has ended, as long as there are fewer and fewer that have
/// not: how many there are, and how quickly they end, is the machine's.
pub async fn all_end(api: &Rest, query: &str) {
    let count = async |filter: &str| {
        let path = format!("/api/v1/messages?{query}{filter}&limit=1");
        readable(api, &path).await["pagination"]["total"]
            .as_u64()
            .expect("a page has a total")
    };
    let mut fewest = u64::MAX;
    let mut since = Instant::now();
    loop {
        // Counted by those that have ended, which stay so: one that goes from one open state to
        // another between two looks would be seen in neither.
        let mut total = count("").await;
        for ended in ["delivered", "filtered", "dead_letter", "discarded"] {
            total = total.saturating_sub(count(&format!("&status={ended}")).await);
        }
        if total == 0 {
            return;
        }
        if total < fewest {
            (fewest, since) = (total, Instant::now());
        }
        assert!(
            since.elapsed() < DEADLINE,
            "no message ends any more, and {total} are open"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An answer to a read. One that comes just after a start may be refused for a moment, while the
/// log's tables are being taken up.
async fn readable(api: &Rest, path: &str) -> Value {
    crate::until("the log can be read", || async {
        let answer = api.get(path).await;
        (answer.status != 503).then(|| answer.expect(200))
    })
    .await
}
