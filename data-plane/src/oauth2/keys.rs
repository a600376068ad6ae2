//! The public keys of one issuer.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use aws_lc_rs::signature::RsaPublicKeyComponents;
use bytes::Bytes;
use http::{HeaderMap, Method};
use kanat_net::outbound;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use super::jwt::{Algorithm, Key, decode};

/// Keys are fetched anew after so long, for the sake of those that were withdrawn.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// Keys that could not be fetched anew for so long prove nothing any more: they may be withdrawn.
const TRUSTED: Duration = Duration::from_secs(60 * 60);

/// Tokens with keys that nobody knows make us ask the issuer no more often than this.
const PAUSE: Duration = Duration::from_secs(10);

const TIMEOUT: Duration = Duration::from_secs(5);

/// Where an issuer's keys are, and those that were fetched.
pub(super) struct Source {
    issuer: String,
    /// Empty when the issuer's discovery document names it.
    jwks_url: String,
    keys: ArcSwapOption<Keys>,
    /// When they were last asked for; held while they are fetched.
    asked: Arc<Mutex<Option<Instant>>>,
}

/// Who fetches keys, on tasks of its own: a caller that goes away leaves the others what it asked
/// for.
pub(super) struct Fetcher {
    pub outbound: outbound::Client,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}

/// Nothing is known that can be trusted, and the issuer does not answer.
pub(super) struct Unreachable;

struct Keys {
    keys: Vec<Arc<PublicKey>>,
    fetched: Instant,
}

/// A key that signatures are proved by.
pub(super) struct PublicKey {
    id: Option<String>,
    pub key: Key,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Source {
    pub fn new(issuer: &str, jwks_url: &str) -> Self {
        let issuer = issuer.to_owned();
        let jwks_url = jwks_url.to_owned();
        Self {
            issuer,
            jwks_url,
            keys: ArcSwapOption::empty(),
            asked: Arc::default(),
        }
    }

    /// The key of that id and algorithm; without an id, the only one of the algorithm.
    pub async fn key(
        self: &Arc<Self>,
        fetcher: &Fetcher,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Option<Arc<PublicKey>>, Unreachable> {
        let known = self.trusted();
        let found = known.as_ref().and_then(|keys| keys.find(id, algorithm));
        let fresh = known
            .as_ref()
            .is_some_and(|keys| keys.fetched.elapsed() < FRESH);
        if found.is_some() && (fresh || self.asked.try_lock().is_err()) {
            return Ok(found);
        }
        let mut asked = Arc::clone(&self.asked).lock_owned().await;
        if asked.is_none_or(|asked| asked.elapsed() >= PAUSE) {
            *asked = Some(Instant::now());
            let source = Arc::clone(self);
            let outbound = fetcher.outbound.clone();
            let stop = fetcher.stop.clone();
            let fetch = fetcher.tasks.spawn(async move {
                stop.run_until_cancelled(source.refresh(&outbound)).await;
                drop(asked);
            });
            if let Err(error) = fetch.await {
                tracing::error!(issuer = self.issuer, %error, "a fetch of keys broke off");
            }
        }
        match self.trusted() {
            Some(keys) => Ok(keys.find(id, algorithm)),
            None => Err(Unreachable),
        }
    }

    fn trusted(&self) -> Option<Arc<Keys>> {
        self.keys
            .load_full()
            .filter(|keys| keys.fetched.elapsed() < TRUSTED)
    }

    async fn refresh(&self, outbound: &outbound::Client) {
        match self.fetch(outbound).await {
            Ok(keys) => self.keys.store(Some(Arc::new(keys))),
            Err(error) => tracing::warn!(
                issuer = self.issuer,
                error,
                "the keys of an issuer cannot be fetched"
            ),
        }
    }

    async fn fetch(&self, outbound: &outbound::Client) -> Result<Keys, String> {
        let jwks_url = if self.jwks_url.is_empty() {
            let address = format!(
                "{}/.well-known/openid-configuration",
                self.issuer.trim_end_matches('/')
            );
            let found: Discovery = get(outbound, &address).await?;
            if found.issuer != self.issuer {
                return Err(format!(
                    "the discovery document is of issuer {:?}",
                    found.issuer
                ));
            }
            found.jwks_uri
        } else {
            self.jwks_url.clone()
        };
        let set: Set = get(outbound, &jwks_url).await?;
        // What this build does not know is for others.
        let keys = set
            .keys
            .into_iter()
            .filter_map(|key| PublicKey::read(serde_json::from_value(key).ok()?));
        let keys: Vec<_> = keys.map(Arc::new).collect();
        if keys.is_empty() {
            return Err("there is no key for RS256, ES256 or EdDSA".to_owned());
        }
        Ok(Keys {
            keys,
            fetched: Instant::now(),
        })
    }
}

impl Keys {
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<PublicKey>> {
        let mut fit = self.keys.iter().filter(|key| {
            key.key.algorithm() == algorithm
                && id.is_none_or(|id| key.id.as_deref().is_none_or(|own| own == id))
        });
        let first = fit.next()?;
        // Without an id it must be clear which.
        if id.is_none() && fit.next().is_some() {
            None
        } else {
            Some(Arc::clone(first))
        }
    }
}

impl PublicKey {
    /// `None` when it is for something else, or of a kind that is not taken.
    fn read(jwk: Jwk) -> Option<Self> {
        if jwk.usage.is_some_and(|usage| usage != "sig") {
            return None;
        }
        let (name, key) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => (
                "RS256",
                Key::Rsa(RsaPublicKeyComponents {
                    n: decode(jwk.n?)?,
                    e: decode(jwk.e?)?,
                }),
            ),
            ("EC", Some("P-256")) => {
                let x = decode(jwk.x?)?;
                let y = decode(jwk.y?)?;
                // An uncompressed point says so in its first byte.
                (
                    "ES256",
                    Key::P256([&[4], x.as_slice(), y.as_slice()].concat()),
                )
            }
            ("OKP", Some("Ed25519")) => ("EdDSA", Key::Ed25519(decode(jwk.x?)?)),
            _ => return None,
        };
        jwk.alg
            .is_none_or(|alg| alg == name)
            .then_some(Self { id: jwk.kid, key })
    }
}

async fn get<T: DeserializeOwned>(outbound: &outbound::Client, address: &str) -> Result<T, String> {
    let url = Url::parse(address).map_err(|error| format!("{address:?} is no address: {error}"))?;
    let method = Method::GET;
    let headers = HeaderMap::new();
    let body = Bytes::new();
    let request = outbound::Request {
        method,
        url,
        headers,
        body,
        timeout: TIMEOUT,
    };
    let answer = outbound
        .send(request)
        .await
        .map_err(|error| format!("{address}: {error}"))?;
    if answer.status != 200 {
        return Err(format!("{address} answered {}", answer.status));
    }
    serde_json::from_slice(&answer.body)
        .map_err(|error| format!("{address} answered what is no such document: {error}"))
}
