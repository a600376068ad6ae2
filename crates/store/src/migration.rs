//! Forward-only migrations, run at open in one transaction. A landed file is never edited; a newer
//! schema is refused.

use crate::dialect::Dialect;
use crate::{Db, Error, Result, flow_text, meta, search_entry};

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        &[$(include_str!(concat!("../migrations/", $name, ".sql"))),*]
    };
}

/// The texts of `migrations/`, oldest first; the n-th one leads to schema n.
const MIGRATIONS: &[&str] = texts![
    "0001_spine",
    "0002_answered_request",
    "0003_many_processes",
    "0004_set_hash",
    "0005_schedule",
    "0006_adapter",
    "0007_connector",
    "0008_batch_job",
    "0009_published_api",
    "0010_batch_upload",
    "0011_paused_flow",
    "0012_calls",
    "0013_control_plane",
    "0014_sealed_definition",
    "0015_control_plane_key",
    "0016_policy",
    "0017_audit",
    "0018_search",
    "0019_version_maker",
    "0020_protected_environment",
    "0021_environment_variables",
    "0022_environment_retention",
    "0023_member",
    "0024_flow_text",
    "0025_former_flow_use",
];

/// The schema from which on words of resources are in an index.
const SEARCH: i64 = 18;

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)";
const CURRENT: &str = "SELECT COALESCE(MAX(version), 0) AS version FROM schema_version";
const RECORD: &str = "INSERT INTO schema_version (version) VALUES ($1)";

/// Brings the schema to the one that this build knows.
pub(crate) async fn run(db: &mut Db, dialect: Dialect) -> Result<()> {
    let found = apply(db, dialect, MIGRATIONS).await?;
    if found < SEARCH {
        search_entry::fill(db).await?;
    }
    if found < schema_of(MIGRATIONS) {
        flow_text::fill(db).await?;
    }
    meta::ensure_epoch(db).await
}

/// Applies the migrations that the database lacks, and returns its schema of before.
async fn apply(db: &mut Db, dialect: Dialect, migrations: &[&str]) -> Result<i64> {
    if let Some(lock) = dialect.migration_lock() {
        sqlx::query(lock).execute(&mut *db).await?;
    }
    sqlx::query(CREATE).execute(&mut *db).await?;
    let found: i64 = sqlx::query_scalar(CURRENT).fetch_one(&mut *db).await?;
    let known = schema_of(migrations);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (version, text) in (1..)
        .zip(migrations)
        .skip_while(|(version, _)| *version <= found)
    {
        for statement in statements(&dialect.schema_text(text)) {
            sqlx::query(sqlx::AssertSqlSafe(statement))
                .execute(&mut *db)
                .await?;
        }
        sqlx::query(RECORD)
            .bind::<i64>(version)
            .execute(&mut *db)
            .await?;
    }
    Ok(found)
}

/// Returns the schema that migrations lead to.
fn schema_of(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

/// Migrations hold no `;` but at the end of a statement and in comments, which have lines of their
/// own.
fn statements(text: &str) -> Vec<String> {
    let bare: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    bare.join("\n")
        .split(';')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use kanat_model::id::AccountId;
    use kanat_model::page::Page;
    use kanat_testing_postgres::Database;

    use super::*;
    use crate::{Store, environment, flow, published_api};

    async fn refuses_a_newer_schema(address: &str) {
        let store = Store::open(address).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        sqlx::query(RECORD)
            .bind(99_i64)
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        store.close().await;
        assert!(matches!(
            Store::open(address).await.err(),
            Some(Error::Newer { found: 99, .. })
        ));
    }

    #[tokio::test]
    async fn refuses_a_file_that_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        refuses_a_newer_schema(&format!(
            "sqlite:{}",
            folder.path().join("kanat.db").display()
        ))
        .await;
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

    /// As the build before published APIs left it.
    const OF_BEFORE: &str = "
        INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'default', 1);
        INSERT INTO environment (id, account_id, name, is_default, generation, created_at)
            VALUES ('env_1', 'acc_1', 'development', 1, 7, 2);
        INSERT INTO flow (id, account_id, environment_id, name, description, status, version, \
                trigger_kind, yaml_config,
                change_summary, revision, created_at, updated_at)
            VALUES ('flw_1', 'acc_1', 'env_1', 'orders', '', 'active', 1, 'manual', \
                'flow: orders', '', 3, 4, 5);
        INSERT INTO batch_job (id, account_id, environment_id, flow_id, status, total, \
                concurrency, succeeded, failed,
                created_at, started_at)
            VALUES ('bat_1', 'acc_1', 'env_1', 'flw_1', 'running', 1, 1, 0, 0, 6, 6);
        INSERT INTO batch_record (job_id, position, state, payload) \
            VALUES ('bat_1', 0, 'pending', '{\"n\":1}')";

    async fn keeps_what_an_older_build_left(address: &str, dialect: Dialect) {
        let store = Store::attach(address).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        apply(&mut tx, dialect, &MIGRATIONS[..8]).await.unwrap();
        meta::ensure_epoch(&mut tx).await.unwrap();
        let epoch = meta::epoch(&mut tx).await.unwrap();
        for statement in statements(OF_BEFORE) {
            sqlx::query(sqlx::AssertSqlSafe(statement))
                .execute(&mut *tx)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        store.close().await;

        let store = Store::open(address).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        assert_eq!(meta::epoch(&mut tx).await.unwrap(), epoch);
        let account = AccountId::new("acc_1");
        let found = environment::default(&mut tx, &account)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.name.as_str(), "development");
        assert_eq!(found.generation, 7);
        assert_eq!(found.base_url, None);
        assert_eq!(found.revision, 1);
        assert_eq!(found.created_at.as_millis(), 2);
        assert_eq!(found.updated_at.as_millis(), 2);
        let orders = flow::find(&mut tx, &found.id, "orders")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(orders.id.as_str(), "flw_1");
        assert_eq!(orders.version, 1);
        assert_eq!(orders.yaml_config.as_str(), "flow: orders");
        let words = ["order".to_owned()];
        let entries = search_entry::find(&mut tx, &found.id, None, &words).await;
        let ids: Vec<String> = entries.unwrap().into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, ["flw_1"]);
        let filter = flow::Filter {
            status: None,
            search: "RDER".to_owned(),
        };
        let list = flow::list(&mut tx, &found.id, &filter, Page::new(None, None)).await;
        assert_eq!(list.unwrap().items, [orders]);
        let select = "SELECT payload FROM batch_record WHERE job_id = 'bat_1'";
        let records: Vec<String> = sqlx::query_scalar(select)
            .fetch_all(&mut *tx)
            .await
            .unwrap();
        assert_eq!(records, [r#"{"n":1}"#]);
        let page = Page {
            limit: 10,
            offset: 0,
        };
        assert_eq!(
            published_api::list(&mut tx, &found.id, "", page)
                .await
                .unwrap()
                .total,
            0
        );
        let newest: i64 = sqlx::query_scalar(CURRENT)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        assert_eq!(usize::try_from(newest).unwrap(), MIGRATIONS.len());
    }

    #[tokio::test]
    async fn keeps_what_an_older_build_left_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("kanat.db").display());
        keeps_what_an_older_build_left(&address, Dialect::Sqlite).await;
    }

    #[tokio::test]
    async fn keeps_what_an_older_build_left_in_a_postgresql_database() {
        keeps_what_an_older_build_left(Database::fresh().url(), Dialect::Postgres).await;
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
        let names: Vec<String> = sqlx::query_scalar(select)
            .fetch_all(&mut *tx)
            .await
            .unwrap();
        assert_eq!(names, ["B", "a", "b", "ä"]);
    }

    #[test]
    fn the_shared_types_become_those_of_postgresql() {
        let text = Dialect::Postgres.schema_text(MIGRATIONS[0]);
        assert!(
            statements(&text)
                .iter()
                .all(|statement| !statement.contains("BLOB"))
        );
        assert!(text.contains("sha256         BYTEA"));
        assert!(text.contains("id         TEXT COLLATE \"C\"   NOT NULL PRIMARY KEY"));
    }
}
