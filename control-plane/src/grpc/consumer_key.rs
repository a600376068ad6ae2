//! The methods of consumer keys.

mod convert;

use kanat_model::Timestamp;
use kanat_proto::v1 as wire;
use kanat_proto::v1::consumer_key_service_server::ConsumerKeyService;
use tonic::{Request, Response, Status};

use super::{Api, caller, page, respond_changed, status};
use crate::app::consumer_key;

#[tonic::async_trait]
impl ConsumerKeyService for Api {
    async fn create_consumer_key(
        &self,
        request: Request<wire::CreateConsumerKeyRequest>,
    ) -> Result<Response<wire::ConsumerKey>, Status> {
        let caller = caller(&request)?;
        let (id, consumer, limits) = convert::new(request.into_inner());
        let made = consumer_key::create(&self.app, &caller, &id, &consumer, limits).await;
        respond_changed(made, convert::made)
    }

    async fn list_consumer_keys(
        &self,
        request: Request<wire::ListConsumerKeysRequest>,
    ) -> Result<Response<wire::ListConsumerKeysResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListConsumerKeysRequest {
            id,
            consumer,
            limit,
            offset,
        } = request.into_inner();
        let consumer = consumer.unwrap_or_default();
        let page = page::asked(limit, offset)?;
        let found = consumer_key::list(&self.app, &caller, &id.into(), &consumer, page).await;
        let now = Timestamp::now();
        let (data, pagination) = page::convert(found, |key| convert::seen(key, now))?;
        Ok(Response::new(wire::ListConsumerKeysResponse {
            data,
            pagination,
        }))
    }

    async fn update_consumer_key(
        &self,
        request: Request<wire::UpdateConsumerKeyRequest>,
    ) -> Result<Response<wire::ConsumerKey>, Status> {
        let caller = caller(&request)?;
        let (id, key_id, update) = convert::update(request.into_inner()).map_err(status::of)?;
        let updated = consumer_key::update(&self.app, &caller, &id, &key_id, update).await;
        respond_changed(updated, |key| convert::seen(key, Timestamp::now()))
    }

    async fn rotate_consumer_key(
        &self,
        request: Request<wire::RotateConsumerKeyRequest>,
    ) -> Result<Response<wire::ConsumerKey>, Status> {
        let caller = caller(&request)?;
        let wire::RotateConsumerKeyRequest {
            id,
            key_id,
            grace_period,
        } = request.into_inner();
        let grace = grace_period.as_deref();
        let made =
            consumer_key::rotate(&self.app, &caller, &id.into(), &key_id.into(), grace).await;
        respond_changed(made, convert::made)
    }

    async fn revoke_consumer_key(
        &self,
        request: Request<wire::RevokeConsumerKeyRequest>,
    ) -> Result<Response<wire::RevokeConsumerKeyResponse>, Status> {
        let caller = caller(&request)?;
        let wire::RevokeConsumerKeyRequest { id, key_id } = request.into_inner();
        let done = consumer_key::revoke(&self.app, &caller, &id.into(), &key_id.into()).await;
        respond_changed(done, |()| wire::RevokeConsumerKeyResponse {})
    }
}
