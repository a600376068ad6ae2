//! Fills the configuration of a stopped service, faster than through its API: copies of resources
//! that were made through the API are published in its database, under its next generation.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kanat_auth::Sealer;
use kanat_plan_stream::parts::{self, Size};
use kanat_plan_stream::{Hash, Kind, SetHash};
use kanat_proto::plan::v1::lookup_table::Entry;
use kanat_proto::plan::v1::trigger::Kind as Trigger;
use kanat_proto::plan::v1::{ConsumerKey, FlowPlan, LookupTable, Webhook, WebhookToken};
use prost::Message;
use rusqlite::{Connection, params};

/// Entries of one lookup table.
const TABLE_ENTRIES: usize = 100_000;

const ENVIRONMENT: &str =
    "SELECT environment_id FROM published WHERE resource_id LIKE 'flow/%' LIMIT 1";
const OF_KIND: &str =
    "SELECT resource_id, sealed FROM published WHERE resource_id LIKE ?1 AND removed = 0";
const REVISION: &str = "SELECT generation, set_hash FROM environment WHERE id = ?1";
const PUT: &str =
    "INSERT INTO published (environment_id, resource_id, hash, sealed, generation, removed)
    VALUES (?1, ?2, ?3, ?4, ?5, 0)";
const ADVANCE: &str =
    "UPDATE environment SET generation = ?2, set_hash = ?3, set_hash_of = ?2 WHERE id = ?1";

/// The configuration of a stopped service.
pub struct Fill {
    connection: Connection,
    sealer: Sealer,
    environment: String,
    generation: i64,
    set_hash: SetHash,
}

impl Fill {
    /// Opens the configuration in a data folder, in which a flow was deployed.
    pub fn begin(data: &Path) -> Result<Self> {
        let connection = Connection::open(data.join("config.db"))?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let sealer = Sealer::from_env_or_file(None, data)?;
        let environment: String = connection.query_row(ENVIRONMENT, (), |row| row.get(0))?;
        let (generation, set_hash): (i64, String) =
            connection.query_row(REVISION, [&environment], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let set_hash = SetHash::from_hex(&set_hash).context("the environment has no set hash")?;
        Ok(Self {
            connection,
            sealer,
            environment,
            generation: generation + 1,
            set_hash,
        })
    }

    /// Adds flows like the deployed one, each with a webhook of its own, and returns the size of a
    /// plan.
    pub fn flows(&mut self, count: usize) -> Result<usize> {
        let first = self.first(Kind::Flow, |plan: &FlowPlan| {
            webhook(&mut plan.clone()).is_some()
        })?;
        let mut size = 0;
        for n in 0..count {
            let mut plan = FlowPlan {
                flow_id: flow(n),
                ..first.clone()
            };
            plan.flow_name = format!("bench-orders-{n}");
            let token = WebhookToken {
                sha256: digest(&plan.flow_id),
                expires_at: 0,
            };
            if let Some(webhook) = webhook(&mut plan) {
                webhook.tokens = vec![token];
            }
            let body = plan.encode_to_vec();
            size = body.len();
            self.put(&Kind::Flow.resource_id(&plan.flow_id), &body)?;
        }
        Ok(size)
    }

    /// Adds consumer keys like the existing one.
    pub fn keys(&mut self, count: usize) -> Result<()> {
        let first = self.first(Kind::ConsumerKey, |_: &ConsumerKey| true)?;
        for n in 0..count {
            let id = format!("ck_bench{n:08}");
            let key = ConsumerKey {
                sha256: digest(&id),
                id: id.clone(),
                ..first.clone()
            };
            self.put(&Kind::ConsumerKey.resource_id(&id), &key.encode_to_vec())?;
        }
        Ok(())
    }

    /// Adds lookup tables with `count` entries in all.
    pub fn entries(&mut self, count: usize) -> Result<()> {
        for (number, first) in (0..count).step_by(TABLE_ENTRIES).enumerate() {
            let entries = (first..count.min(first + TABLE_ENTRIES)).map(|n| Entry {
                key: format!("customer-{n:09}"),
                value: format!("region {}", n % 50),
            });
            let entries: Vec<Entry> = entries.collect();
            let size = Size::of(&entries);
            let head = LookupTable {
                id: format!("lt_bench{number:04}"),
                name: format!("bench_{number}"),
                version: 1,
                parts: parts::count(size),
                text_bytes: size.text_bytes as u64,
                ..LookupTable::default()
            };
            self.put(
                &Kind::LookupTable.resource_id(&head.id),
                &parts::encode(&head),
            )?;
            let count = head.parts;
            let table = LookupTable { entries, ..head };
            for part in parts::split(table, count) {
                self.put(
                    &Kind::LookupPart.resource_id(&part.id),
                    &parts::encode(&part),
                )?;
            }
        }
        Ok(())
    }

    /// Publishes everything.
    pub fn finish(self) -> Result<()> {
        self.connection.execute(
            ADVANCE,
            params![self.environment, self.generation, self.set_hash.to_string()],
        )?;
        self.connection.execute_batch("COMMIT")?;
        Ok(())
    }

    fn first<M: Message + Default>(&self, kind: Kind, fits: impl Fn(&M) -> bool) -> Result<M> {
        let mut statement = self.connection.prepare(OF_KIND)?;
        let rows = statement.query_map([format!("{}/%", kind.as_str())], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for row in rows {
            let (id, sealed): (String, Vec<u8>) = row?;
            let body = M::decode(self.sealer.open(&sealed, &self.context(&id))?.as_slice())?;
            if fits(&body) {
                return Ok(body);
            }
        }
        bail!("there is no {} to copy", kind.as_str())
    }

    fn put(&mut self, resource_id: &str, body: &[u8]) -> Result<()> {
        let hash = Hash::of(body);
        let sealed = self.sealer.seal(body, &self.context(resource_id));
        let values = params![
            self.environment,
            resource_id,
            hash.as_bytes(),
            sealed,
            self.generation
        ];
        self.connection.prepare_cached(PUT)?.execute(values)?;
        self.set_hash = self.set_hash.toggled(resource_id, hash);
        Ok(())
    }

    /// Context that a published body is sealed under.
    fn context(&self, resource_id: &str) -> String {
        format!("published/{}/{resource_id}", self.environment)
    }
}

fn flow(n: usize) -> String {
    format!("flw_bench{n:08}")
}

/// Returns the path of a filled flow's webhook: its token is its id.
pub fn webhook_of(n: usize) -> String {
    format!("/webhooks/receive/{}", flow(n))
}

/// Copies the content of a folder into a new one.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let source = entry.path();
        let copied = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&source, &copied)?;
        } else {
            std::fs::copy(&source, &copied)?;
        }
    }
    Ok(())
}

fn webhook(plan: &mut FlowPlan) -> Option<&mut Webhook> {
    match plan.trigger.as_mut()?.kind.as_mut()? {
        Trigger::Webhook(webhook) => Some(webhook),
        _ => None,
    }
}

fn digest(text: &str) -> Vec<u8> {
    Hash::of(text.as_bytes()).to_vec()
}
