//! The methods of nodes.

mod convert;

use super::page;
use crate::app::node;

service! {
    node_service_server::NodeService;

    list_nodes(call, request: ListNodesRequest) -> ListNodesResponse {
        let page = page::asked(request.limit, request.offset)?;
        let nodes = page.cut(node::list(&call).await?);
        Ok(page::answer(nodes, |node| convert::node(node, &call.caller.environment_id)))
    }
}
