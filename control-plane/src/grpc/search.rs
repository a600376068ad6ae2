//! The search over all resources of an environment.

use kanat_proto::v1 as wire;

use super::page;
use crate::app::search::{self, Hit};
use crate::carry::carry;

service! {
    search_service_server::SearchService;

    search(call, request: SearchRequest) -> SearchResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = search::find(&call, &request.q, request.r#type.as_deref(), page).await?;
        let total_is_least = found.total_is_least.then_some(true);
        let (data, pagination) = page::convert(found.page, hit);
        Ok(wire::SearchResponse {
            data,
            pagination: pagination.map(|pagination| wire::Pagination {
                total_is_least,
                ..pagination
            }),
        })
    }
}

fn hit(hit: Hit) -> wire::SearchHit {
    carry!(
        wire::SearchHit, hit { id, name, score, excerpt }
        text { environment_id }
        with {
            r#type: hit.kind.as_str().to_owned(),
        }
    )
}
