//! Compiled target of a flow.

use std::time::Duration;

use http::{HeaderName, Method};
use kanat_mapping::{Expression, Template};

/// Destination of the messages of a flow.
pub(crate) struct Target {
    /// Id of the connector instance.
    pub instance: String,
    pub endpoint: Template,
    pub method: Method,
    pub headers: Vec<(HeaderName, Template)>,
    pub timeout: Duration,
    /// Condition that a successful answer has to satisfy.
    pub success_when: Option<Expression>,
}
