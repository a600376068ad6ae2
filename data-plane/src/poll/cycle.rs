//! One cycle: page after page until the last, each durable before the next is asked for.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::HeaderMap;
use kanat_catalog::Instance;
use kanat_mapping::json;
use kanat_message_log::{MessageLog, Settled};
use kanat_model::Timestamp;
use kanat_net::outbound;
use kanat_proto::plan::v1::Poll;
use url::Url;

use super::hold::Hold;
use super::page;
use super::place::Place;
use super::records::Page;
use super::request::Requests;
use super::state::{Position, Progress, State};
use crate::delivery::{ended, retry_after, verdict};
use crate::observed::Observer;
use crate::pipeline::{Bounds, NotNow, Pass};
use crate::plans::Runnable;

/// From the first byte of a connection to the last of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a page is asked for that is answered with 429, or with 503 and a time to come back.
const TRIES: u32 = 6;

/// The longest wait within a cycle; after a longer one the next cycle begins.
const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);

/// What a cycle works with.
pub(super) struct Cycle<'a> {
    pub log: &'a dyn MessageLog,
    pub outbound: &'a outbound::Client,
    pub bounds: &'a Bounds,
    pub runnable: &'a Runnable,
    /// The flow's source, where it names one.
    pub instance: Option<&'a Instance>,
    pub poll: &'a Poll,
    pub hold: &'a Hold,
    pub requests: Requests,
    /// Who is told what the endpoint answers.
    pub observer: Observer<'a>,
}

/// Why a cycle ended before its last page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Halt {
    /// In words without secrets.
    Failed {
        message: String,
        /// The endpoint asks to be left alone until then.
        not_before: Option<Timestamp>,
    },
    /// Its connector takes no calls until then: the cycle goes on from the page that is not done.
    Waits { until: Timestamp },
}

struct Answer {
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Cycle<'_> {
    /// Goes on from `progress` to the end. Gives the state that it leaves behind, and how many messages it made.
    pub async fn run(
        &self,
        state: &State,
        mut progress: Progress,
        mut place: Place<'_>,
    ) -> Result<(State, usize), Halt> {
        let pagination = self.poll.pagination.as_ref();
        let most = pagination.map_or(1, |pagination| pagination.max_pages);
        // The first page has a link of its own, by which a later one may lead back to it.
        let mut asked = HashSet::from([self.url(&self.requests.first())?, self.url(&progress.next)?]);
        let mut taken = 0;
        loop {
            let answer = self.ask(&progress.next, &mut place).await?;
            let body = text(&answer.body)?;
            self.observe(&answer);
            let records = page::records(body, &self.poll.records_path)?;
            let now = Timestamp::now();
            let page = Page {
                runnable: self.runnable,
                record_id: &self.poll.record_id,
                method: &self.poll.method,
                began_at: progress.began_at,
                number: progress.pages,
                now,
            };
            taken += page.take_in(self.log, &answer.body, &records).await.map_err(|error| unstored(&error))?;
            let next = page::next(pagination, &progress.next, body, records.len(), &answer.headers, &answer.url)?;
            kanat_failpoint::hit("poll.page");
            progress.pages += 1;
            if let Some(Position::Value(cursor)) = &next {
                progress.cursor = Some(cursor.clone());
            }
            let Some(next) = next.filter(|_| most == 0 || progress.pages < most) else { break };
            if !asked.insert(self.url(&next)?) {
                return Err(
                    format!("page {} leads back to one before: the endpoint goes in a circle", progress.pages).into()
                );
            }
            progress.next = next;
            let state = State { progress: Some(progress.clone()), ..state.clone() };
            match self.hold.keep(self.log, Some(&state)).await {
                Ok(Settled::Done) => {}
                Ok(Settled::Fenced) => return Err("another node polls for the flow".to_owned().into()),
                Err(error) => return Err(unstored(&error)),
            }
        }
        let cursor = progress.cursor.or_else(|| state.cursor.clone());
        let last_success_at = Some(progress.began_at);
        Ok((State { cursor, last_success_at, progress: None, ..state.clone() }, taken))
    }

    fn url(&self, position: &Position) -> Result<String, String> {
        Ok(self.requests.at(position)?.0.into())
    }

    /// Tells what a page looks like, under the path that it was asked for by.
    fn observe(&self, answer: &Answer) {
        let instance = &self.runnable.flow.plan().source_instance;
        if !instance.is_empty() {
            let endpoint = format!("{} {}", self.requests.method, answer.url.path());
            self.observer.answered(instance, &endpoint, &answer.body);
        }
    }

    /// Asks for a page until it is answered with other than "later".
    async fn ask(&self, position: &Position, place: &mut Place<'_>) -> Result<Answer, Halt> {
        let mut tries = 0;
        loop {
            let (url, headers) = self.requests.at(position)?;
            let request = outbound::Request {
                method: self.requests.method.clone(),
                url: url.clone(),
                headers,
                body: Bytes::new(),
                timeout: TIMEOUT,
            };
            let pass = self.turn(place).await?;
            let answer = self.outbound.send(request).await;
            if let Some(pass) = pass {
                pass.judge(verdict(&answer));
            }
            if let (Some(instance), Some(ended)) = (self.instance, ended(&answer)) {
                self.observer.called(instance.id(), ended);
            }
            let response = answer.map_err(|error| error.to_string())?;
            let now = Timestamp::now();
            let asked = retry_after::asked(response.status, &response.headers, now);
            let wait = asked.or_else(|| (response.status == 429).then(|| Duration::from_secs(1 << tries.min(6))));
            if let Some(wait) = wait {
                tries += 1;
                if tries >= TRIES || wait > LONGEST_WAIT {
                    let message = format!("the endpoint answered {} {tries} times", response.status);
                    return Err(Halt::Failed { message, not_before: Some(now.after(wait)) });
                }
                place.without(tokio::time::sleep(wait)).await;
                continue;
            }
            if !(200..300).contains(&response.status) {
                return Err(format!("the endpoint answered {}", response.status).into());
            }
            if response.truncated {
                return Err(format!("the answer is longer than {} bytes", response.body.len()).into());
            }
            return Ok(Answer { url, headers: response.headers, body: response.body });
        }
    }

    /// The right to one call of the connector. Who waits for it leaves its place to another cycle.
    async fn turn(&self, place: &mut Place<'_>) -> Result<Option<Pass>, Halt> {
        let Some(instance) = self.instance else { return Ok(None) };
        let mut turn = pin!(self.bounds.enter(instance));
        let pass = match turn.as_mut().now_or_never() {
            Some(pass) => pass,
            None => place.without(turn).await,
        };
        pass.map(Some).map_err(|NotNow(wait)| Halt::Waits { until: Timestamp::now().after(wait) })
    }
}

fn text(body: &[u8]) -> Result<&str, String> {
    json::check(body, json::MAX_DEPTH).map_err(|error| {
        format!("the answer is no JSON: line {}, column {}: {}", error.line, error.column, error.message)
    })?;
    std::str::from_utf8(body).map_err(|_| "the answer is no UTF-8".to_owned())
}

fn unstored(error: &kanat_message_log::Error) -> Halt {
    format!("the message log cannot store what came: {error}").into()
}

impl From<String> for Halt {
    fn from(message: String) -> Self {
        Self::Failed { message, not_before: None }
    }
}
