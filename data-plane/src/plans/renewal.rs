//! Access tokens that were refused before their end: the control plane is told, and who was refused
//! waits for another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kanat_catalog::Instance;
use kanat_engine::Resources;
use kanat_model::id::EnvironmentId;
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::{Environment, Plans};
use crate::observed::Observer;

/// From the refusal of a token until it is given up that another comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// For one instance no other is asked for in this time: a provider that refuses what it has just
/// given is not asked again.
const PAUSE: Duration = Duration::from_secs(60);

/// How often it is looked whether there is another.
const LOOK: Duration = Duration::from_millis(50);

/// What became of the wish for another token.
pub(crate) enum Renewed {
    /// It is in this environment.
    Token(Arc<Environment>),
    /// It has not come in time.
    Late,
    /// None is to be had: the refusal stands.
    Never,
}

/// The refusals of late, by the instance's id.
#[derive(Default)]
pub(super) struct Refusals(Mutex<HashMap<String, Refusal>>);

struct Refusal {
    token: Vec<u8>,
    at: Instant,
}

/// What is to be done about one more refusal.
#[derive(Debug, PartialEq, Eq)]
enum Duty {
    /// Tell of it, and wait.
    Tell,
    /// It was told: wait for so long.
    Wait(Duration),
    /// Another token was refused a moment ago: there is no sense in it.
    Nothing,
}

impl Plans {
    /// Waits for another access token than the one of `instance`, which was refused.
    pub(crate) async fn renewed(
        &self,
        environment: &EnvironmentId,
        instance: &Instance,
    ) -> Renewed {
        let Some(token) = instance.access_token().filter(|token| token.renewable) else {
            return Renewed::Never;
        };
        let outcome = || {
            let snapshot = self.load();
            let current = snapshot.environment(environment)?;
            let other = current.instance(instance.id())?.access_token()?;
            match (other.text != token.text, other.renewable) {
                (true, _) => Some(Renewed::Token(Arc::clone(current))),
                // The provider was asked for another, and gives none.
                (false, false) => Some(Renewed::Never),
                (false, true) => None,
            }
        };
        if let Some(outcome) = outcome() {
            return outcome;
        }
        let hash = Sha256::digest(token.text.as_bytes()).to_vec();
        let patience = match self
            .shared
            .refusals
            .note(instance.id(), &hash, Instant::now())
        {
            Duty::Nothing => return Renewed::Never,
            Duty::Wait(patience) => patience,
            Duty::Tell => {
                tracing::info!(
                    instance.id = %instance.id(),
                    "a connector refused its access token: another is asked for",
                );
                Observer {
                    observed: self.observed(),
                    environment,
                }
                .token_refused(instance.id(), hash);
                PATIENCE
            }
        };
        let begun = Instant::now();
        while begun.elapsed() < patience {
            sleep(LOOK).await;
            if let Some(outcome) = outcome() {
                return outcome;
            }
        }
        Renewed::Late
    }
}

impl Refusals {
    fn note(&self, instance: &str, token: &[u8], now: Instant) -> Duty {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.retain(|_, refusal| now.saturating_duration_since(refusal.at) < PAUSE);
        match refusals.get(instance) {
            Some(refusal) if refusal.token == token => {
                Duty::Wait(PATIENCE.saturating_sub(now.saturating_duration_since(refusal.at)))
            }
            Some(_) => Duty::Nothing,
            None => {
                refusals.insert(
                    instance.to_owned(),
                    Refusal {
                        token: token.to_vec(),
                        at: now,
                    },
                );
                Duty::Tell
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_once_and_that_of_the_next_token_stands() {
        let refusals = Refusals::default();
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(refusals.note("ci_1", b"first", begin), Duty::Tell);
        assert_eq!(
            refusals.note("ci_1", b"first", after(4)),
            Duty::Wait(Duration::from_secs(6))
        );
        assert_eq!(
            refusals.note("ci_1", b"first", after(40)),
            Duty::Wait(Duration::ZERO)
        );
        assert_eq!(refusals.note("ci_1", b"second", after(5)), Duty::Nothing);
        assert_eq!(refusals.note("ci_2", b"second", after(5)), Duty::Tell);
        assert_eq!(refusals.note("ci_1", b"second", after(60)), Duty::Tell);
    }
}
