//! Form in which both planes save the plan of a flow's version in the message log: enough to run
//! the messages that were accepted under it, and nothing that only the ingress needs. A plan with
//! secrets of its own is sealed there.

use bytes::Bytes;
use kanat_auth::Sealer;
use kanat_proto::plan::v1::trigger::Kind as Trigger;
use kanat_proto::plan::v1::{FlowPlan, Webhook};
use prost::Message;

/// Encodes a plan for the message log without a seal: without its webhook tokens and the secrets of
/// its senders, and not paused.
pub fn encode_unsealed(plan: &FlowPlan) -> Bytes {
    let mut plan = plan.clone();
    plan.paused = false;
    if let Some(Trigger::Webhook(webhook)) = plan
        .trigger
        .as_mut()
        .and_then(|trigger| trigger.kind.as_mut())
    {
        *webhook = Webhook::default();
    }
    plan.encode_to_vec().into()
}

/// First byte of a sealed body: no encoding of a plan begins with it.
const SEALED: u8 = 0;

/// Reason why a body is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its bytes are no plan.
    #[error(transparent)]
    Encoding(#[from] prost::DecodeError),
    /// The key of its environment does not open it.
    #[error("it is sealed under a key that is not at hand: {0}")]
    Sealed(#[from] kanat_auth::Error),
    /// There is no key to open it with.
    #[error("it is sealed, and the environment's key has not come")]
    NoKey,
}

/// Encodes a plan for the message log. It is sealed under the key of its environment if it has
/// secrets.
pub fn encode(plan: &FlowPlan, sealer: Option<&Sealer>) -> Bytes {
    let body = encode_unsealed(plan);
    match sealer.filter(|_| !plan.literal_secrets.is_empty()) {
        Some(sealer) => [
            &[SEALED][..],
            sealer
                .seal(&body, &context(&plan.flow_id, plan.version))
                .as_slice(),
        ]
        .concat()
        .into(),
        None => body,
    }
}

/// Decodes a plan from the message log.
///
/// # Errors
/// It is no plan, or is sealed under another key than this.
pub fn decode(
    flow_id: &str,
    version: u32,
    kept: Bytes,
    sealer: Option<&Sealer>,
) -> Result<FlowPlan, Error> {
    match kept.split_first() {
        Some((&SEALED, sealed)) => {
            let body = sealer
                .ok_or(Error::NoKey)?
                .open(sealed, &context(flow_id, version))?;
            Ok(FlowPlan::decode(body.as_slice())?)
        }
        Some(_) | None => Ok(FlowPlan::decode(kept)?),
    }
}

fn context(flow_id: &str, version: u32) -> String {
    format!("plan/{flow_id}/{version}")
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::{Trigger as Wrapper, Verify, WebhookToken};

    use super::*;

    #[test]
    fn neither_tokens_nor_secrets_are_kept() {
        let token = WebhookToken {
            sha256: vec![7; 32],
            expires_at: 0,
        };
        let verify = Verify {
            secrets: vec!["hunter2".to_owned()],
            ..Verify::default()
        };
        let webhook = |webhook| {
            Some(Wrapper {
                kind: Some(Trigger::Webhook(webhook)),
            })
        };
        let plan = FlowPlan {
            flow_id: "flw_1".to_owned(),
            version: 3,
            when: "true".to_owned(),
            ..FlowPlan::default()
        };
        let full = Webhook {
            tokens: vec![token],
            verify: Some(verify),
        };
        let deployed = FlowPlan {
            trigger: webhook(full),
            paused: true,
            ..plan.clone()
        };
        let kept = FlowPlan {
            trigger: webhook(Webhook::default()),
            ..plan
        };
        assert_eq!(FlowPlan::decode(encode_unsealed(&deployed)).unwrap(), kept);
    }

    #[test]
    fn a_plan_with_secrets_is_sealed_for_its_place() {
        let sealer = Sealer::from_keys(&[[7; 32]]).unwrap();
        let plain = FlowPlan {
            flow_id: "flw_1".to_owned(),
            version: 3,
            when: "hush-hush".to_owned(),
            ..FlowPlan::default()
        };
        let secret = FlowPlan {
            literal_secrets: vec!["hush-hush".to_owned()],
            ..plain.clone()
        };
        let open = encode(&plain, Some(&sealer));
        let sealed = encode(&secret, Some(&sealer));
        assert_eq!(decode("flw_1", 3, open.clone(), None).unwrap(), plain);
        assert!(!sealed.windows(9).any(|window| window == b"hush-hush"));
        assert_eq!(
            decode("flw_1", 3, sealed.clone(), Some(&sealer)).unwrap(),
            secret
        );
        let other = Sealer::from_keys(&[[8; 32]]).unwrap();
        for refused in [
            decode("flw_1", 3, sealed.clone(), None),
            decode("flw_1", 4, sealed.clone(), Some(&sealer)),
            decode("flw_1", 3, sealed, Some(&other)),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
    }
}
