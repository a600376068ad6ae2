//! The story: orders are posted, the live stream says how each of them ends, and the end is
//! compared with what it has to be.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::orders::{End, ORDERS, Order};
use super::scene::Scene;
use super::target::TargetRequest;
use crate::client::Client;
use crate::client::events::Messages;
use crate::client::name::segment;
use crate::output::Json;

/// Time limit for all orders, far more than the retries of the demo's flows take.
const STORY_TIMEOUT: Duration = Duration::from_secs(60);

/// One order and what became of it.
pub struct Chapter {
    pub order: &'static Order,
    /// Answer of the webhook: `accepted` or `duplicate`, and the message's id.
    pub answer: Json,
    /// The message as the API gives it, with its trace.
    pub message: Json,
    /// Name of the target, and what it got.
    pub target: &'static str,
    pub received: Vec<TargetRequest>,
}

/// Posts every order and waits until all have ended.
pub async fn play(client: &Client, scene: &Scene) -> Result<Vec<Chapter>> {
    // From the beginning of the log, so that nothing is missed.
    let mut stream = Messages::open(client, Vec::new(), Some("0".to_owned())).await?;
    let mut answers = Vec::new();
    for order in &ORDERS {
        let url = &scene.flow(order.flow)?.webhook_url;
        answers.push(
            post(client, url, order.body)
                .await
                .with_context(|| format!("{}: not accepted", order.title))?,
        );
    }
    let ids = answers
        .iter()
        .map(|answer| answer.text("messageId"))
        .collect();
    match tokio::time::timeout(STORY_TIMEOUT, wait(&mut stream, ids)).await {
        Ok(done) => done?,
        Err(_) => bail!(
            "the orders did not come to an end within {} s",
            STORY_TIMEOUT.as_secs()
        ),
    }
    let mut chapters = Vec::new();
    for (order, answer) in ORDERS.iter().zip(answers) {
        let id = answer.text("messageId");
        let message = client
            .get(&format!("/messages/{}", segment(&id)), &[])
            .await?;
        let target = scene.flow(order.flow)?.target;
        let received = scene.target(target)?.received(&id);
        chapters.push(Chapter {
            order,
            answer,
            message,
            target,
            received,
        });
    }
    Ok(chapters)
}

async fn post(client: &Client, url: &str, body: &str) -> Result<Json> {
    let request = client
        .raw(reqwest::Method::POST, url)
        .header("content-type", "application/json");
    let response = client.send(request.body(body.to_owned())).await?;
    Ok(Json::parse(&response.text().await?)?)
}

/// Follows the live stream until each of these messages has ended.
async fn wait(stream: &mut Messages, mut open: HashSet<String>) -> Result<()> {
    while !open.is_empty() {
        let message = stream.next().await?;
        if ["delivered", "filtered", "dead_letter", "discarded"]
            .contains(&message.text("status").as_str())
        {
            open.remove(&message.text("id"));
        }
    }
    Ok(())
}

impl Chapter {
    pub fn is_duplicate(&self) -> bool {
        self.answer.text("status") == "duplicate"
    }

    pub fn status(&self) -> String {
        self.message.text("status")
    }

    pub fn attempts(&self) -> u32 {
        self.message.text("attempts").parse().unwrap_or(0)
    }

    /// The request that the target took.
    pub fn taken(&self) -> Option<&TargetRequest> {
        self.received.iter().find(|request| request.status < 300)
    }

    /// Returns the difference from the expected result; nothing when there is none.
    pub fn deviation(&self) -> Option<String> {
        let found = self.deviations();
        (!found.is_empty()).then(|| format!("{}: {}", self.order.title, found.join("; ")))
    }

    fn deviations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut expect = |what: &str, is: &str, must: &str| {
            if is != must {
                found.push(format!("{what} is {is:?}, not {must:?}"));
            }
        };
        let answer = if self.order.end == End::Duplicate {
            "duplicate"
        } else {
            "accepted"
        };
        expect("the webhook's answer", &self.answer.text("status"), answer);
        match self.order.end {
            End::Delivered { attempts } => {
                expect("the status", &self.status(), "delivered");
                expect(
                    "the number of attempts",
                    &self.attempts().to_string(),
                    &attempts.to_string(),
                );
                expect(
                    "the number of requests",
                    &self.received.len().to_string(),
                    &attempts.to_string(),
                );
                expect(
                    "the body at the target",
                    &self.body_taken(),
                    &self
                        .message
                        .at("output")
                        .map_or_else(String::new, Json::compact),
                );
            }
            End::Filtered => {
                expect("the status", &self.status(), "filtered");
                expect(
                    "the number of requests",
                    &self.received.len().to_string(),
                    "0",
                );
            }
            End::DeadLetter { kind } => {
                expect("the status", &self.status(), "dead_letter");
                expect("the kind of error", &self.message.text("error.kind"), kind);
                expect("what the target took", &self.body_taken(), "");
            }
            End::Duplicate => expect(
                "the number of requests",
                &self.received.len().to_string(),
                "1",
            ),
        }
        found
    }

    /// The body that the target took, on one line.
    fn body_taken(&self) -> String {
        let body = self.taken().map_or("", |request| {
            std::str::from_utf8(&request.body).unwrap_or("not UTF-8")
        });
        Json::parse(body).map_or_else(|_| body.to_owned(), |body| body.compact())
    }
}
