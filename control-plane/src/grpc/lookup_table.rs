//! The methods of lookup tables.

mod convert;

use kanat_model::id::LookupTableId;
use kanat_proto::v1 as wire;
use kanat_proto::v1::lookup_table_service_server::LookupTableService;
use kanat_store::lookup_table::entry::Entry;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, respond_changed, status};
use crate::app::lookup_table;

#[tonic::async_trait]
impl LookupTableService for Api {
    async fn create_lookup_table(
        &self,
        request: Request<wire::CreateLookupTableRequest>,
    ) -> Result<Response<wire::LookupTable>, Status> {
        let caller = caller(&request)?;
        let new = request.into_inner();
        let made = lookup_table::create(
            &self.app,
            &caller,
            &new.name,
            new.description.unwrap_or_default(),
        )
        .await;
        respond_changed(made, |table| convert::table(table, Vec::new()))
    }

    async fn list_lookup_tables(
        &self,
        request: Request<wire::ListLookupTablesRequest>,
    ) -> Result<Response<wire::ListLookupTablesResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListLookupTablesRequest {
            search,
            limit,
            offset,
        } = request.into_inner();
        let found = lookup_table::list(
            &self.app,
            &caller,
            &search.unwrap_or_default(),
            page::asked(limit, offset)?,
        )
        .await;
        let (data, pagination) = page::convert(found, |table| convert::table(table, Vec::new()))?;
        Ok(Response::new(wire::ListLookupTablesResponse {
            data,
            pagination,
        }))
    }

    async fn get_lookup_table(
        &self,
        request: Request<wire::GetLookupTableRequest>,
    ) -> Result<Response<wire::LookupTable>, Status> {
        let caller = caller(&request)?;
        let wire::GetLookupTableRequest { id, search, limit } = request.into_inner();
        let limit = page::asked(limit, None)?.limit;
        let id = LookupTableId::from(id);
        let search = search.unwrap_or_default();
        let found = lookup_table::get(&self.app, &caller, &id, &search, limit).await;
        respond(found.map(|(table, entries)| convert::table(table, entries)))
    }

    async fn delete_lookup_table(
        &self,
        request: Request<wire::DeleteLookupTableRequest>,
    ) -> Result<Response<wire::DeleteLookupTableResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = LookupTableId::from(request.into_inner().id);
        let deleted = lookup_table::delete(&self.app, &caller, &id, &if_match).await;
        respond_changed(deleted, |()| wire::DeleteLookupTableResponse {})
    }

    async fn upsert_lookup_entries(
        &self,
        request: Request<wire::UpsertLookupEntriesRequest>,
    ) -> Result<Response<wire::LookupTableChange>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::UpsertLookupEntriesRequest { id, entries } = request.into_inner();
        let entries = convert::entries_from(entries).map_err(status::of)?;
        let done = lookup_table::upsert(&self.app, &caller, &id.into(), entries, &if_match).await;
        respond_changed(done, convert::change)
    }

    async fn set_lookup_entry(
        &self,
        request: Request<wire::SetLookupEntryRequest>,
    ) -> Result<Response<wire::LookupTableChange>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::SetLookupEntryRequest { id, key, value } = request.into_inner();
        let value = convert::required("value", value).map_err(status::of)?;
        let done = lookup_table::set(
            &self.app,
            &caller,
            &id.into(),
            Entry { key, value },
            &if_match,
        )
        .await;
        respond_changed(done, convert::change)
    }

    async fn delete_lookup_entry(
        &self,
        request: Request<wire::DeleteLookupEntryRequest>,
    ) -> Result<Response<wire::DeleteLookupEntryResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::DeleteLookupEntryRequest { id, key } = request.into_inner();
        let done =
            lookup_table::delete_entry(&self.app, &caller, &id.into(), &key, &if_match).await;
        respond_changed(done, |_| wire::DeleteLookupEntryResponse {})
    }

    async fn import_lookup_table(
        &self,
        request: Request<wire::ImportLookupTableRequest>,
    ) -> Result<Response<wire::LookupTableChange>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let wire::ImportLookupTableRequest { id, csv } = request.into_inner();
        let done = lookup_table::import(&self.app, &caller, &id.into(), &csv, &if_match).await;
        respond_changed(done, convert::change)
    }

    async fn export_lookup_table(
        &self,
        request: Request<wire::ExportLookupTableRequest>,
    ) -> Result<Response<wire::ExportLookupTableResponse>, Status> {
        let caller = caller(&request)?;
        let id = LookupTableId::from(request.into_inner().id);
        let csv = lookup_table::export(&self.app, &caller, &id).await;
        respond(csv.map(|csv| wire::ExportLookupTableResponse { csv }))
    }
}
