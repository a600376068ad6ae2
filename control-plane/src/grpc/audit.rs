//! The methods of the audit log.

mod convert;

use super::page;
use crate::app::audit;

service! {
    audit_service_server::AuditService;

    list_audit_entries(call, request: ListAuditEntriesRequest) -> ListAuditEntriesResponse {
        let cursor = request.cursor.as_deref();
        let page = page::asked_beside(cursor, request.limit, request.offset)?;
        let found = audit::list(&call, convert::query(request), page).await?;
        Ok(convert::page(found, page))
    }

    verify_audit_log(call, request: VerifyAuditLogRequest) -> VerifyAuditLogResponse {
        audit::verify(&call, request.head.as_deref()).await.map(convert::verification)
    }
}
