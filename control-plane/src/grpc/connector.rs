//! The methods of connectors.

mod convert;

use kanat_model::id::InstanceId;
use kanat_proto::v1 as wire;
use kanat_store::connector_instance::Filter;
use tonic::{Request, Response, Status};

use super::{page, respond};
use crate::app::connector::{self, oauth};
use crate::app::flow;

service! {
    connector_service_server::ConnectorService
    impl {
        async fn receive_o_auth_callback(
            &self,
            request: Request<wire::CompleteOAuthRequest>,
        ) -> Result<Response<wire::CompleteOAuthResponse>, Status> {
            let callback = convert::callback(request.into_inner());
            let completed = oauth::complete(&self.app, None, callback).await;
            respond(completed.map(|completed| completed.map(convert::completed)))
        }
    };

    list_catalog_entries(_call, request: ListCatalogEntriesRequest) -> ListCatalogEntriesResponse {
        let page = page::asked(request.limit, request.offset)?;
        let search = request.search.unwrap_or_default();
        let found = connector::catalog(request.category.as_deref(), &search)?;
        Ok(page::answer(page.cut(found), convert::entry))
    }

    get_catalog_entry(_call, request: GetCatalogEntryRequest) -> CatalogEntry {
        connector::catalog_entry(&request.catalog_id).map(convert::entry)
    }

    list_catalog_actions(_call, request: ListCatalogActionsRequest) -> ListCatalogActionsResponse {
        let page = page::asked(request.limit, request.offset)?;
        let entry = connector::catalog_entry(&request.catalog_id)?;
        Ok(page::answer(page.cut(entry.actions.iter().collect()), convert::action))
    }

    get_catalog_action(_call, request: GetCatalogActionRequest) -> CatalogAction {
        connector::catalog_action(&request.catalog_id, &request.slug).map(convert::action)
    }

    create_connector_instance(
        call,
        request: CreateConnectorInstanceRequest
    ) -> ConnectorInstance {
        let new = convert::new(request)?;
        let given = new.config.clone();
        let made = connector::create(&call, new).await?;
        made.try_map(|made| {
            let mut shown = convert::instance(&call.app, made)?;
            shown.warnings = convert::unsent(&given, &shown);
            Ok(shown)
        })
    }

    list_connector_instances(
        call,
        request: ListConnectorInstancesRequest
    ) -> ListConnectorInstancesResponse {
        let filter = Filter {
            catalog_id: request.catalog_id.unwrap_or_default(),
            search: request.search.unwrap_or_default(),
        };
        let page = page::asked(request.limit, request.offset)?;
        let found = connector::list(&call, &filter, page).await?;
        page::try_answer(found, |instance| convert::instance(&call.app, instance))
    }

    get_connector_instance(call, request: GetConnectorInstanceRequest) -> ConnectorInstance {
        let found = connector::get(&call, &request.id.into()).await?;
        convert::instance(&call.app, found)
    }

    update_connector_instance(
        call,
        request: UpdateConnectorInstanceRequest
    ) -> ConnectorInstance {
        let (id, update) = convert::update(request)?;
        let given = update.config.clone();
        let is_named = update.name.is_some();
        let updated = connector::update(&call, &id, update).await?;
        let mut updated = updated.try_map(|updated| convert::instance(&call.app, updated))?;
        let shown = &mut updated.value;
        if let Some(given) = given {
            let unsent = convert::unsent(&given, shown);
            shown.warnings.extend(unsent);
            shown.warnings.extend(flow::shut_out(&call, &id).await?);
        }
        if is_named {
            shown.warnings.extend(flow::misnamed(&call, &id).await?);
        }
        Ok(updated)
    }

    delete_connector_instance(
        call,
        request: DeleteConnectorInstanceRequest
    ) -> DeleteConnectorInstanceResponse {
        let deleted = connector::delete(&call, &request.id.into()).await?;
        Ok(deleted.map(|()| wire::DeleteConnectorInstanceResponse {}))
    }

    test_connector_instance(
        call,
        request: TestConnectorInstanceRequest
    ) -> TestConnectorInstanceResponse {
        connector::test(&call, &request.id.into()).await.map(convert::tested)
    }

    get_connector_health(call, request: GetConnectorHealthRequest) -> GetConnectorHealthResponse {
        let page = page::asked(request.limit, request.offset)?;
        let id = InstanceId::from(request.id);
        let (health, changes) = connector::health::get(&call, &id, page).await?;
        let changes = page::convert(changes, convert::health_change);
        Ok(convert::health_and_changes(health.as_ref(), changes))
    }

    list_endpoint_schemas(
        call,
        request: ListEndpointSchemasRequest
    ) -> ListEndpointSchemasResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = connector::schemas::list(&call, &request.id.into(), page).await?;
        Ok(page::answer(found, convert::endpoint_schema))
    }

    check_endpoint_schemas(
        call,
        request: CheckEndpointSchemasRequest
    ) -> CheckEndpointSchemasResponse {
        let (at, found) = connector::schemas::check(&call, &request.id.into()).await?;
        Ok(convert::checked(at, found))
    }

    start_o_auth(call, request: StartOAuthRequest) -> StartOAuthResponse {
        let wire::StartOAuthRequest { catalog_id, instance_name, redirect_uri } = request;
        let started = oauth::start(&call, &catalog_id, &instance_name, redirect_uri).await;
        started.map(convert::started)
    }

    complete_o_auth(call, request: CompleteOAuthRequest) -> CompleteOAuthResponse {
        let callback = convert::callback(request);
        let completed = oauth::complete(&call.app, Some(&call), callback).await?;
        Ok(completed.map(convert::completed))
    }
}
