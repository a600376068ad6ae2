//! Filters of message lists, checked.

use kanat_message_log::{Cursor, EnvironmentFilter, Filter, Tenant};
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use kanat_model::{Error, Result, Timestamp};

/// Text that stands for all flows in the place of a flow's id.
pub const ALL_FLOWS: &str = "-";

/// Which messages a list is of, checked.
#[derive(Debug, Clone)]
pub enum ListScope {
    /// One flow's, of one status at most.
    Flow(Filter),
    /// Messages of all flows, or of several statuses.
    Environment(EnvironmentFilter),
}

/// Which messages a list is of, in the words of the caller.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// `-` for all flows.
    pub flow_id: String,
    pub statuses: Vec<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub search: Option<String>,
}

impl ListQuery {
    /// # Errors
    ///
    /// Name the field at fault.
    pub fn check(self, tenant: Tenant) -> Result<ListScope> {
        let Self {
            flow_id,
            mut statuses,
            since,
            until,
            search,
        } = self;
        if flow_id != ALL_FLOWS && statuses.len() <= 1 {
            let query = Query {
                flow_id,
                status: statuses.pop(),
                since,
                until,
                search,
                ids: Vec::new(),
            };
            return query.check(tenant).map(ListScope::Flow);
        }
        let statuses = statuses.iter().map(|text| status(Some(text)));
        Ok(ListScope::Environment(EnvironmentFilter {
            tenant,
            flow_id: (flow_id != ALL_FLOWS).then(|| FlowId::new(flow_id)),
            statuses: statuses
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .collect(),
            paused: Vec::new(),
            since: instant("since", since.as_deref())?,
            until: instant("until", until.as_deref())?,
            search: self::search(search)?,
        }))
    }
}

/// Which messages, in the words of the caller.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub flow_id: String,
    pub status: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub search: Option<String>,
    pub ids: Vec<String>,
}

impl Query {
    /// Errors name the field at fault.
    pub fn check(self, tenant: Tenant) -> Result<Filter> {
        if self.flow_id.is_empty() {
            return Err(Error::field("flowId", "is required"));
        }
        if self.ids.len() > Filter::MAX_IDS {
            return Err(Error::field(
                "ids",
                format!("has more than {} ids", Filter::MAX_IDS),
            ));
        }
        if self.flow_id == ALL_FLOWS {
            return Err(Error::field("flowId", "must name one flow"));
        }
        Ok(Filter {
            tenant,
            flow_id: FlowId::new(self.flow_id),
            statuses: status(self.status.as_deref())?.into_iter().collect(),
            since: instant("since", self.since.as_deref())?,
            until: instant("until", self.until.as_deref())?,
            search: search(self.search)?,
            ids: self.ids.into_iter().map(MessageId::new).collect(),
            max_version: None,
        })
    }
}

/// Reads a status.
pub fn status(text: Option<&str>) -> Result<Option<Status>> {
    let Some(text) = text else { return Ok(None) };
    Status::parse(text).map(Some).ok_or_else(|| {
        let all: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
        Error::field(
            "status",
            format!("{text:?} is no status: one of {}", all.join(", ")),
        )
    })
}

/// Reads where a page ended.
pub fn cursor(text: &str) -> Result<Cursor> {
    Cursor::parse(text).ok_or_else(|| Error::field("cursor", "is not the nextCursor of a page"))
}

fn search(text: Option<String>) -> Result<Option<String>> {
    text.as_deref().map_or(Ok(()), kanat_model::search::check)?;
    Ok(text)
}

fn instant(field: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let Some(text) = text else { return Ok(None) };
    // Without an offset it is UTC, and without a time the day's begin.
    let at = ["", "Z", "T00:00Z"]
        .iter()
        .find_map(|rest| Timestamp::parse(&format!("{text}{rest}")));
    at.map(Some)
        .ok_or_else(|| Error::field(field, format!("{text:?} is no ISO 8601 instant")))
}

#[cfg(test)]
mod tests {
    use kanat_model::id::{AccountId, EnvironmentId};

    use super::*;

    fn check(query: Query) -> Result<Filter> {
        query.check(Tenant {
            account_id: AccountId::from("acc_1"),
            environment_id: EnvironmentId::from("env_1"),
        })
    }

    #[test]
    fn reads_every_filter() {
        let filter = check(Query {
            flow_id: "flw_1".to_owned(),
            status: Some("dead_letter".to_owned()),
            since: Some("2026-01-31T09:15:00+01:00".to_owned()),
            search: Some("order".to_owned()),
            ids: vec!["msg_1".to_owned()],
            ..Query::default()
        });
        let filter = filter.unwrap();
        assert_eq!(filter.statuses, [Status::DeadLetter]);
        assert_eq!(filter.since, Timestamp::parse("2026-01-31T08:15:00Z"));
        assert_eq!(filter.until, None);
        assert_eq!(filter.search.as_deref(), Some("order"));
        assert_eq!(filter.ids, [MessageId::from("msg_1")]);
    }

    #[test]
    fn a_list_is_of_one_flow_or_of_the_environment() {
        let tenant = Tenant {
            account_id: AccountId::from("acc_1"),
            environment_id: EnvironmentId::from("env_1"),
        };
        let listed = |flow_id: &str, statuses: &[&str]| {
            let statuses = statuses.iter().map(|status| (*status).to_owned()).collect();
            let query = ListQuery {
                flow_id: flow_id.to_owned(),
                statuses,
                ..ListQuery::default()
            };
            query.check(tenant.clone())
        };
        assert!(matches!(
            listed("flw_1", &["held"]),
            Ok(ListScope::Flow(filter)) if filter.statuses == [Status::Held]
        ));
        let failing = |flow_id| match listed(flow_id, &["dead_letter", "retrying"]) {
            Ok(ListScope::Environment(filter)) => (filter.flow_id, filter.statuses),
            other => panic!("{other:?}"),
        };
        let both = vec![Status::DeadLetter, Status::Retrying];
        assert_eq!(failing("-"), (None, both.clone()));
        assert_eq!(failing("flw_1"), (Some(FlowId::from("flw_1")), both));
        assert_eq!(listed("", &[]).unwrap_err().details[0].field, "flowId");
        assert_eq!(
            listed("-", &["dead"]).unwrap_err().details[0].field,
            "status"
        );
        assert_eq!(
            check(Query {
                flow_id: "-".to_owned(),
                ..Query::default()
            })
            .unwrap_err()
            .details[0]
                .field,
            "flowId"
        );
    }

    #[test]
    fn an_instant_without_an_offset_is_utc() {
        for text in [
            "2026-01-31",
            "2026-01-31T00:00:00",
            "2026-01-31T00:00",
            "2026-01-31T01:00:00.000+01:00",
        ] {
            let filter = check(Query {
                flow_id: "flw_1".to_owned(),
                since: Some(text.to_owned()),
                ..Query::default()
            });
            assert_eq!(
                filter.unwrap().since,
                Timestamp::parse("2026-01-31T00:00:00Z"),
                "{text}"
            );
        }
    }

    #[test]
    fn names_the_field_at_fault() {
        let flow = || Query {
            flow_id: "flw_1".to_owned(),
            ..Query::default()
        };
        let cases = [
            ("flowId", Query::default()),
            (
                "status",
                Query {
                    status: Some("dead".to_owned()),
                    ..flow()
                },
            ),
            (
                "since",
                Query {
                    since: Some("yesterday".to_owned()),
                    ..flow()
                },
            ),
            (
                "until",
                Query {
                    until: Some("2026-01-32".to_owned()),
                    ..flow()
                },
            ),
            (
                "search",
                Query {
                    search: Some("x".repeat(501)),
                    ..flow()
                },
            ),
            (
                "since",
                Query {
                    since: Some(String::new()),
                    ..flow()
                },
            ),
            (
                "ids",
                Query {
                    ids: vec![String::new(); 1_001],
                    ..flow()
                },
            ),
        ];
        for (field, query) in cases {
            assert_eq!(check(query).unwrap_err().details[0].field, field);
        }
    }
}
