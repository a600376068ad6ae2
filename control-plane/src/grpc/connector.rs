//! The methods of connectors.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::connector_service_server::ConnectorService;
use kanat_store::connector_instance::Filter;
use tonic::{Request, Response, Status};

use super::{Api, caller, if_match, page, respond, respond_changed, status, try_respond_changed};
use crate::app::connector::{self, oauth};
use crate::app::flow;

#[tonic::async_trait]
impl ConnectorService for Api {
    async fn list_catalog_entries(
        &self,
        request: Request<wire::ListCatalogEntriesRequest>,
    ) -> Result<Response<wire::ListCatalogEntriesResponse>, Status> {
        let wire::ListCatalogEntriesRequest {
            category,
            search,
            limit,
            offset,
        } = request.into_inner();
        let page = page::asked(limit, offset)?;
        let found = connector::catalog(category.as_deref(), &search.unwrap_or_default());
        let (data, pagination) =
            page::convert(found.map(|found| page::cut(found, page)), convert::entry)?;
        Ok(Response::new(wire::ListCatalogEntriesResponse {
            data,
            pagination,
        }))
    }

    async fn get_catalog_entry(
        &self,
        request: Request<wire::GetCatalogEntryRequest>,
    ) -> Result<Response<wire::CatalogEntry>, Status> {
        let entry = connector::catalog_entry(&request.into_inner().catalog_id);
        respond(entry.map(convert::entry))
    }

    async fn list_catalog_actions(
        &self,
        request: Request<wire::ListCatalogActionsRequest>,
    ) -> Result<Response<wire::ListCatalogActionsResponse>, Status> {
        let wire::ListCatalogActionsRequest {
            catalog_id,
            limit,
            offset,
        } = request.into_inner();
        let page = page::asked(limit, offset)?;
        let found = connector::catalog_entry(&catalog_id)
            .map(|entry| page::cut(entry.actions.iter().collect(), page));
        let (data, pagination) = page::convert(found, convert::action)?;
        Ok(Response::new(wire::ListCatalogActionsResponse {
            data,
            pagination,
        }))
    }

    async fn get_catalog_action(
        &self,
        request: Request<wire::GetCatalogActionRequest>,
    ) -> Result<Response<wire::CatalogAction>, Status> {
        let wire::GetCatalogActionRequest { catalog_id, slug } = request.into_inner();
        let action = connector::catalog_action(&catalog_id, &slug);
        respond(action.map(convert::action))
    }

    async fn create_connector_instance(
        &self,
        request: Request<wire::CreateConnectorInstanceRequest>,
    ) -> Result<Response<wire::ConnectorInstance>, Status> {
        let caller = caller(&request)?;
        let new = convert::new(request.into_inner()).map_err(status::of)?;
        let named = new.config.clone();
        let made = connector::create(&self.app, &caller, new).await;
        let mut response = try_respond_changed(made, |made| convert::instance(&self.app, made))?;
        response.get_mut().warnings = convert::unsent(&named, response.get_ref());
        Ok(response)
    }

    async fn list_connector_instances(
        &self,
        request: Request<wire::ListConnectorInstancesRequest>,
    ) -> Result<Response<wire::ListConnectorInstancesResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListConnectorInstancesRequest {
            catalog_id,
            search,
            limit,
            offset,
        } = request.into_inner();
        let filter = Filter {
            catalog_id: catalog_id.unwrap_or_default(),
            search: search.unwrap_or_default(),
        };
        let found = connector::list(&self.app, &caller, &filter, page::asked(limit, offset)?).await;
        let (data, pagination) =
            page::try_convert(found, |instance| convert::instance(&self.app, instance))?;
        Ok(Response::new(wire::ListConnectorInstancesResponse {
            data,
            pagination,
        }))
    }

    async fn get_connector_instance(
        &self,
        request: Request<wire::GetConnectorInstanceRequest>,
    ) -> Result<Response<wire::ConnectorInstance>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = connector::get(&self.app, &caller, &id).await;
        respond(found.and_then(|found| convert::instance(&self.app, found)))
    }

    async fn update_connector_instance(
        &self,
        request: Request<wire::UpdateConnectorInstanceRequest>,
    ) -> Result<Response<wire::ConnectorInstance>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let (id, update) = convert::update(request.into_inner()).map_err(status::of)?;
        let given = update.config.clone();
        let is_named = update.name.is_some();
        let updated = connector::update(&self.app, &caller, &id, update, &if_match).await;
        let mut response =
            try_respond_changed(updated, |updated| convert::instance(&self.app, updated))?;
        let mut warnings = std::mem::take(&mut response.get_mut().warnings);
        if let Some(given) = given {
            warnings.extend(convert::unsent(&given, response.get_ref()));
            warnings.extend(
                flow::shut_out(&self.app, &caller, &id)
                    .await
                    .map_err(status::of)?,
            );
        }
        if is_named {
            warnings.extend(
                flow::misnamed(&self.app, &caller, &id)
                    .await
                    .map_err(status::of)?,
            );
        }
        response.get_mut().warnings = warnings;
        Ok(response)
    }

    async fn delete_connector_instance(
        &self,
        request: Request<wire::DeleteConnectorInstanceRequest>,
    ) -> Result<Response<wire::DeleteConnectorInstanceResponse>, Status> {
        let caller = caller(&request)?;
        let if_match = if_match(&request);
        let id = request.into_inner().id.into();
        let deleted = connector::delete(&self.app, &caller, &id, &if_match).await;
        respond_changed(deleted, |()| wire::DeleteConnectorInstanceResponse {})
    }

    async fn test_connector_instance(
        &self,
        request: Request<wire::TestConnectorInstanceRequest>,
    ) -> Result<Response<wire::TestConnectorInstanceResponse>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let tested = connector::test(&self.app, &caller, &id).await;
        respond(tested.map(convert::tested))
    }

    async fn get_connector_health(
        &self,
        request: Request<wire::GetConnectorHealthRequest>,
    ) -> Result<Response<wire::GetConnectorHealthResponse>, Status> {
        let caller = caller(&request)?;
        let wire::GetConnectorHealthRequest { id, limit, offset } = request.into_inner();
        let found =
            connector::health::get(&self.app, &caller, &id.into(), page::asked(limit, offset)?)
                .await;
        let (health, changes) = found.map_err(status::of)?;
        let changes = page::convert(Ok(changes), convert::health_change)?;
        Ok(Response::new(convert::health_and_changes(
            health.as_ref(),
            changes,
        )))
    }

    async fn list_endpoint_schemas(
        &self,
        request: Request<wire::ListEndpointSchemasRequest>,
    ) -> Result<Response<wire::ListEndpointSchemasResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListEndpointSchemasRequest { id, limit, offset } = request.into_inner();
        let found =
            connector::schemas::list(&self.app, &caller, &id.into(), page::asked(limit, offset)?)
                .await;
        let (data, pagination) = page::convert(found, convert::endpoint_schema)?;
        Ok(Response::new(wire::ListEndpointSchemasResponse {
            data,
            pagination,
        }))
    }

    async fn check_endpoint_schemas(
        &self,
        request: Request<wire::CheckEndpointSchemasRequest>,
    ) -> Result<Response<wire::CheckEndpointSchemasResponse>, Status> {
        let caller = caller(&request)?;
        let id = request.into_inner().id.into();
        let found = connector::schemas::check(&self.app, &caller, &id).await;
        respond(found.map(|(at, found)| convert::checked(at, found)))
    }

    async fn start_o_auth(
        &self,
        request: Request<wire::StartOAuthRequest>,
    ) -> Result<Response<wire::StartOAuthResponse>, Status> {
        let caller = caller(&request)?;
        let wire::StartOAuthRequest {
            catalog_id,
            instance_name,
            redirect_uri,
        } = request.into_inner();
        let started = oauth::start(
            &self.app,
            &caller,
            &catalog_id,
            &instance_name,
            redirect_uri,
        )
        .await;
        respond(started.map(convert::started))
    }

    async fn complete_o_auth(
        &self,
        request: Request<wire::CompleteOAuthRequest>,
    ) -> Result<Response<wire::CompleteOAuthResponse>, Status> {
        let caller = caller(&request)?;
        let callback = convert::callback(request.into_inner());
        let completed = oauth::complete(&self.app, Some(&caller), callback).await;
        respond_changed(completed, convert::completed)
    }

    async fn receive_o_auth_callback(
        &self,
        request: Request<wire::CompleteOAuthRequest>,
    ) -> Result<Response<wire::CompleteOAuthResponse>, Status> {
        let callback = convert::callback(request.into_inner());
        let completed = oauth::complete(&self.app, None, callback).await;
        respond_changed(completed, convert::completed)
    }
}
