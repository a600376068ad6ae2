//! Cache of the public keys of one issuer. One fetch serves all callers that wait for it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::{HeaderMap, Method};
use kanat_auth::jwt::{KeySet, UnverifiedToken};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::outbound;

/// Age at which keys are fetched again, so that withdrawn keys are noticed.
const REFRESH_AGE: Duration = Duration::from_secs(10 * 60);

/// Shortest time between two fetches, however many unknown key ids arrive.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(30);

const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct KeyCache {
    issuer: String,
    jwks_url: Option<String>,
    max_age: Duration,
    entry: ArcSwapOption<CacheEntry>,
    /// Time of the last fetch; locked while one runs.
    last_fetch: Arc<Mutex<Option<Instant>>>,
}

/// Fetches keys on tasks of its own, so that a caller that goes away does not end the fetch that
/// other callers wait for.
pub(super) struct Fetcher {
    pub outbound: outbound::Client,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}

struct CacheEntry {
    keys: Arc<KeySet>,
    fetched: Instant,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
}

impl KeyCache {
    pub fn new(issuer: String, jwks_url: Option<String>, max_age: Duration) -> Self {
        Self {
            issuer,
            jwks_url,
            max_age,
            entry: ArcSwapOption::empty(),
            last_fetch: Arc::default(),
        }
    }

    /// Returns the keys, which are fetched when they are old or lack the key of `token`. `None`
    /// when the issuer does not answer and no keys are young enough.
    pub async fn keys(
        self: &Arc<Self>,
        fetcher: &Fetcher,
        token: &UnverifiedToken<'_>,
    ) -> Option<Arc<KeySet>> {
        if let Some(keys) = self.keys_younger_than(self.max_age)
            && token.find_key(&keys).is_some()
            && (self.keys_younger_than(REFRESH_AGE).is_some()
                || self.last_fetch.try_lock().is_err())
        {
            return Some(keys);
        }
        let mut last_fetch = Arc::clone(&self.last_fetch).lock_owned().await;
        if last_fetch.is_none_or(|last| last.elapsed() >= MIN_FETCH_INTERVAL) {
            *last_fetch = Some(Instant::now());
            let cache = Arc::clone(self);
            let outbound = fetcher.outbound.clone();
            let stop = fetcher.stop.clone();
            let fetch = fetcher.tasks.spawn(async move {
                stop.run_until_cancelled(cache.refresh(&outbound)).await;
                drop(last_fetch);
            });
            if let Err(error) = fetch.await {
                tracing::error!(issuer = self.issuer, %error, "panic while fetching keys");
            }
        }
        self.keys_younger_than(self.max_age)
    }

    fn keys_younger_than(&self, age: Duration) -> Option<Arc<KeySet>> {
        let entry = self.entry.load();
        let entry = entry.as_ref()?;
        (entry.fetched.elapsed() < age).then(|| Arc::clone(&entry.keys))
    }

    async fn refresh(&self, outbound: &outbound::Client) {
        match self.fetch(outbound).await {
            Ok(keys) => self.entry.store(Some(Arc::new(CacheEntry {
                keys: Arc::new(keys),
                fetched: Instant::now(),
            }))),
            Err(error) => tracing::warn!(
                issuer = self.issuer,
                error,
                "the keys of an issuer cannot be fetched"
            ),
        }
    }

    async fn fetch(&self, outbound: &outbound::Client) -> Result<KeySet, String> {
        let jwks_url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover(outbound).await?,
        };
        let body = get(outbound, &jwks_url).await?;
        KeySet::parse(&body).map_err(|error| format!("{jwks_url} answered with {error}"))
    }

    async fn discover(&self, outbound: &outbound::Client) -> Result<String, String> {
        let issuer = self.issuer.trim_end_matches('/');
        let address = format!("{issuer}/.well-known/openid-configuration");
        let body = get(outbound, &address).await?;
        let document: DiscoveryDocument = serde_json::from_slice(&body)
            .map_err(|error| format!("{address} answered with no discovery document: {error}"))?;
        if document.issuer != self.issuer {
            return Err(format!(
                "the discovery document is of issuer {:?}",
                document.issuer
            ));
        }
        Ok(document.jwks_uri)
    }
}

async fn get(outbound: &outbound::Client, address: &str) -> Result<Bytes, String> {
    let url = Url::parse(address).map_err(|error| format!("{address:?} is no address: {error}"))?;
    let request = || outbound::Request {
        method: Method::GET,
        url: url.clone(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        timeout: FETCH_TIMEOUT,
    };
    let answer = match outbound.send(request()).await {
        // The server may have closed an idle connection just before.
        Err(outbound::Error::Network(_)) => outbound.send(request()).await,
        answer => answer,
    };
    let answer = answer.map_err(|error| format!("{address}: {error}"))?;
    if answer.status != 200 {
        return Err(format!("{address} answered {}", answer.status));
    }
    Ok(answer.body)
}
