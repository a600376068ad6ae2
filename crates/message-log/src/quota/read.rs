//! Reads of the usage of keys.

use kanat_model::id::ConsumerKeyId;
use sqlx::Pool;

use crate::KeyUsage;
use crate::dialect::{Dialect, Statement};
use crate::row::{self, Columns};

pub(crate) async fn usage<D: Dialect>(
    reader: &Pool<D>,
    keys: &[ConsumerKeyId],
) -> sqlx::Result<Vec<KeyUsage>> {
    let rows = usage_statement::<D>(keys).read(reader).await?;
    row::all(&rows, |row| {
        Ok(KeyUsage {
            key: row.id("key_id")?,
            request_count: row.unsigned("request_count")?,
            last_used_at: row.instant("last_used_at")?,
        })
    })
}

/// Returns the statement for the usage of these keys.
pub(crate) fn usage_statement<D: Dialect>(keys: &[ConsumerKeyId]) -> Statement<D> {
    let keys: Vec<&str> = keys.iter().map(ConsumerKeyId::as_str).collect();
    let mut usage = Statement::new("SELECT key_id, request_count, last_used_at FROM quotas");
    usage.push(" WHERE key_id");
    D::one_of_set(&mut usage.0, &keys);
    usage.push(" AND last_used_at > 0");
    usage
}
