//! Connection of a node to its control planes: over the network, or in the same process.

use super::Fallback;
use http::{Request, Response};
use kanat_plan_stream::MAX_MESSAGE_BYTES;
use kanat_proto::node::v1::plan_service_client::PlanServiceClient;
use tonic::body::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

pub(super) type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, CallError>;

/// Failure of a call. It is a named type because a boxed error makes futures that are not `Send`.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct CallError(BoxError);

/// One control plane or several, tried in turn.
#[derive(Debug, Clone)]
pub struct ControlPlanes {
    first: Transport,
    others: Vec<Transport>,
    fallback: Option<Fallback>,
}

impl ControlPlanes {
    /// Creates a list of one control plane: a tonic `Channel`, or the `PlanServiceServer` of the
    /// same process.
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
    {
        Self {
            first: boxed(service),
            others: Vec::new(),
            fallback: None,
        }
    }

    /// Adds a control plane, for when the former ones cannot be reached.
    #[must_use]
    pub fn or<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
    {
        self.others.push(boxed(service));
        self
    }

    /// Adds fallback plans, for a node that lacks the plans of an environment and reaches no
    /// control plane.
    #[must_use]
    pub fn falling_back(self, fallback: Fallback) -> Self {
        Self {
            fallback: Some(fallback),
            ..self
        }
    }

    pub(super) fn fallback(&self) -> Option<&Fallback> {
        self.fallback.as_ref()
    }

    /// Returns a client of the control plane for this attempt. The control planes take turns, so
    /// that a control plane that is gone costs one attempt.
    pub(super) fn client_for(&self, turn: usize) -> PlanServiceClient<Transport> {
        let turn = turn % (1 + self.others.len());
        let transport = turn
            .checked_sub(1)
            .map_or(&self.first, |other| &self.others[other]);
        PlanServiceClient::new(transport.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

fn boxed<S>(service: S) -> Transport
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    BoxCloneSyncService::new(service.map_err(|error| CallError(error.into())))
}
