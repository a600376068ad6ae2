//! Flows: from a definition to what nodes run, and back.

mod create;
mod delete;
mod deploy;
mod diff;
mod earlier_version;
mod get;
mod list;
mod literal;
mod plan;
mod rollback;
mod rotate_webhook_token;
mod run;
mod secrets;
mod success_when;
mod test;
mod test_of_a_call;
mod update;
mod validate;
mod versions;

/// A flow that is started by hand and delivers to the instance `erp`.
pub fn manual(name: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source:
  trigger: manual
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  id: source.id | required
"
    )
}
