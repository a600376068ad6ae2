//! SQLite's words in the statements that both databases have.

use kanat_model::search::{glob, globs_in_json};
use sqlx::{Encode, QueryBuilder, Sqlite, Type};

use super::events;
use crate::Filter;
use crate::dialect::{Dialect, Statement, driver};

impl Dialect for Sqlite {
    const SIZES: &'static str = "SELECT length(CAST(coalesce(b.payload, b.raw_body) AS BLOB)) + \
         coalesce((SELECT \
         length(CAST(t.output AS BLOB)) FROM transitions AS t WHERE t.message = m.seq AND \
         t.output IS NOT NULL ORDER BY t.seq DESC LIMIT 1), 0) AS bytes";
    const LOG: &'static str = " FROM messages AS m NOT INDEXED";
    const FAILING: &'static str = " FROM messages AS m INDEXED BY messages_failing";
    const BY_ID: &'static str = " FROM messages AS m INDEXED BY messages_id";
    const BODIES: &'static str = " CROSS JOIN bodies AS b ON b.seq = m.seq";
    const FOUND: [&'static str; 2] = [" IN (", ")"];
    const ONE_OF_FLOW: [&'static str; 2] = [
        " FROM messages AS f INDEXED BY messages_flow WHERE f.flow_id = ",
        " LIMIT 1)",
    ];
    const FLOW: &'static str = " AND +m.flow_id = ";
    const ARRIVALS: [&'static str; 2] = [events::ARRIVAL_SIZES, events::ARRIVALS];
    const TRANSITIONS: [&'static str; 2] = [events::TRANSITION_SIZES, events::TRANSITIONS];

    driver!();

    fn from_flow(statement: &mut Statement<Self>, filter: &Filter) {
        let index = match (filter.statuses.is_empty(), filter.ids.is_empty()) {
            (_, false) => "messages_id",
            (false, true) => "messages_flow_status",
            (true, true) => "messages_flow",
        };
        statement
            .push(" FROM messages AS m INDEXED BY ")
            .push(index);
    }

    fn ids(statement: &mut Statement<Self>, filter: &Filter) {
        if !filter.ids.is_empty() {
            let ids: Vec<&str> = filter.ids.iter().map(|id| id.as_str()).collect();
            statement.push(" AND m.id");
            Self::one_of(&mut statement.0, &ids);
        }
    }

    fn search(statement: &mut Statement<Self>, text: &str) {
        let pattern = glob(text);
        statement
            .text(" AND (m.id GLOB ", &pattern)
            .text(" OR m.error_message GLOB ", &pattern)
            .text(" OR m.error_field GLOB ", &pattern);
        for pattern in globs_in_json(text) {
            let body = " OR CAST(coalesce(b.payload, b.raw_body) AS TEXT) GLOB ";
            statement.text(body, &pattern);
        }
        statement.push(")");
    }

    fn bind_text(query: &mut QueryBuilder<Self>, text: &str) {
        query.push_bind(text.to_owned());
    }

    fn one_of(query: &mut QueryBuilder<Self>, texts: &[&str]) {
        list(query, texts.iter().map(|text| (*text).to_owned()));
    }

    fn one_of_set(query: &mut QueryBuilder<Self>, texts: &[&str]) {
        query.push(" IN (SELECT value FROM json_each(");
        query
            .push_bind(serde_json::json!(texts).to_string())
            .push("))");
    }

    fn one_of_numbers(query: &mut QueryBuilder<Self>, numbers: &[i64]) {
        list(query, numbers.iter().copied());
    }
}

fn list<T>(query: &mut QueryBuilder<Sqlite>, values: impl Iterator<Item = T>)
where
    T: for<'q> Encode<'q, Sqlite> + Type<Sqlite>,
{
    query.push(" IN (");
    let mut list = query.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    query.push(")");
}
