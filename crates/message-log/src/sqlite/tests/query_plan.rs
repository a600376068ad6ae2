//! Every statement that grows with the log finds its rows by an index.

use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use sqlx::{AssertSqlSafe, Row, Sqlite, SqliteConnection};

use super::File;
use crate::contract::Harness;
use crate::dialect::Dialect;
use crate::event::page;
use crate::list::{environment, flow};
use crate::message::read;
use crate::poll::read::seen_statement;
use crate::quota::read::usage_statement;
use crate::row::PAGE;
use crate::sqlite::{
    append, backlog, change, claim, operator_decision, plan, poll, quota, retain, schema, step,
};
use crate::{Cursor, EnvironmentFilter, EventQuery, Filter, Position, Tenant};

const TABLES: &[&str] = &[
    "messages",
    "bodies",
    "transitions",
    "steps",
    "dedupe",
    "polls",
    "seen_records",
    "quotas",
    "m",
    "b",
    "t",
    "e",
    "n",
    "h",
    "d",
];

/// Returns the steps of the query plan.
async fn explain(conn: &mut SqliteConnection, statement: &str) -> Vec<String> {
    let explain = format!("EXPLAIN QUERY PLAN {statement}");
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(conn).await;
    let rows = rows.unwrap_or_else(|error| panic!("{error} in {statement}"));
    rows.iter()
        .map(|row| row.get::<String, _>("detail"))
        .collect()
}

/// Returns the steps that read a whole table.
async fn scans(conn: &mut SqliteConnection, statement: &str) -> Vec<String> {
    let details = explain(conn, statement).await.into_iter();
    details
        .filter(|detail| {
            let table = detail
                .strip_prefix("SCAN ")
                .and_then(|rest| rest.split_whitespace().next());
            // The first entry of an index is a scan that ends at once.
            table.is_some_and(|table| TABLES.contains(&table))
                && !detail.contains("INDEX messages_open")
        })
        .collect()
}

#[tokio::test]
async fn no_statement_reads_a_whole_table() {
    let file = File::new();
    let log = file.open().await;
    let mut conn = file.connect().await;
    let tenant = Tenant {
        account_id: "a".into(),
        environment_id: "e".into(),
    };
    let all = Filter::flow(tenant.clone(), FlowId::new("f"));
    let filters = [
        all.clone(),
        Filter {
            statuses: vec![Status::DeadLetter],
            ..all.clone()
        },
        Filter {
            statuses: Status::WAITING.to_vec(),
            ..all.clone()
        },
        Filter {
            search: Some("x".to_owned()),
            since: Some(kanat_model::Timestamp::now()),
            ..all.clone()
        },
        Filter {
            ids: vec![MessageId::new("1"), MessageId::new("2")],
            ..all
        },
    ];
    let cursor = Cursor {
        received_at: kanat_model::Timestamp::from_millis(0),
        seq: 0,
    };
    let position = Position::After { cursor, limit: 50 };
    let mut statements: Vec<String> = filters
        .iter()
        .map(|filter| flow::select::<Sqlite>(PAGE, filter, position, 51).into_text())
        .collect();
    let id = MessageId::new("1");
    for (columns, joined) in [
        (PAGE, Sqlite::BODIES),
        (read::CONTENT, Sqlite::BODIES),
        (read::TRACE, read::TRANSITIONS),
    ] {
        let message = read::by_id::<Sqlite>(columns, joined, &tenant, &id);
        statements.push(message.into_text());
    }
    statements.push(seen_statement::<Sqlite>(&FlowId::new("f"), &["1".to_owned()]).into_text());
    statements.push(usage_statement::<Sqlite>(&["ck_1".into()]).into_text());
    let query = EventQuery {
        flow_id: Some(FlowId::new("f")),
        ..EventQuery::after(tenant, 7)
    };
    for columns in Sqlite::ARRIVALS {
        statements.push(page::arrivals::<Sqlite>(columns, &query, 9).into_text());
    }
    for columns in Sqlite::TRANSITIONS {
        statements.push(page::transitions::<Sqlite>(columns, &query, 9).into_text());
    }
    let fixed = [
        append::FIND_UNFINISHED_OF_ORDERING_KEY,
        append::FIND_DUPLICATE,
        change::RELEASE_NEXT,
        change::CHANGE,
        change::INSERT_EVENT_FROM_ROW,
        claim::AWAITED,
        backlog::BACKLOG,
        claim::WAITING,
        claim::DEAD_OWNERS,
        claim::CANDIDATES,
        claim::STEPS,
        schema::MAX_SEQ_IN_TABLES,
        operator_decision::FIND,
        plan::DROP,
        plan::GET,
        plan::UNUSED,
        poll::CLAIM,
        poll::DUE,
        poll::FORGET,
        poll::UPDATE_POLL,
        poll::UPSERT_SEEN,
        quota::DROP_CONNECTORS,
        quota::LEDGER,
        quota::SAVE,
        retain::DROP_DEDUPE_KEYS,
        retain::NEXT_OF_FLOW,
        retain::NEXT_BATCH,
        schema::MAX_SEQ_EVER,
        step::SAVE,
    ];
    statements.extend(
        fixed
            .iter()
            .chain(&retain::DROP_LISTED)
            .chain(&retain::DROP_BATCH)
            .map(|statement| (*statement).to_owned()),
    );
    for statement in statements {
        let scans = scans(&mut conn, &statement).await;
        // Retention limits its batch itself.
        let limited = statement == retain::NEXT_BATCH;
        assert!(scans.is_empty() || limited, "{scans:?} in {statement}");
    }
    log.close().await;
}

#[tokio::test]
async fn how_many_a_list_has_is_read_from_its_index_alone() {
    let file = File::new();
    let log = file.open().await;
    let mut conn = file.connect().await;
    let all = Filter::flow(
        Tenant {
            account_id: "a".into(),
            environment_id: "e".into(),
        },
        FlowId::new("f"),
    );
    let since = Filter {
        since: Some(kanat_model::Timestamp::now()),
        ..all.clone()
    };
    let delivered = Filter {
        statuses: vec![Status::Delivered],
        ..all.clone()
    };
    let waiting = Filter {
        statuses: Status::WAITING.to_vec(),
        ..all.clone()
    };
    for filter in [all, since, delivered, waiting] {
        let count = flow::query::<Sqlite>(flow::COUNT, &filter).into_text();
        let plan = explain(&mut conn, &count).await;
        let of_messages: Vec<_> = plan
            .iter()
            .filter(|step| step.starts_with("SEARCH m "))
            .collect();
        assert!(
            matches!(of_messages.as_slice(), [step] if step.contains("COVERING INDEX")),
            "{plan:?}"
        );
    }
    log.close().await;
}

#[tokio::test]
async fn an_environment_is_listed_in_the_order_of_the_log_and_its_failures_by_their_index() {
    let file = File::new();
    let log = file.open().await;
    let mut conn = file.connect().await;
    let all = EnvironmentFilter::all(Tenant {
        account_id: "a".into(),
        environment_id: "e".into(),
    });
    let since = EnvironmentFilter {
        since: Some(kanat_model::Timestamp::now()),
        search: Some("x".to_owned()),
        flow_id: Some(FlowId::new("f")),
        ..all.clone()
    };
    let failing = EnvironmentFilter {
        statuses: vec![Status::DeadLetter, Status::Retrying],
        ..all.clone()
    };
    for (filter, found_by) in [
        (&all, "USING INTEGER PRIMARY KEY (rowid"),
        (&since, "USING INTEGER PRIMARY KEY (rowid"),
        (
            &failing,
            "USING INDEX messages_failing (environment_id=? AND rowid",
        ),
    ] {
        let floor = environment::floor::<Sqlite>(filter, 9, 9).into_text();
        let matches = environment::matches::<Sqlite>(filter, 1, 9, 9).into_text();
        for statement in [floor, matches] {
            let plan = explain(&mut conn, &statement).await;
            let found = plan.iter().any(|step| {
                step.starts_with("SEARCH m ") && step.replace("COVERING ", "").contains(found_by)
            });
            let sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
            assert!(found && !sorted, "{plan:?} in {statement}");
        }
    }
    let page = environment::select::<Sqlite>(PAGE, &[1, 2]).into_text();
    assert!(scans(&mut conn, &page).await.is_empty());
    log.close().await;
}
