//! The methods of nodes.

mod convert;

use kanat_proto::v1 as wire;
use kanat_proto::v1::node_service_server::NodeService;
use tonic::{Request, Response, Status};

use super::{Api, caller, page};
use crate::app::node;

#[tonic::async_trait]
impl NodeService for Api {
    async fn list_nodes(
        &self,
        request: Request<wire::ListNodesRequest>,
    ) -> Result<Response<wire::ListNodesResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListNodesRequest { limit, offset } = request.into_inner();
        let page = page::asked(limit, offset)?;
        let nodes = node::list(&self.app, &caller).await;
        let (data, pagination) =
            page::convert(nodes.map(|nodes| page::cut(nodes, page)), |node| {
                convert::node(node, &caller.environment_id)
            })?;
        Ok(Response::new(wire::ListNodesResponse { data, pagination }))
    }
}
