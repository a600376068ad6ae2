//! Export of the published sets of the store, for nodes that have neither plans nor a control plane
//! in reach.

use kanat_auth::Sealer;
use kanat_proto::node::v1::{PublishedSet, PublishedSets};
use prost::Message;
use tonic::Status;

use super::session::subscription;
use super::source::{Environment, Error, Source};

/// Context that a file of published sets is sealed for.
const SEAL_CONTEXT: &str = "published-sets";

/// Returns the current sets of the environments of these ids or names, or of all.
pub async fn published_sets(
    source: &Source,
    named: &[String],
) -> Result<PublishedSets, ExportError> {
    let (_, all) = source.environments().await?;
    subscription::check(named, &all).map_err(ExportError::Environment)?;
    let mut sets = Vec::new();
    for environment in subscription::served(named, all) {
        if let Some(set) = source.read(&environment.id, None).await?.set {
            let resources = set
                .iter()
                .map(|(id, entry)| entry.to_resource(id))
                .collect();
            sets.push(PublishedSet {
                environment: Some(Environment::into_wire(environment)),
                epoch: set.epoch.to_string(),
                generation: set.generation,
                set_hash: set.hash.to_vec(),
                resources,
            });
        }
    }
    Ok(PublishedSets { sets })
}

/// Reason why sets cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Source(#[from] Error),
    #[error("{}", .0.message())]
    Environment(Status),
}

/// Seals sets under the master key, as the content of a file.
pub fn seal(sets: &PublishedSets, sealer: &Sealer) -> Vec<u8> {
    sealer.seal(&sets.encode_to_vec(), SEAL_CONTEXT)
}

/// Opens the content of a file; `None` when it is sealed under another key, or damaged.
pub fn open(file: &[u8], sealer: &Sealer) -> Option<PublishedSets> {
    PublishedSets::decode(sealer.open(file, SEAL_CONTEXT).ok()?.as_slice()).ok()
}
