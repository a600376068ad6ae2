//! Snapshots: a set of resources as one run of bytes, split into chunks and assembled again. An
//! assembly returns nothing before length and SHA-256 agree.

use bytes::{Bytes, BytesMut};
use kanat_proto::node::v1::{Resource, ResourceSet, SnapshotBegin};
use prost::Message;

use crate::{Hash, SetHash};

/// Size of every chunk but the last, in bytes.
pub const CHUNK_BYTES: usize = 256 << 10;

/// A set of resources, encoded once for all nodes that need it.
#[derive(Debug, Clone)]
pub struct EncodedSnapshot {
    bytes: Bytes,
    sha256: Hash,
}

impl EncodedSnapshot {
    /// Encodes the set.
    pub fn new(resources: Vec<Resource>) -> Self {
        let bytes = Bytes::from(ResourceSet { resources }.encode_to_vec());
        let sha256 = Hash::of(&bytes);
        Self { bytes, sha256 }
    }

    /// Returns the size of all chunks together, in bytes.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the SHA-256 of all chunks together.
    pub fn sha256(&self) -> Hash {
        self.sha256
    }

    /// Returns the chunks in order; none when the set is empty.
    pub fn chunks(&self) -> impl Iterator<Item = Bytes> + use<> {
        let bytes = self.bytes.clone();
        (0..bytes.len())
            .step_by(CHUNK_BYTES)
            .map(move |at| bytes.slice(at..bytes.len().min(at + CHUNK_BYTES)))
    }
}

/// Reason why a snapshot cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More or fewer bytes than its beginning said.
    #[error("the snapshot has {actual} bytes, not {expected}")]
    Length {
        /// Length that was announced.
        expected: u64,
        /// Length that was received, up to the chunk that exceeded the announced one.
        actual: u64,
    },
    /// The bytes are not those that were sent.
    #[error("the snapshot's bytes do not have the hash that was announced")]
    Sha256,
    /// The bytes are no set.
    #[error("the snapshot cannot be read: {0}")]
    Encoding(String),
    /// The body of a resource does not have its hash.
    #[error("the body of resource {0:?} does not have its hash")]
    ResourceHash(String),
    /// The resources are not those of the set hash.
    #[error("the snapshot does not hold the set that was announced")]
    SetHash,
}

/// A snapshot that is being received.
#[derive(Debug)]
pub struct Assembly {
    begin: SnapshotBegin,
    bytes: BytesMut,
}

impl Assembly {
    /// Begins an assembly. Memory is allocated as chunks come.
    pub fn begin(begin: SnapshotBegin) -> Self {
        Self {
            begin,
            bytes: BytesMut::new(),
        }
    }

    /// Returns the nonce of the snapshot.
    pub fn nonce(&self) -> u64 {
        self.begin.nonce
    }

    /// Appends the next chunk.
    ///
    /// # Errors
    /// More bytes than announced.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let actual = self.bytes.len() as u64 + chunk.len() as u64;
        if actual > self.begin.length {
            return Err(Error::Length {
                expected: self.begin.length,
                actual,
            });
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// Ends the assembly, and returns its beginning and its resources.
    ///
    /// # Errors
    /// Anything that is not as it was announced.
    pub fn finish(self) -> Result<(SnapshotBegin, Vec<Resource>), Error> {
        let bytes = self.bytes.freeze();
        let actual = bytes.len() as u64;
        if actual != self.begin.length {
            return Err(Error::Length {
                expected: self.begin.length,
                actual,
            });
        }
        if Hash::of(&bytes).as_bytes() != self.begin.sha256.as_slice() {
            return Err(Error::Sha256);
        }
        let set = ResourceSet::decode(bytes).map_err(|e| Error::Encoding(e.to_string()))?;
        if verify_set(&set.resources)?.to_vec() != self.begin.set_hash {
            return Err(Error::SetHash);
        }
        Ok((self.begin, set.resources))
    }
}

/// Returns the hash of the set of these resources, after a check of the hash of each.
///
/// # Errors
/// The body of a resource has another hash.
pub fn verify_set(resources: &[Resource]) -> Result<SetHash, Error> {
    resources
        .iter()
        .try_fold(SetHash::default(), |set, resource| {
            Ok(set.toggled(&resource.id, verify_hash(resource)?))
        })
}

/// Returns the hash of a resource, after a check against its body.
///
/// # Errors
/// The body has another hash.
pub fn verify_hash(resource: &Resource) -> Result<Hash, Error> {
    let hash = Hash::of(&resource.body);
    if hash.as_bytes() != resource.hash.as_slice() {
        return Err(Error::ResourceHash(resource.id.clone()));
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(id: &str, body: Vec<u8>) -> Resource {
        Resource {
            id: id.to_owned(),
            hash: Hash::of(&body).to_vec(),
            body: body.into(),
        }
    }

    fn begin(encoded: &EncodedSnapshot, resources: &[Resource]) -> SnapshotBegin {
        SnapshotBegin {
            nonce: 7,
            length: encoded.length(),
            sha256: encoded.sha256().to_vec(),
            set_hash: verify_set(resources).unwrap().to_vec(),
            ..SnapshotBegin::default()
        }
    }

    #[test]
    fn a_set_of_many_chunks_comes_out_as_it_went_in() {
        let resources = vec![
            resource("flow/1", vec![1; CHUNK_BYTES * 2]),
            resource("flow/2", vec![2; 10]),
        ];
        let encoded = EncodedSnapshot::new(resources.clone());
        assert_eq!(encoded.chunks().count(), 3);
        let mut assembly = Assembly::begin(begin(&encoded, &resources));
        for chunk in encoded.chunks() {
            assembly.push(&chunk).unwrap();
        }
        assert_eq!(assembly.finish().unwrap().1, resources);
    }

    #[test]
    fn the_empty_set_has_no_chunks() {
        let encoded = EncodedSnapshot::new(Vec::new());
        assert_eq!(encoded.chunks().count(), 0);
        assert_eq!(
            Assembly::begin(begin(&encoded, &[])).finish().unwrap().1,
            []
        );
    }

    #[test]
    fn refuses_a_snapshot_cut_short_or_too_long() {
        let resources = vec![resource("flow/1", vec![1; 100])];
        let encoded = EncodedSnapshot::new(resources.clone());
        let announced = begin(&encoded, &resources);
        let expected = announced.length;
        let short = Assembly::begin(announced.clone()).finish();
        assert_eq!(
            short.unwrap_err(),
            Error::Length {
                expected,
                actual: 0
            }
        );
        let mut long = Assembly::begin(announced);
        long.push(&encoded.bytes).unwrap();
        assert_eq!(
            long.push(b"x"),
            Err(Error::Length {
                expected,
                actual: expected + 1
            })
        );
    }

    #[test]
    fn refuses_bytes_bodies_and_sets_that_are_not_as_announced() {
        let good = vec![resource("flow/1", vec![1; 100])];
        let finish = |resources: Vec<Resource>, change: fn(&mut SnapshotBegin)| {
            let encoded = EncodedSnapshot::new(resources);
            let mut announced = begin(&encoded, &good);
            change(&mut announced);
            let mut assembly = Assembly::begin(announced);
            assembly.push(&encoded.bytes).unwrap();
            assembly.finish().unwrap_err()
        };
        assert_eq!(finish(good.clone(), |b| b.sha256[0] ^= 1), Error::Sha256);
        assert_eq!(
            finish(vec![resource("flow/2", vec![2])], |_| ()),
            Error::SetHash
        );
        let forged = Resource {
            hash: vec![0; 32],
            ..good[0].clone()
        };
        assert_eq!(
            finish(vec![forged], |_| ()),
            Error::ResourceHash("flow/1".to_owned())
        );
    }

    #[test]
    fn bytes_that_are_no_set_are_an_error() {
        let bytes = b"\xff\xff\xff".to_vec();
        let announced = SnapshotBegin {
            length: 3,
            sha256: Hash::of(&bytes).to_vec(),
            ..SnapshotBegin::default()
        };
        let mut assembly = Assembly::begin(announced);
        assembly.push(&bytes).unwrap();
        assert!(matches!(assembly.finish(), Err(Error::Encoding(_))));
    }
}
