//! The work of a published API by libraries: the key's hash, a tree of the body, the crate
//! `jsonschema`, an answer made of the tree.

use std::collections::HashSet;

use anyhow::{Context, Result};
use http::{HeaderMap, StatusCode, header};
use jsonschema::Validator;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api;

/// The key that the server accepts.
pub const KEY: &str = "bench_ck_0123456789abcdefghijklmnopqrstuvwxyzABCDEF";

pub struct PublishedApi {
    keys: HashSet<[u8; 32]>,
    schema: Validator,
}

impl PublishedApi {
    pub fn new() -> Result<Self> {
        let schema = serde_json::from_str(api::SCHEMA)?;
        let schema = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .map_err(|error| anyhow::anyhow!("{error}"))
            .context("the schema")?;
        Ok(Self {
            keys: HashSet::from([Sha256::digest(KEY).into()]),
            schema,
        })
    }

    pub fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, StatusCode> {
        let key = headers.get(header::AUTHORIZATION);
        let key = key.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let hash: [u8; 32] = Sha256::digest(key.unwrap_or_default()).into();
        if !self.keys.contains(&hash) {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let order: Value = serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)?;
        if !self.schema.is_valid(&order) {
            return Err(StatusCode::UNPROCESSABLE_ENTITY);
        }
        let text = |name: &str| order[name].as_str().unwrap_or_default();
        let answer = json!({
            "order_id": order["id"],
            "sent_at": order["sent_at"],
            "total": format!("{:.2}", order["amount"].as_f64().unwrap_or_default()),
            "currency": text("currency").to_uppercase(),
            "customer": { "name": order["name"], "email": text("email").to_lowercase() },
            "paid": order["paid"],
        });
        serde_json::to_vec(&answer).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    }
}
