//! The audit log between the wire and the store.

use kanat_model::page::Page;
use kanat_model::saturated;
use kanat_proto::v1 as wire;
use kanat_store::audit::Entry;

use crate::app::audit::{EntryPage, Query, Verification};
use crate::carry::carry;
use crate::grpc::page::pagination;

pub fn query(request: wire::ListAuditEntriesRequest) -> Query {
    carry!(
        Query, request {
            action, entity_type, entity_id, user_id, status, via, request_id, since, until, cursor,
        }
        with {
            environment: request.environment_id,
        }
    )
}

pub fn page(found: EntryPage, page: Page) -> wire::ListAuditEntriesResponse {
    let pagination = wire::Pagination {
        next_cursor: found.next.map(|id| id.into_string()),
        ..pagination(page, found.total)
    };
    wire::ListAuditEntriesResponse {
        data: found.entries.into_iter().map(entry).collect(),
        pagination: Some(pagination),
    }
}

fn entry(entry: Entry) -> wire::AuditEntry {
    let json = |text: Option<String>| text.map(|text| wire::Json { text });
    let actor = entry.actor;
    carry!(
        wire::AuditEntry, entry {
            action, entity_type, entity_id, entity_name, request_id, address,
        }
        text { id, at }
        optional { environment_id }
        word { via, status }
        with {
            user_id: actor.id.clone(),
            before: json(entry.before),
            after: json(entry.after),
            calls: saturated(entry.calls),
            actor: Some(carry!(
                wire::AuditActor, actor { id, name, email, role }
                with {
                    r#type: actor.kind.as_str().to_owned(),
                }
            )),
        }
    )
}

pub fn verification(found: Verification) -> wire::VerifyAuditLogResponse {
    let (broken_at, reason) = match found.fault {
        Some(fault) => (Some(fault.at), Some(fault.reason)),
        None => (None, None),
    };
    carry!(
        wire::VerifyAuditLogResponse, found { head }
        optional { from, to }
        with {
            entries: saturated(found.entries),
            unchained: saturated(found.unchained),
            intact: broken_at.is_none(),
            broken_at,
            reason,
        }
    )
}
