//! What a process may call for its users, and what it says of that at its start.

use std::sync::Arc;

use anyhow::{Context, Result};
use kanat_net::egress::{LocalTargets, OwnListeners, Policy};
use kanat_net::outbound;
use tokio::net::TcpListener;

use crate::settings::process::Settings;

/// Where webhooks are received, below the address of a service.
pub const WEBHOOKS: &str = "/webhooks/receive/";

/// Who reaches a service, as far as its settings tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    ThisMachine,
    Others,
}

/// Returns the client for calls that users direct. It calls none of the listeners, but by URLs that
/// begin with `public`.
///
/// # Errors
/// Fails when the system offers no TLS roots, or a listener has no address.
pub fn client<'l>(
    settings: &Settings,
    local_targets: LocalTargets,
    listeners: impl IntoIterator<Item = &'l TcpListener>,
    public: Option<&str>,
) -> Result<outbound::Client> {
    let ports = listeners
        .into_iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect::<Result<_>>()?;
    let public = public
        .map(str::parse)
        .transpose()
        .context("the public URL is not a URL")?;
    let policy = Policy::new(settings.egress_allow.clone(), local_targets)
        .with_own_listeners(OwnListeners::new(ports, public));
    outbound::Client::new(Arc::new(policy), &outbound::Options::default())
        .context("cannot set up outbound calls")
}

/// Tells that users' calls may reach this machine and private networks, if they may.
pub fn announce(local_targets: LocalTargets, reach: Reach) {
    match (local_targets, reach) {
        (LocalTargets::Refused, _) => {}
        (LocalTargets::Allowed, Reach::ThisMachine) => tracing::info!(
            "local addresses are allowed: targets may be on this machine and in private networks; \
             --egress guarded refuses them",
        ),
        (LocalTargets::Allowed, Reach::Others) => tracing::warn!(
            "local addresses are allowed by egress = local: whoever builds flows can call this \
             machine and its private networks",
        ),
    }
}
