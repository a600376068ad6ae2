//! The ordering key and the idempotency key that a version of a flow gives a message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use kanat_auth::seal::Sealer;
use kanat_engine::trigger::{self, SEALED, sealing_context};
use kanat_engine::{Input, Keys, Mask, Program};
use kanat_mapping::{Effort, json};
use kanat_message_log::{Content, DedupeKey, key};
use kanat_model::id::EnvironmentId;
use kanat_model::{Error, Result, Timestamp};
use kanat_proto::plan::v1::FlowPlan;
use kanat_script::apart;

use super::names::EnvironmentNames;
use super::samples::Samples;
use crate::app::{App, environment};

/// Keys of a message in the form of the message log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageKeys {
    pub ordering: Option<String>,
    pub idempotency: Option<DedupeKey>,
}

/// The key expressions of a version, with the resources that they read.
pub struct PlanKeys {
    environment_id: EnvironmentId,
    /// `None` for a version without keys, which most are: it needs no evaluation.
    evaluation: Option<Evaluation>,
}

struct Evaluation {
    program: Program,
    samples: Samples,
    /// Opens the credentials of requests; `None` for expressions that read none.
    sealer: Option<Sealer>,
}

impl PlanKeys {
    /// Reads what the key expressions of `plan` need.
    ///
    /// # Errors
    /// The store cannot be read, or the plan does not compile.
    pub async fn load(app: &App, plan: &FlowPlan, environment_id: &EnvironmentId) -> Result<Self> {
        let environment_id = environment_id.clone();
        if plan.ordering_key.is_empty() && plan.idempotency_key.is_empty() {
            return Ok(Self {
                environment_id,
                evaluation: None,
            });
        }
        let mut tx = app.store.read().await?;
        let names = EnvironmentNames::load(&mut tx, &environment_id).await?;
        let samples = Samples::load(app, &mut tx, &environment_id, plan, &names).await?;
        drop(tx);
        let program = Program::compile(plan.clone())
            .map_err(|error| Error::precondition(error.to_string()))?;
        let sealer = match program.reads_credentials() {
            true => Some(environment::sealer(app, &environment_id).await?),
            false => None,
        };
        Ok(Self {
            environment_id,
            evaluation: Some(Evaluation {
                program,
                samples,
                sealer,
            }),
        })
    }

    /// Returns whether a message can have a key.
    pub fn has_any(&self) -> bool {
        self.evaluation.is_some()
    }

    /// Returns the keys of a payload that comes by the management API with this `trigger` document.
    pub fn of_payload(&self, payload: &[u8], trigger: &[u8], now: Timestamp) -> MessageKeys {
        match &self.evaluation {
            Some(evaluation) => stored(evaluation.keys(payload, trigger, now), &[]),
            None => MessageKeys::default(),
        }
    }

    /// Returns the keys of a message of the log. A message whose credentials cannot be opened has
    /// none: its run fails for the same reason.
    pub fn of_content(&self, content: &Content, now: Timestamp) -> MessageKeys {
        let Some(evaluation) = &self.evaluation else {
            return MessageKeys::default();
        };
        let payload = content.payload.as_ref().unwrap_or(&content.raw_body);
        match evaluation.sealed(&content.request) {
            None => stored(evaluation.keys(payload, &content.request, now), &[]),
            Some(sealed) => match evaluation.open(&sealed, &self.environment_id) {
                Some(clear) => stored(
                    evaluation.keys(payload, &clear, now),
                    &trigger::credentials(&clear),
                ),
                None => MessageKeys::default(),
            },
        }
    }
}

impl Evaluation {
    fn keys(&self, payload: &[u8], trigger: &[u8], now: Timestamp) -> Keys {
        apart::evaluate_now(&Effort::default(), |effort| {
            let input = Input {
                payload,
                trigger,
                steps: b"{}",
                now,
                mask: Mask::none(),
                effort,
            };
            self.program.keys(&input, &self.samples)
        })
    }

    /// Returns the sealed document beside a stored one that the expressions need.
    fn sealed(&self, request: &[u8]) -> Option<String> {
        self.sealer.as_ref()?;
        let request = std::str::from_utf8(request).ok()?;
        json::member(request, SEALED).map(|sealed| json::decode(sealed).into_owned())
    }

    fn open(&self, sealed: &str, environment_id: &EnvironmentId) -> Option<Vec<u8>> {
        let sealed = STANDARD_NO_PAD.decode(sealed).ok()?;
        let sealer = self.sealer.as_ref()?;
        sealer.open(&sealed, &sealing_context(environment_id)).ok()
    }
}

fn stored(keys: Keys, credentials: &[String]) -> MessageKeys {
    let clean = |key: String| key::without_credentials(key, credentials);
    MessageKeys {
        ordering: keys.ordering.map(|key| key::ordering(clean(key))),
        idempotency: keys.idempotency.map(|key| key::idempotency(clean(key))),
    }
}
