//! One polling cycle: page after page, each durable before the next one is requested.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::HeaderMap;
use kanat_catalog::Instance;
use kanat_engine::exchange::{self, Extent, ResponseView};
use kanat_engine::{Mask, Resources};
use kanat_message_log::LeasedWriteOutcome;
use kanat_model::Timestamp;
use kanat_net::outbound::{self, Stream};
use kanat_proto::plan::v1::Poll;
use url::Url;

use super::Poller;
use super::answer::{Answer, AnswerError};
use super::evidence::FirstPage;
use super::lease::PollLease;
use super::page;
use super::place::Place;
use super::record_buffer::RecordBuffer;
use super::records::{Counts, Page};
use super::repeat::Repeats;
use super::request::Requests;
use super::state::{Position, Progress, State};
use crate::connector::{CallPermit, Unavailable};
use crate::delivery::{breaker_outcome, call_result, retry_after};
use crate::observed::{CallResult, Observer};
use crate::plans::{RenewalOutcome, Runnable};

/// Deadline of a request, from the connection to the last byte of its answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests for a page that is answered with 429, or with 503 and a delay.
const MAX_TRIES: u32 = 6;

/// Longest wait within a cycle. After a longer one the next cycle begins.
const MAX_WAIT: Duration = Duration::from_secs(5 * 60);

/// Shortest wait within a cycle that its flow shows.
const SHOWN_WAIT: Duration = Duration::from_secs(5);

/// Pages after which a cycle without a bound of its own fails.
const MAX_PAGES: u32 = 1_000_000;

/// Delay of a cycle whose flow takes no messages.
const OVERLOAD_DELAY: Duration = Duration::from_secs(5);

/// Resources of a cycle.
pub(super) struct Cycle<'a> {
    pub poller: &'a Poller,
    pub runnable: &'a Runnable,
    /// Source instance of the flow, if it names one.
    pub instance: Option<&'a Instance>,
    pub poll: &'a Poll,
    pub lease: &'a PollLease,
    pub requests: Requests,
    /// Observer of the calls and answers.
    pub observer: Observer<'a>,
}

/// Result of a complete cycle.
pub(super) struct Outcome {
    pub state: State,
    /// Number of new messages.
    pub taken: usize,
    /// Problem that a person has to know of, although every record of the pages was taken.
    pub complaint: Option<String>,
}

/// Reason why a cycle ended before its last page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Halt {
    /// An error; the message contains no secrets.
    Failed {
        message: String,
        /// Earliest time of the next request that the endpoint allows.
        not_before: Option<Timestamp>,
    },
    /// The connector takes no calls, or the flow no messages, or either was changed. The cycle
    /// continues at `until` from the page that is not done.
    Waits { until: Timestamp },
}

impl Cycle<'_> {
    /// Runs the cycle from `progress` to its end.
    pub async fn run(
        &self,
        state: &State,
        mut progress: Progress,
        mut place: Place,
    ) -> Result<Outcome, Halt> {
        let pagination = self.poll.pagination.as_ref();
        let most = pagination.map_or(1, |pagination| pagination.max_pages);
        // The first page has a URL of its own, to which a later link may lead back.
        let hashes = RandomState::new();
        let mut asked = HashSet::from([
            hashes.hash_one(self.url(&self.requests.first())?),
            hashes.hash_one(self.url(&progress.next)?),
        ]);
        let mut repeats = Repeats::of(pagination);
        let mut taken = 0;
        let mut complaint = None;
        let mut is_whole = true;
        loop {
            let answer = self.ask(&progress.next, &mut place).await?;
            let (url, headers, mut answer) = answer;
            let now = Timestamp::now();
            let page = Page {
                runnable: self.runnable,
                record_id: &self.poll.record_id,
                method: &self.poll.method,
                began_at: progress.began_at,
                number: progress.pages,
                now,
            };
            let mut buffer = RecordBuffer::new(&self.poller.spill);
            loop {
                let records = match answer.records().await {
                    Ok(Some(records)) => records,
                    Ok(None) => break,
                    Err(broken) => return Err(self.broken(&url, &mut answer, broken).await),
                };
                repeats.see(&records);
                buffer.push(records).await.map_err(|error| unkept(&error))?;
            }
            let whole = match answer.end() {
                Ok(whole) => whole,
                Err(message) => {
                    return Err(self.unreadable(&url, &mut answer, &message).await.into());
                }
            };
            drop(answer);
            self.called(CallResult::Success);
            self.observe(&url, whole.sample.as_deref());
            repeats.end_page()?;
            let counts = self.take_in(&page, buffer).await?;
            let count = counts.records;
            taken += counts.messages;
            if let Some(fault) = counts.fault(&self.poll.record_id) {
                complaint.get_or_insert(fault);
            }
            if let Some(left_out) =
                page::left_out(pagination, &progress.next, whole.found.as_deref(), count)
            {
                complaint.get_or_insert(left_out);
                is_whole = false;
            }
            let next = page::next(
                pagination,
                &progress.next,
                whole.found,
                count,
                &headers,
                &url,
            )
            .map_err(|message| self.mask().apply(&message).into_owned())?
            .map(|next| self.requests.bare(next));
            if progress.pages == 0
                && next.is_none()
                && let Some(body) = whole.sample.as_deref().map(String::from_utf8_lossy)
            {
                let first = FirstPage {
                    url: &url,
                    headers: &headers,
                    body: &body,
                    records: count,
                    has_former_cursor: state.cursor.is_some(),
                };
                if let Some(fault) = first.fault(self.poll) {
                    complaint.get_or_insert(fault);
                    is_whole = false;
                }
            }
            kanat_failpoint::hit("poll.page");
            progress.pages += 1;
            if let Some(Position::Value(cursor)) = &next {
                progress.cursor = Some(cursor.clone());
            }
            let Some(next) = next else {
                break;
            };
            if progress.pages >= MAX_PAGES {
                return Err(format!("there is no last page among {MAX_PAGES}").into());
            }
            if !asked.insert(hashes.hash_one(self.url(&next)?)) {
                return Err(format!(
                    "page {} leads back to one before: the endpoint goes in a circle",
                    progress.pages
                )
                .into());
            }
            progress.next = next;
            let is_cut = most > 0 && progress.pages - progress.former_pages >= most;
            if is_cut && !self.requests.reads_state {
                break;
            }
            let kept = Some(progress.clone()).filter(|progress| !self.shows_secret(progress));
            if is_cut {
                complaint.get_or_insert_with(|| cut_message(most, kept.as_ref()));
                return Ok(Outcome {
                    state: State {
                        progress: kept.map(Progress::for_next_cycle),
                        ..state.clone()
                    },
                    taken,
                    complaint,
                });
            }
            let state = State {
                progress: kept,
                ..state.clone()
            };
            match self
                .lease
                .keep(self.poller.log.as_ref(), Some(&state))
                .await
            {
                Ok(LeasedWriteOutcome::Done) => {}
                Ok(LeasedWriteOutcome::Fenced) => {
                    return Err("another node polls for the flow".to_owned().into());
                }
                Err(error) => return Err(unstored(&error)),
            }
            place.pass_on().await;
        }
        let mut state = State {
            progress: None,
            ..state.clone()
        };
        // The next cycle asks again for what a cycle that is not whole has left out.
        if is_whole {
            state.cursor = progress.cursor.or(state.cursor);
            state.last_success_at = Some(progress.began_at);
        }
        Ok(Outcome {
            state,
            taken,
            complaint,
        })
    }

    /// Appends the records of a complete page as messages.
    async fn take_in(&self, page: &Page<'_>, buffer: RecordBuffer<'_>) -> Result<Counts, Halt> {
        let mut whole = buffer.whole().await.map_err(|error| unkept(&error))?;
        let mut counts = Counts::default();
        loop {
            let records = whole.next().await.map_err(|error| unkept(&error))?;
            if records.is_empty() {
                return Ok(counts);
            }
            let part = page
                .take_in(self.poller.log.as_ref(), counts.records, records)
                .await
                .map_err(|error| unstored(&error))?;
            counts.add(&part);
        }
    }

    /// Returns whether the URL of the next page contains a secret that cannot be removed from it.
    /// Progress that shows a secret is not stored: a node that takes over begins the cycle again.
    fn shows_secret(&self, progress: &Progress) -> bool {
        match &progress.next {
            Position::Url(url) => self.mask().apply(url) != *url,
            Position::First | Position::Value(_) | Position::Offset(_) | Position::Page(_) => false,
        }
    }

    fn url(&self, position: &Position) -> Result<String, String> {
        Ok(self.requests.at(position)?.0.into())
    }

    /// Reports the shape of a page under the path of its request.
    fn observe(&self, url: &Url, body: Option<&[u8]>) {
        if let (Some(instance), Some(body)) = (self.instance, body) {
            let endpoint = format!("{} {}", self.requests.method, url.path());
            self.observer
                .answered(instance.id(), &endpoint, body, &self.mask());
        }
    }

    /// Returns the failure of an answer that broke off or is no list of records.
    async fn broken(&self, url: &Url, answer: &mut Answer, broken: AnswerError) -> Halt {
        self.called(CallResult::Failure);
        let message = match broken {
            AnswerError::Call(error) => self.failure(url, &error),
            AnswerError::Content(message) => self.unreadable(url, answer, &message).await,
        };
        self.failed(&message);
        message.into()
    }

    /// Returns the message of an answer that is not as expected, with its call and its beginning.
    async fn unreadable(&self, url: &Url, answer: &mut Answer, message: &str) -> String {
        let mask = self.mask();
        answer
            .read_beginning(exchange::beginning_bytes(&mask))
            .await;
        let beginning = exchange::beginning(&answer.seen(), &mask);
        format!("{message} ({} answered {beginning})", self.call(url))
    }

    /// Returns `GET http://host/orders`, without secrets.
    fn call(&self, url: &Url) -> String {
        let bare = exchange::request(
            &self.requests.method,
            url,
            &HeaderMap::new(),
            b"",
            &self.mask(),
        );
        exchange::method_and_url(&bare)
    }

    /// Returns the message of a call without an answer, without secrets.
    fn failure(&self, url: &Url, error: &outbound::Error) -> String {
        format!(
            "{}: {}",
            self.call(url),
            self.mask().apply(&error.to_string())
        )
    }

    /// Returns the message of an error answer, with the beginning of its body.
    async fn refusal(&self, url: &Url, mut answer: Stream) -> String {
        let mask = self.mask();
        let mut body = Vec::new();
        let mut extent = Extent::Beginning;
        while body.len() < exchange::beginning_bytes(&mask)
            && let Ok(chunk) = answer.chunk().await
        {
            let Some(chunk) = chunk else {
                extent = Extent::Whole;
                break;
            };
            body.extend_from_slice(&chunk);
        }
        let answered = ResponseView {
            status: answer.status(),
            headers: answer.headers(),
            body: &body,
            extent,
        };
        format!(
            "{} answered {}",
            self.call(url),
            exchange::beginning(&answered, &mask)
        )
    }

    fn mask(&self) -> Mask {
        Mask::new(
            self.instance
                .into_iter()
                .flat_map(Instance::secrets)
                .chain(&self.requests.secrets),
        )
    }

    /// Reports a failed poll for which the other side is responsible.
    fn failed(&self, message: &str) {
        if let Some(instance) = self.instance {
            self.observer.polled(
                instance.id(),
                &self.runnable.flow.plan().flow_name,
                Some(message),
            );
        }
    }

    /// Reports the result of a call.
    fn called(&self, ended: CallResult) {
        if let Some(instance) = self.instance {
            self.observer.called(instance.id(), ended);
        }
    }

    /// Requests a page until the answer is other than "later".
    async fn ask(
        &self,
        position: &Position,
        place: &mut Place,
    ) -> Result<(Url, HeaderMap, Answer), Halt> {
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
            self.check_current()?;
            self.check_token()?;
            let answer = self.poller.outbound.open(request).await;
            let status = answer.as_ref().map(Stream::status);
            if let Ok(200..300) = status {
                let answer = answer.map_err(|error| self.failure(&url, &error))?;
                let headers = answer.headers().clone();
                return Ok((
                    url,
                    headers,
                    Answer::new(answer, pass, self.poll, self.poller.outbound.max_response())?,
                ));
            }
            if let Some(pass) = pass {
                pass.record(breaker_outcome(status));
            }
            let ended = call_result(status);
            if let Some(ended) = ended {
                self.called(ended);
            }
            let response = match answer {
                Ok(response) => response,
                Err(error) => {
                    let message = self.failure(&url, &error);
                    if ended == Some(CallResult::Failure) {
                        self.failed(&message);
                    }
                    return Err(message.into());
                }
            };
            let status = response.status();
            let now = Timestamp::now();
            let asked = retry_after::asked(status, response.headers(), now);
            // Reading the answer releases its connection before the wait.
            let message = self.refusal(&url, response).await;
            let wait =
                asked.or_else(|| (status == 429).then(|| Duration::from_secs(1 << tries.min(6))));
            if let Some(wait) = wait {
                tries += 1;
                if tries >= MAX_TRIES || wait > MAX_WAIT {
                    if ended == Some(CallResult::Failure) {
                        self.failed(&message);
                    }
                    return Err(Halt::Failed {
                        message: format!("{message} (tried {tries} times)"),
                        not_before: Some(Timestamp::steady().after(wait)),
                    });
                }
                if wait >= SHOWN_WAIT {
                    let log = self.poller.log.as_ref();
                    self.lease.show_wait(log, wait, &message).await;
                }
                place.without(tokio::time::sleep(wait)).await;
                continue;
            }
            if let (401, Some(instance)) = (status, self.authorized()) {
                match place
                    .without(
                        self.poller
                            .plans
                            .wait_for_renewed_token(self.observer.environment, instance),
                    )
                    .await
                {
                    // The cycle continues at once with the new token.
                    RenewalOutcome::Token(_) => {
                        return Err(Halt::Waits {
                            until: Timestamp::steady(),
                        });
                    }
                    RenewalOutcome::Late => {
                        let message = format!("{message}; no new access token has come");
                        self.failed(&message);
                        return Err(message.into());
                    }
                    RenewalOutcome::Never => {}
                }
            }
            if ended == Some(CallResult::Failure) {
                self.failed(&message);
            }
            return Err(message.into());
        }
    }

    /// Returns the instance, if its credentials are sent.
    fn authorized(&self) -> Option<&Instance> {
        self.instance.filter(|_| self.requests.authorized)
    }

    /// Checks that neither the flow nor its source was changed, paused or removed: no request is
    /// made with an outdated configuration.
    fn check_current(&self) -> Result<(), Halt> {
        let snapshot = self.poller.plans.load();
        let flow = &self.lease.flow;
        let is_same_flow = snapshot
            .flow(&flow.id)
            .is_some_and(|current| Arc::ptr_eq(current, flow));
        let source = &self.runnable.flow.plan().source_instance;
        let instance = snapshot
            .environment(&flow.environment_id)
            .and_then(|environment| environment.instance(source));
        // An unchanged resource has the same address.
        let is_same_source =
            instance.map(std::ptr::from_ref) == self.instance.map(std::ptr::from_ref);
        if is_same_flow && is_same_source {
            return Ok(());
        }
        Err(Halt::Waits {
            until: Timestamp::steady(),
        })
    }

    /// Checks that the access token of the cycle has not expired. The cycle continues at once when
    /// another one is available.
    fn check_token(&self) -> Result<(), Halt> {
        let Some(instance) = self.authorized() else {
            return Ok(());
        };
        let now = Timestamp::now();
        let Err(message) = instance.check_connected(now) else {
            return Ok(());
        };
        let snapshot = self.poller.plans.load();
        let current = snapshot.environment(self.observer.environment);
        match current.and_then(|environment| environment.instance(instance.id())) {
            Some(current) if current.check_connected(now).is_ok() => Err(Halt::Waits {
                until: Timestamp::steady(),
            }),
            Some(_) | None => Err(message.into()),
        }
    }

    /// Waits for the permit for one call of the connector. The cycle lends its place to others
    /// meanwhile.
    async fn turn(&self, place: &mut Place) -> Result<Option<CallPermit>, Halt> {
        let flow = &self.runnable.flow;
        if self
            .poller
            .backlog
            .check(flow.backlog(&self.poller.backlog), flow.backlog_age())
            .is_err()
        {
            return Err(Halt::Waits {
                until: Timestamp::steady().after(OVERLOAD_DELAY),
            });
        }
        let Some(instance) = self.instance else {
            return Ok(None);
        };
        let mut turn = pin!(self.poller.connectors.acquire(instance));
        let pass = match turn.as_mut().now_or_never() {
            Some(pass) => pass,
            None => place.without(turn).await,
        };
        pass.map(Some).map_err(|Unavailable(wait)| Halt::Waits {
            until: Timestamp::steady().after(wait),
        })
    }
}

/// Returns the note of a cycle that ended at `max_pages` before the last page.
fn cut_message(max_pages: u32, kept: Option<&Progress>) -> String {
    let effect = if kept.is_some() {
        "the next cycle goes on there"
    } else {
        "its address holds a secret and cannot be kept, so the next cycle begins at the first page"
    };
    format!(
        "the cycle ended at max_pages ({max_pages}) while the answer named a next page: {effect}, \
         and state.last_success_at stays as it is until the last page"
    )
}

fn unstored(error: &kanat_message_log::Error) -> Halt {
    format!("the message log cannot store what came: {error}").into()
}

fn unkept(error: &std::io::Error) -> Halt {
    format!("the records of a long page cannot be kept on disk: {error}").into()
}

impl From<String> for Halt {
    fn from(message: String) -> Self {
        Self::Failed {
            message,
            not_before: None,
        }
    }
}
