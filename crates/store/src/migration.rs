//! Forward-only migrations, run at open in one transaction. A landed file is never edited; a newer schema is refused.

use crate::dialect::Dialect;
use crate::{Db, Error, meta};

/// The texts of `migrations/`, oldest first; the n-th one leads to schema n.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_spine.sql"),
    include_str!("../migrations/0002_answered_request.sql"),
    include_str!("../migrations/0003_many_processes.sql"),
    include_str!("../migrations/0004_set_hash.sql"),
    include_str!("../migrations/0005_schedule.sql"),
    include_str!("../migrations/0006_adapter.sql"),
    include_str!("../migrations/0007_connector.sql"),
    include_str!("../migrations/0008_batch_job.sql"),
    include_str!("../migrations/0009_published_api.sql"),
    include_str!("../migrations/0010_batch_upload.sql"),
];

const CREATE: &str = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)";
const CURRENT: &str = "SELECT COALESCE(MAX(version), 0) AS version FROM schema_version";
const RECORD: &str = "INSERT INTO schema_version (version) VALUES ($1)";

/// Brings the schema to the one that this build knows.
pub(crate) async fn run(db: &mut Db, dialect: Dialect) -> Result<(), Error> {
    if let Some(lock) = dialect.migration_lock() {
        sqlx::query(lock).execute(&mut *db).await?;
    }
    sqlx::query(CREATE).execute(&mut *db).await?;
    let found: i64 = sqlx::query_scalar(CURRENT).fetch_one(&mut *db).await?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (version, text) in (1..).zip(MIGRATIONS).skip_while(|(version, _)| *version <= found) {
        for statement in statements(&dialect.schema_text(text)) {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut *db).await?;
        }
        sqlx::query(RECORD).bind::<i64>(version).execute(&mut *db).await?;
    }
    meta::ensure_epoch(db).await
}

/// Migrations hold no `;` but at the end of a statement and in comments, which have lines of their own.
fn statements(text: &str) -> Vec<String> {
    let bare: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    bare.join("\n").split(';').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use kanat_testing_postgres::Database;

    use super::*;
    use crate::Store;

    async fn refuses_a_newer_schema(address: &str) {
        let store = Store::open(address).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        sqlx::query(RECORD).bind(99_i64).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        store.close().await;
        assert!(matches!(Store::open(address).await.err(), Some(Error::Newer { found: 99, .. })));
    }

    #[tokio::test]
    async fn refuses_a_file_that_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        refuses_a_newer_schema(&format!("sqlite:{}", folder.path().join("kanat.db").display())).await;
    }

    #[tokio::test]
    async fn refuses_a_postgresql_database_that_is_newer() {
        refuses_a_newer_schema(Database::fresh().url()).await;
    }

    #[tokio::test]
    async fn migrates_once_when_many_processes_start_at_once() {
        let database = Database::fresh();
        let open = || Store::open(database.url());
        let (one, two, three, four) = tokio::join!(open(), open(), open(), open());
        let mut epochs = Vec::new();
        for store in [one, two, three, four] {
            let store = store.unwrap();
            epochs.push(meta::epoch(&mut store.read().await.unwrap()).await.unwrap());
            store.close().await;
        }
        assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
    }

    #[tokio::test]
    async fn orders_text_by_its_bytes_whatever_the_locale_is() {
        let database = Database::fresh();
        let store = Store::open(database.url()).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        for name in ["b", "B", "a", "ä"] {
            meta::set(&mut tx, name, "x").await.unwrap();
        }
        let select = "SELECT name FROM meta WHERE value = 'x' ORDER BY name";
        let names: Vec<String> = sqlx::query_scalar(select).fetch_all(&mut *tx).await.unwrap();
        assert_eq!(names, ["B", "a", "b", "ä"]);
    }

    #[test]
    fn the_shared_types_become_those_of_postgresql() {
        let text = Dialect::Postgres.schema_text(MIGRATIONS[0]);
        assert!(statements(&text).iter().all(|statement| !statement.contains("BLOB")));
        assert!(text.contains("sha256         BYTEA"));
        assert!(text.contains("id         TEXT COLLATE \"C\"   NOT NULL PRIMARY KEY"));
    }
}
