//! The methods of lookup tables.

mod convert;

use kanat_proto::v1 as wire;
use kanat_store::lookup_table::entry::Entry;

use super::page;
use crate::app::lookup_table;

service! {
    lookup_table_service_server::LookupTableService;

    create_lookup_table(call, request: CreateLookupTableRequest) -> LookupTable {
        let description = request.description.unwrap_or_default();
        let made = lookup_table::create(&call, &request.name, description).await?;
        Ok(made.map(|table| convert::table(table, Vec::new())))
    }

    list_lookup_tables(call, request: ListLookupTablesRequest) -> ListLookupTablesResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = lookup_table::list(&call, &request.search.unwrap_or_default(), page).await?;
        Ok(page::answer(found, |table| convert::table(table, Vec::new())))
    }

    get_lookup_table(call, request: GetLookupTableRequest) -> LookupTable {
        let limit = page::asked(request.limit, None)?.limit;
        let search = request.search.unwrap_or_default();
        let found = lookup_table::get(&call, &request.id.into(), &search, limit).await;
        found.map(|(table, entries)| convert::table(table, entries))
    }

    delete_lookup_table(call, request: DeleteLookupTableRequest) -> DeleteLookupTableResponse {
        let deleted = lookup_table::delete(&call, &request.id.into()).await?;
        Ok(deleted.map(|()| wire::DeleteLookupTableResponse {}))
    }

    upsert_lookup_entries(call, request: UpsertLookupEntriesRequest) -> LookupTableChange {
        let entries = convert::entries_from(request.entries)?;
        let done = lookup_table::upsert(&call, &request.id.into(), entries).await?;
        Ok(done.map(convert::change))
    }

    set_lookup_entry(call, request: SetLookupEntryRequest) -> LookupTableChange {
        let value = convert::required("value", request.value)?;
        let entry = Entry { key: request.key, value };
        let done = lookup_table::set(&call, &request.id.into(), entry).await?;
        Ok(done.map(convert::change))
    }

    delete_lookup_entry(call, request: DeleteLookupEntryRequest) -> DeleteLookupEntryResponse {
        let done = lookup_table::delete_entry(&call, &request.id.into(), &request.key).await?;
        Ok(done.map(|_| wire::DeleteLookupEntryResponse {}))
    }

    import_lookup_table(call, request: ImportLookupTableRequest) -> LookupTableChange {
        let done = lookup_table::import(&call, &request.id.into(), &request.csv).await?;
        Ok(done.map(convert::change))
    }

    export_lookup_table(call, request: ExportLookupTableRequest) -> ExportLookupTableResponse {
        let csv = lookup_table::export(&call, &request.id.into()).await?;
        Ok(wire::ExportLookupTableResponse { csv })
    }
}
