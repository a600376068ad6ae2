//! The methods of adapters.

mod convert;

use kanat_model::id::AdapterId;
use kanat_proto::v1 as wire;
use kanat_store::adapter::Filter;

use super::page;
use crate::app::adapter::{self, template};

service! {
    adapter_service_server::AdapterService;

    create_adapter(call, request: CreateAdapterRequest) -> Adapter {
        let made = adapter::create(&call, convert::new(request)).await?;
        Ok(made.map(convert::adapter))
    }

    list_adapters(call, request: ListAdaptersRequest) -> ListAdaptersResponse {
        let filter = Filter {
            search: request.search.unwrap_or_default(),
            kind: request.r#type.unwrap_or_default(),
        };
        let page = page::asked(request.limit, request.offset)?;
        let found = adapter::list(&call, &filter, page).await?;
        Ok(page::answer(found, convert::adapter))
    }

    list_adapter_templates(
        _call,
        request: ListAdapterTemplatesRequest
    ) -> ListAdapterTemplatesResponse {
        let page = page::asked(request.limit, request.offset)?;
        Ok(page::answer(page.cut(template::ALL.to_vec()), convert::template))
    }

    get_adapter(call, request: GetAdapterRequest) -> Adapter {
        call.get(&AdapterId::from(request.id)).await.map(convert::adapter)
    }

    update_adapter(call, request: UpdateAdapterRequest) -> Adapter {
        let (id, update) = convert::update(request)?;
        Ok(adapter::update(&call, &id, update).await?.map(convert::adapter))
    }

    delete_adapter(call, request: DeleteAdapterRequest) -> DeleteAdapterResponse {
        let deleted = adapter::delete(&call, &request.id.into()).await?;
        Ok(deleted.map(|()| wire::DeleteAdapterResponse {}))
    }

    test_adapter(call, request: TestAdapterRequest) -> TestAdapterResponse {
        let (id, input) = convert::test(request)?;
        adapter::test(&call, &id, &input).await.map(convert::tested)
    }
}
