//! What is kept of a flow's version in the message log, by either plane: enough to run the messages that were accepted
//! under it, and nothing that only the ingress needs.

use bytes::Bytes;
use kanat_proto::plan::v1::trigger::Kind as Trigger;
use kanat_proto::plan::v1::{FlowPlan, Webhook};
use prost::Message;

/// The plan without its webhook tokens, without the secrets that senders prove themselves with, and not paused.
pub fn body(plan: &FlowPlan) -> Bytes {
    let mut plan = plan.clone();
    plan.paused = false;
    if let Some(Trigger::Webhook(webhook)) = plan.trigger.as_mut().and_then(|trigger| trigger.kind.as_mut()) {
        *webhook = Webhook::default();
    }
    plan.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::{Trigger as Wrapper, Verify, WebhookToken};

    use super::*;

    #[test]
    fn neither_tokens_nor_secrets_are_kept() {
        let token = WebhookToken { sha256: vec![7; 32], expires_at: 0 };
        let verify = Verify { secrets: vec!["hunter2".to_owned()], ..Verify::default() };
        let webhook = |webhook| Some(Wrapper { kind: Some(Trigger::Webhook(webhook)) });
        let plan = FlowPlan { flow_id: "flw_1".to_owned(), version: 3, when: "true".to_owned(), ..FlowPlan::default() };
        let full = Webhook { tokens: vec![token], verify: Some(verify) };
        let deployed = FlowPlan { trigger: webhook(full), paused: true, ..plan.clone() };
        let kept = FlowPlan { trigger: webhook(Webhook::default()), ..plan };
        assert_eq!(FlowPlan::decode(body(&deployed)).unwrap(), kept);
    }
}
