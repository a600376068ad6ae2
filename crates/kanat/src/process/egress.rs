//! Addresses that a process may call for its users, and the warnings about them at its start.

use std::sync::Arc;

use anyhow::{Context, Result};
use kanat_net::egress::{LocalTargets, OwnListeners, Policy};
use kanat_net::outbound;

use super::listener::Port;
use crate::settings::process::Settings;

/// Path below the address of a service at which webhooks are received.
pub const WEBHOOKS: &str = "/webhooks/receive/";

/// Reach of a service, as far as its settings show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    ThisMachine,
    Others,
}

/// Returns the client for calls that users direct. It calls none of the listeners, but by URLs that
/// begin with `public`.
///
/// # Errors
/// Fails when the system offers no TLS roots, or the public URL is none.
pub fn client<'l>(
    settings: &Settings,
    local_targets: LocalTargets,
    listeners: impl IntoIterator<Item = &'l Port>,
    public: Option<&str>,
) -> Result<outbound::Client> {
    let ports = listeners
        .into_iter()
        .map(|port| port.address.port())
        .collect();
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
