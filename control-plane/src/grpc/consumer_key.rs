//! The methods of consumer keys.

mod convert;

use kanat_model::Timestamp;
use kanat_proto::v1 as wire;

use super::page;
use crate::app::consumer_key;

service! {
    consumer_key_service_server::ConsumerKeyService;

    create_consumer_key(call, request: CreateConsumerKeyRequest) -> ConsumerKey {
        let (id, consumer, limits) = convert::new(request);
        let made = consumer_key::create(&call, &id, &consumer, limits).await?;
        Ok(made.map(convert::made))
    }

    list_consumer_keys(call, request: ListConsumerKeysRequest) -> ListConsumerKeysResponse {
        let consumer = request.consumer.unwrap_or_default();
        let page = page::asked(request.limit, request.offset)?;
        let found = consumer_key::list(&call, &request.id.into(), &consumer, page).await?;
        let now = Timestamp::now();
        Ok(page::answer(found, |key| convert::seen(key, now)))
    }

    update_consumer_key(call, request: UpdateConsumerKeyRequest) -> ConsumerKey {
        let (id, key_id, update) = convert::update(request)?;
        let updated = consumer_key::update(&call, &id, &key_id, update).await?;
        Ok(updated.map(|key| convert::seen(key, Timestamp::now())))
    }

    rotate_consumer_key(call, request: RotateConsumerKeyRequest) -> ConsumerKey {
        let wire::RotateConsumerKeyRequest { id, key_id, grace_period } = request;
        let grace = grace_period.as_deref();
        let made = consumer_key::rotate(&call, &id.into(), &key_id.into(), grace).await?;
        Ok(made.map(convert::made))
    }

    revoke_consumer_key(call, request: RevokeConsumerKeyRequest) -> RevokeConsumerKeyResponse {
        let revoked =
            consumer_key::revoke(&call, &request.id.into(), &request.key_id.into()).await?;
        Ok(revoked.map(|()| wire::RevokeConsumerKeyResponse {}))
    }
}
