//! Callers of every kind go the same way: create, deploy, run, and see the message delivered.

mod curl;
mod grpc;
mod grpc_web;
mod python;

/// A flow started by hand that delivers to the instance `erp`, and one order for it.
const FLOW: &str = r"flow: by-hand
version: 1
source:
  trigger: manual
target:
  connector: erp
  endpoint: /orders/{{ source.id }}
  method: POST
mapping:
  id: source.id | required
  total: source.total | decimal(2)
";
const PAYLOAD: &str = r#"{"id": 9007199254740993, "total": 149.5}"#;
const DELIVERED: &str = r#"{"id":9007199254740993,"total":"149.50"}"#;
