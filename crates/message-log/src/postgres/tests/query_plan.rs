//! Every statement that grows with the log finds its rows by an index, and those that give rows in
//! an order read them in it.

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use kanat_model::page::Page;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Row};

use super::LogHarness;
use crate::contract::Harness;
use crate::dialect::Dialect;
use crate::event::page;
use crate::list::{environment, flow};
use crate::message::read;
use crate::poll::read::seen_statement;
use crate::postgres::day::{self, Day};
use crate::postgres::{
    append, attempted, backlog, change, claim, commit_marker, events, keys, lease,
    operator_decision, plan, poll, quota, retain, step,
};
use crate::quota::read::usage_statement;
use crate::row::PAGE;
use crate::{Cursor, EnvironmentFilter, EventQuery, Filter, Position, Tenant};

/// The plan that is kept for all values, as every connection of ours uses it.
async fn explain(conn: &mut PgConnection, statement: &str) -> Vec<String> {
    let parameters = (1..=30)
        .rev()
        .find(|number| statement.contains(&format!("${number}")))
        .unwrap_or(0);
    let values = vec!["NULL"; parameters].join(", ");
    let execute = if parameters == 0 {
        "looked_at".to_owned()
    } else {
        format!("looked_at({values})")
    };
    // Without values nothing is left out, and every day's plan is seen.
    let text = format!(
        "SET enable_partition_pruning = off; PREPARE looked_at AS {statement}; EXPLAIN (COSTS \
         OFF) EXECUTE {execute}; DEALLOCATE looked_at"
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(conn).await;
    let rows = rows.unwrap_or_else(|error| panic!("{error} in {statement}"));
    rows.iter().map(|row| row.get::<String, _>(0)).collect()
}

fn lists() -> Vec<String> {
    let tenant = Tenant {
        account_id: "a".into(),
        environment_id: "e".into(),
    };
    let all = Filter::flow(tenant, FlowId::new("f"));
    let now = Timestamp::now();
    let filters = [
        all.clone(),
        Filter {
            statuses: vec![Status::DeadLetter],
            ..all.clone()
        },
        Filter {
            since: Some(now),
            until: Some(now),
            ..all.clone()
        },
        Filter {
            search: Some("x".to_owned()),
            ..all
        },
    ];
    let after = Position::After {
        cursor: Cursor {
            received_at: now,
            seq: 1,
        },
        limit: 50,
    };
    let positions = [
        Position::Page(Page {
            limit: 50,
            offset: 100,
        }),
        after,
    ];
    let pages = filters
        .iter()
        .flat_map(|filter| positions.iter().map(move |position| (filter, *position)));
    let page = |columns, (filter, position)| {
        flow::select::<Postgres>(columns, filter, position, 50).into_text()
    };
    pages
        .flat_map(|asked| [Postgres::SIZES, PAGE].map(|columns| page(columns, asked)))
        .collect()
}

fn streams() -> Vec<String> {
    let tenant = Tenant {
        account_id: "a".into(),
        environment_id: "e".into(),
    };
    let all = EventQuery::after(tenant, 7);
    let one = EventQuery {
        flow_id: Some(FlowId::new("f")),
        status: Some(Status::Received),
        ..all.clone()
    };
    [&all, &one]
        .into_iter()
        .flat_map(|asked| {
            let arrivals = Postgres::ARRIVALS
                .map(|columns| page::arrivals::<Postgres>(columns, asked, 9).into_text());
            let transitions = Postgres::TRANSITIONS
                .map(|columns| page::transitions::<Postgres>(columns, asked, 9).into_text());
            arrivals.into_iter().chain(transitions)
        })
        .collect()
}

#[tokio::test]
async fn no_statement_reads_a_whole_table() {
    let place = LogHarness::new();
    let log = place.open().await;
    let mut conn = place.connect().await;
    make_days(&mut conn).await;
    let ids = Filter {
        ids: vec![MessageId::new("1")],
        ..Filter::flow(tenant(), FlowId::new("f"))
    };
    let waiting = Filter {
        statuses: Status::WAITING.to_vec(),
        ..Filter::flow(tenant(), FlowId::new("f"))
    };
    let page = |filter| {
        let position = Position::Page(Page {
            limit: 50,
            offset: 0,
        });
        flow::select::<Postgres>(PAGE, filter, position, 50).into_text()
    };
    let id = MessageId::new("1");
    let message =
        |columns, joined| read::by_id::<Postgres>(columns, joined, &tenant(), &id).into_text();
    let mut statements = vec![
        page(&ids),
        page(&waiting),
        message(PAGE, Postgres::BODIES),
        message(read::CONTENT, Postgres::BODIES),
        message(read::TRACE, read::TRANSITIONS),
        seen_statement::<Postgres>(&FlowId::new("f"), &["1".to_owned()]).into_text(),
        usage_statement::<Postgres>(&["ck_1".into()]).into_text(),
    ];
    let fixed = [
        append::FIND_UNFINISHED_OF_ORDERING_KEYS,
        append::FIND_DUPLICATES,
        append::INSERT,
        append::INSERT_DEDUPE_KEYS,
        attempted::INSERT,
        change::RELEASE_NEXT,
        change::CHANGE,
        claim::AWAITED,
        claim::BODIES,
        claim::CANDIDATES,
        claim::DEAD_OWNERS,
        claim::STEPS,
        backlog::BACKLOG,
        claim::WAITING,
        events::NEXT,
        keys::LOCK,
        lease::END,
        lease::EPOCH,
        lease::NEXT_EPOCH,
        lease::OPEN,
        lease::RENEW,
        lease::RENEW_INCARNATION,
        lease::STANDING,
        operator_decision::FIND,
        operator_decision::HOLD,
        plan::DROP,
        plan::GET,
        plan::UNUSED,
        poll::CLAIM,
        poll::DUE,
        poll::FORGET,
        poll::UPDATE_POLL,
        poll::UPSERT_SEEN,
        quota::DROP_CONNECTORS,
        quota::LEDGERS,
        quota::SAVE,
        retain::DROP_DEDUPE_KEYS,
        retain::DROP_LISTED,
        retain::DROP_MESSAGES,
        retain::NEXT_OF_FLOW,
        retain::NEXT_BATCH,
        step::HELD,
        step::SAVE,
        commit_marker::EVENT,
        commit_marker::MESSAGE,
        commit_marker::STEP,
    ];
    statements.extend(fixed.map(str::to_owned));
    statements.extend(lists());
    statements.extend(streams());
    for statement in statements {
        let plan = explain(&mut conn, &statement).await;
        // Once a boot, all polls are looked through for those of earlier ones.
        let is_of_boot = |line: &str| statement == lease::OPEN && line.contains("on polls");
        let mut scans = plan.iter().filter(|line| line.contains("Seq Scan"));
        assert!(
            scans.all(|line| is_of_boot(line)),
            "{statement}\n{}",
            plan.join("\n")
        );
    }
    log.close().await;
}

#[tokio::test]
async fn rows_to_write_or_find_are_found_one_by_one() {
    let place = LogHarness::new();
    let log = place.open().await;
    let mut conn = place.connect().await;
    make_days(&mut conn).await;
    let cases = [
        (
            append::FIND_UNFINISHED_OF_ORDERING_KEYS,
            "(flow_id = v.flow_id) AND (ordering_key = v.ordering_key)",
        ),
        (
            append::FIND_DUPLICATES,
            "(flow_id = v.flow_id) AND (key = v.key)",
        ),
        (
            change::RELEASE_NEXT,
            "(flow_id = k.flow_id) AND (ordering_key = k.ordering_key)",
        ),
        (change::RELEASE_NEXT, "(seq = next.seq)"),
        (change::CHANGE, "(seq = v.seq)"),
        (claim::BODIES, "(seq = ANY ($1))"),
        (claim::STEPS, "(message = ANY ($1))"),
        (keys::LOCK, "(seq = v_1.seq)"),
        (plan::UNUSED, "(flow_id = p.flow_id)"),
        (retain::DROP_LISTED, "(message = ANY ($"),
        (retain::DROP_MESSAGES, "(message = ANY ($"),
        (step::HELD, "(seq = v.seq)"),
    ];
    for (statement, wanted) in cases {
        let plan = explain(&mut conn, statement)
            .await
            .join("\n")
            .replace("::text", "")
            .replace("((", "(");
        assert!(plan.contains(wanted), "{wanted} in {statement}\n{plan}");
        assert!(!plan.contains("Materialize"), "{statement}\n{plan}");
    }
    log.close().await;
}

#[tokio::test]
async fn lists_claims_and_streams_read_in_their_order() {
    let place = LogHarness::new();
    let log = place.open().await;
    let mut conn = place.connect().await;
    make_days(&mut conn).await;
    let mut statements = lists();
    statements.extend(streams());
    statements.push(claim::CANDIDATES.to_owned());
    statements.push(retain::NEXT_OF_FLOW.to_owned());
    for statement in statements {
        let plan = explain(&mut conn, &statement).await;
        let sorts = plan
            .iter()
            .any(|line| line.trim_start_matches([' ', '-', '>']) == "Sort");
        assert!(!sorts, "{statement}\n{}", plan.join("\n"));
    }
    log.close().await;
}

#[tokio::test]
async fn how_many_a_list_has_is_read_from_its_index_alone() {
    let place = LogHarness::new();
    let log = place.open().await;
    let mut conn = place.connect().await;
    make_days(&mut conn).await;
    let all = Filter::flow(tenant(), FlowId::new("f"));
    let since = Filter {
        since: Some(Timestamp::now()),
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
        let count = flow::query::<Postgres>(flow::COUNT, &filter).into_text();
        let plan = explain(&mut conn, &count).await;
        let of_messages: Vec<_> = plan
            .iter()
            .filter(|line| line.ends_with(" m") || line.contains(" m_"))
            .collect();
        let alone = of_messages
            .iter()
            .all(|line| line.contains("Index Only Scan"));
        assert!(alone && !of_messages.is_empty(), "{}", plan.join("\n"));
    }
    log.close().await;
}

#[tokio::test]
async fn an_environment_is_listed_in_the_order_of_the_log_and_its_failures_by_their_index() {
    let place = LogHarness::new();
    let log = place.open().await;
    let mut conn = place.connect().await;
    make_days(&mut conn).await;
    let all = EnvironmentFilter::all(tenant());
    let since = EnvironmentFilter {
        since: Some(Timestamp::now()),
        flow_id: Some(FlowId::new("f")),
        ..all.clone()
    };
    let failing = EnvironmentFilter {
        statuses: vec![Status::DeadLetter, Status::Retrying],
        ..all.clone()
    };
    for (filter, found_by) in [
        (&all, "_pkey"),
        (&since, "_pkey"),
        (&failing, "_environment_id_seq_idx"),
    ] {
        let floor = environment::floor::<Postgres>(filter, 9, 9).into_text();
        let matches = environment::matches::<Postgres>(filter, 1, 9, 9).into_text();
        for statement in [floor, matches] {
            let plan = explain(&mut conn, &statement).await;
            let of_messages = || plan.iter().filter(|line| line.contains(" on messages_"));
            let found =
                of_messages().count() > 0 && of_messages().all(|line| line.contains(found_by));
            let sorts = plan
                .iter()
                .any(|line| line.trim_start_matches([' ', '-', '>']) == "Sort");
            assert!(found && !sorts, "{statement}\n{}", plan.join("\n"));
        }
    }
    log.close().await;
}

/// As many days as a log may well have.
async fn make_days(conn: &mut PgConnection) {
    let today = day::today(conn).await.unwrap();
    for number in today - 12..today {
        day::make_day(conn, &Day::new(number)).await.unwrap();
    }
}

fn tenant() -> Tenant {
    Tenant {
        account_id: "a".into(),
        environment_id: "e".into(),
    }
}
