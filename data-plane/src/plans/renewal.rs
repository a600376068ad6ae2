//! Renewal of access tokens that were refused before they expired: the control plane is asked for
//! another token, and the refused calls wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kanat_catalog::Instance;
use kanat_engine::Resources;
use kanat_model::id::EnvironmentId;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::{Environment, Plans};
use crate::observed::Observer;

/// Time after the refusal of a token within which another one has to come.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between two renewals for one instance: a provider that refuses the token that it has just
/// issued is not asked again.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(60);

/// Interval of checks whether another token has come.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Outcome of the wait for another token.
pub(crate) enum RenewalOutcome {
    /// The token is in this environment.
    Token(Arc<Environment>),
    /// No token has come in time.
    Late,
    /// The provider issues none: the refusal stands.
    Never,
}

/// Recently refused tokens by the instance's id.
#[derive(Default)]
pub(super) struct RefusedTokens(Mutex<HashMap<String, RefusedToken>>);

struct RefusedToken {
    token: Vec<u8>,
    at: Instant,
}

/// Action on one more refusal.
#[derive(Debug, PartialEq, Eq)]
enum RenewalAction {
    /// Ask for another token, and wait for it.
    Request,
    /// Another token was asked for already: wait for this time.
    Await(Duration),
    /// Another token was refused a moment ago: do not ask again.
    None,
}

impl Plans {
    /// Asks for another access token in the place of the one of `instance`, which was refused, and
    /// waits for it for at most [`RENEWAL_TIMEOUT`].
    pub(crate) async fn wait_for_renewed_token(
        &self,
        environment: &EnvironmentId,
        instance: &Instance,
    ) -> RenewalOutcome {
        let Some(token) = instance.access_token().filter(|token| token.renewable) else {
            return RenewalOutcome::Never;
        };
        let outcome = || {
            let snapshot = self.load();
            let current = snapshot.environment(environment)?;
            let other = current.instance(instance.id())?.access_token()?;
            match (other.text != token.text, other.renewable) {
                (true, _) => Some(RenewalOutcome::Token(Arc::clone(current))),
                // The provider was asked for another token, and issues none.
                (false, false) => Some(RenewalOutcome::Never),
                (false, true) => None,
            }
        };
        if let Some(outcome) = outcome() {
            return outcome;
        }
        let hash = Sha256::digest(token.text.as_bytes()).to_vec();
        let remaining = match self
            .shared
            .refused_tokens
            .note(instance.id(), &hash, Instant::now())
        {
            RenewalAction::None => return RenewalOutcome::Never,
            RenewalAction::Await(remaining) => remaining,
            RenewalAction::Request => {
                tracing::info!(
                    instance.id = %instance.id(),
                    "a connector refused its access token: another is asked for",
                );
                Observer {
                    observed: self.observed(),
                    environment,
                }
                .token_refused(instance.id(), hash);
                RENEWAL_TIMEOUT
            }
        };
        let begun = Instant::now();
        while begun.elapsed() < remaining {
            sleep(POLL_INTERVAL).await;
            if let Some(outcome) = outcome() {
                return outcome;
            }
        }
        RenewalOutcome::Late
    }
}

impl RefusedTokens {
    fn note(&self, instance: &str, token: &[u8], now: Instant) -> RenewalAction {
        let mut refused = self.0.lock();
        refused.retain(|_, token| now.saturating_duration_since(token.at) < MIN_RENEWAL_INTERVAL);
        match refused.get(instance) {
            Some(refused) if refused.token == token => RenewalAction::Await(
                RENEWAL_TIMEOUT.saturating_sub(now.saturating_duration_since(refused.at)),
            ),
            Some(_) => RenewalAction::None,
            None => {
                refused.insert(
                    instance.to_owned(),
                    RefusedToken {
                        token: token.to_vec(),
                        at: now,
                    },
                );
                RenewalAction::Request
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_reported_once_and_that_of_the_next_token_stands() {
        let refused = RefusedTokens::default();
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(
            refused.note("ci_1", b"first", begin),
            RenewalAction::Request
        );
        assert_eq!(
            refused.note("ci_1", b"first", after(4)),
            RenewalAction::Await(Duration::from_secs(6))
        );
        assert_eq!(
            refused.note("ci_1", b"first", after(40)),
            RenewalAction::Await(Duration::ZERO)
        );
        assert_eq!(
            refused.note("ci_1", b"second", after(5)),
            RenewalAction::None
        );
        assert_eq!(
            refused.note("ci_2", b"second", after(5)),
            RenewalAction::Request
        );
        assert_eq!(
            refused.note("ci_1", b"second", after(60)),
            RenewalAction::Request
        );
    }
}
