//! PostgreSQL's words in the statements that both databases have.

use kanat_model::search::{regex, regex_in_encoded_json};
use sqlx::{Postgres, QueryBuilder};

use super::columns::each;
use super::events;
use super::text::text;
use crate::Filter;
use crate::dialect::{Dialect, Statement, driver};

impl Dialect for Postgres {
    const SIZES: &'static str = "SELECT CAST(octet_length(coalesce(b.payload, b.raw_body)) + \
         coalesce((SELECT \
         octet_length(t.output) FROM transitions AS t WHERE t.message = m.seq AND t.output IS \
         NOT NULL ORDER BY t.seq DESC LIMIT 1), 0) AS BIGINT) AS bytes";
    const LOG: &'static str = " FROM messages AS m";
    const FAILING: &'static str = Self::LOG;
    const BY_ID: &'static str = Self::LOG;
    const BODIES: &'static str = " JOIN bodies AS b ON b.seq = m.seq";
    const FOUND: [&'static str; 2] = [" = ANY(ARRAY(", "))"];
    const ONE_OF_FLOW: [&'static str; 2] = [
        " FROM messages AS f WHERE f.flow_id = ",
        " ORDER BY f.received_at DESC, f.seq DESC LIMIT 1)",
    ];
    const FLOW: &'static str = " AND m.flow_id || '' = ";
    const ARRIVALS: [&'static str; 2] = [events::ARRIVAL_SIZES, events::ARRIVALS];
    const TRANSITIONS: [&'static str; 2] = [events::TRANSITION_SIZES, events::TRANSITIONS];

    driver!();

    /// Ids are found apart from the rest. Otherwise all of the flow's messages would be read in the
    /// order of the list to find them.
    fn from_flow(statement: &mut Statement<Self>, filter: &Filter) {
        if filter.ids.is_empty() {
            statement.push(Self::LOG);
            return;
        }
        statement.push(" FROM (SELECT * FROM messages WHERE id");
        let ids = each(&filter.ids, |id| id.as_str());
        Self::one_of(&mut statement.0, &ids);
        statement.push(" OFFSET 0) AS m");
    }

    /// Bodies may be any bytes, so they are searched in a form that every one has.
    fn search(statement: &mut Statement<Self>, wanted: &str) {
        let plain = regex(&text(wanted));
        statement
            .text(" AND (m.id ~ ", &plain)
            .text(" OR m.error_message ~ ", &plain)
            .text(" OR m.error_field ~ ", &plain)
            .text(
                " OR encode(coalesce(b.payload, b.raw_body), 'escape') ~ ",
                &regex_in_encoded_json(wanted),
            )
            .push(")");
    }

    fn bind_text(query: &mut QueryBuilder<Self>, value: &str) {
        query.push_bind(text(value).into_owned());
    }

    fn one_of(query: &mut QueryBuilder<Self>, texts: &[&str]) {
        let texts = each(texts, |value| text(value).into_owned());
        query.push(" = ANY(").push_bind(texts).push(")");
    }

    fn one_of_set(query: &mut QueryBuilder<Self>, texts: &[&str]) {
        Self::one_of(query, texts);
    }

    fn one_of_numbers(query: &mut QueryBuilder<Self>, numbers: &[i64]) {
        query.push(" = ANY(").push_bind(numbers.to_vec()).push(")");
    }
}
