//! The routes: which method of which service answers a path.

mod template;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Uri};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor,
    ServiceDescriptor,
};
use tonic::Status;

use crate::annotation::{self, Rest};
use crate::error::Problem;
use crate::field::NullableFields;
use crate::gateway::Error;
use crate::{encode, percent};
use template::Template;
pub(crate) use template::Variable;

/// A gRPC method as REST serves it.
#[derive(Debug)]
pub(crate) struct Rpc {
    /// Full name, such as `kanat.v1.FlowService/GetFlow`.
    pub name: String,
    /// URI of the call in this process.
    pub uri: Uri,
    pub input: MessageDescriptor,
    pub output: MessageDescriptor,
    /// Fields of all messages that are null where they are absent.
    pub nullable: Arc<NullableFields>,
    pub streams: bool,
    pub rest: Rest,
}

impl Rpc {
    /// Reads a message of the answer.
    pub(crate) fn decode(&self, bytes: Bytes) -> Result<DynamicMessage, Status> {
        DynamicMessage::decode(self.output.clone(), bytes)
            .map_err(|e| Status::internal(format!("the service's message cannot be read: {e}")))
    }

    /// Returns a field of a message of the answer as JSON, or the whole message.
    pub(crate) fn json(
        &self,
        message: &DynamicMessage,
        field: Option<&FieldDescriptor>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        match field {
            Some(field) => {
                let value = message.get_field(field);
                encode::value(&value, &field.kind(), &self.nullable, &mut out);
            }
            None => encode::message(message, &self.nullable, &mut out),
        }
        out
    }
}

#[derive(Debug)]
pub(crate) struct Route {
    pub method: Method,
    pub template: Template,
    pub takes_body: bool,
    pub rpc: Arc<Rpc>,
}

impl Route {
    /// Returns the message that a read gives of the resource that the route updates; none when it
    /// updates nothing.
    pub(crate) fn read(&self) -> Option<&MessageDescriptor> {
        let updates = self.takes_body && matches!(self.method, Method::PUT | Method::PATCH);
        updates.then_some(&self.rpc.output)
    }
}

#[derive(Debug)]
pub(crate) struct Router {
    /// Routes in the order of the descriptor set.
    routes: Vec<Arc<Route>>,
    /// Routes with literal segments before variables.
    by_precedence: Vec<Arc<Route>>,
}

/// Result of routing a request.
pub(crate) enum RouteMatch {
    Route {
        route: Arc<Route>,
        variables: Vec<(Variable, String)>,
    },
    /// `OPTIONS`: the methods that the path has.
    Options(Vec<Method>),
}

impl Router {
    pub(crate) fn new(pool: &DescriptorPool) -> Result<Self, Error> {
        let mut routes = Vec::new();
        let nullable = Arc::new(NullableFields::of(pool));
        let services: Vec<_> = pool.services().collect();
        for method in services.iter().flat_map(ServiceDescriptor::methods) {
            let read = read(pool, &method, &nullable).map_err(|reason| Error::Method {
                method: method.full_name().to_owned(),
                reason,
            })?;
            routes.extend(read.into_iter().map(Arc::new));
        }
        let mut by_precedence = routes.clone();
        by_precedence.sort_by_key(|route| route.template.precedence());
        Ok(Self {
            routes,
            by_precedence,
        })
    }

    pub(crate) fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// Finds the route of a request. `HEAD` takes the route of `GET`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<RouteMatch, Problem> {
        let unknown = || Problem::not_found(format!("no route {method} {path}"));
        let segments = path
            .strip_prefix('/')
            .ok_or_else(unknown)?
            .split('/')
            .map(percent::decode);
        let Some(segments) = segments.collect::<Option<Vec<_>>>() else {
            return Err(Problem::invalid("the path is not percent-encoded UTF-8"));
        };
        let best = self
            .by_precedence
            .iter()
            .find(|r| r.template.matches(&segments))
            .ok_or_else(unknown)?;
        let here: Vec<_> = self
            .by_precedence
            .iter()
            .filter(|r| r.template.same_shape(&best.template))
            .collect();
        let wanted = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        if let Some(route) = here.iter().find(|r| r.method == wanted) {
            let variables = route.template.variables(&segments);
            return Ok(RouteMatch::Route {
                route: Arc::clone(route),
                variables,
            });
        }
        let mut allowed: Vec<Method> = here.iter().map(|r| r.method.clone()).collect();
        if allowed.contains(&Method::GET) {
            allowed.push(Method::HEAD);
        }
        allowed.push(Method::OPTIONS);
        if method == Method::OPTIONS {
            Ok(RouteMatch::Options(allowed))
        } else {
            Err(Problem::not_allowed(path, &allowed))
        }
    }
}

fn read(
    pool: &DescriptorPool,
    method: &MethodDescriptor,
    nullable: &Arc<NullableFields>,
) -> Result<Vec<Route>, String> {
    let bindings = annotation::bindings(pool, method)?;
    if bindings.is_empty() {
        return Ok(Vec::new());
    }
    let name = format!("{}/{}", method.parent_service().full_name(), method.name());
    let rpc = Arc::new(Rpc {
        uri: Uri::try_from(format!("http://in.process/{name}")).map_err(|e| e.to_string())?,
        name,
        input: method.input(),
        output: method.output(),
        nullable: Arc::clone(nullable),
        streams: method.is_server_streaming(),
        rest: annotation::rest(pool, method)?,
    });
    if method.is_client_streaming() != rpc.rest.stream.is_some() {
        return Err(
            "a stream of requests, and nothing else, names the list that it carries".to_owned(),
        );
    }
    let route = |binding: annotation::Binding| {
        if rpc.rest.stream.is_some() && !binding.takes_body {
            return Err("a stream of requests needs a body to be cut from".to_owned());
        }
        let template = Template::parse(&binding.path, &rpc.input)?;
        Ok(Route {
            method: binding.method,
            template,
            takes_body: binding.takes_body,
            rpc: Arc::clone(&rpc),
        })
    };
    bindings.into_iter().map(route).collect()
}
