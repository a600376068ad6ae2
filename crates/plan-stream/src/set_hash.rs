//! The hash of a whole set of resources, kept up to date at the cost of the resources that change.
//!
//! It is the exclusive or of the SHA-256 of every (content hash, id) pair: the order of the pairs
//! does not matter, and one change of 100,000 flows costs two hashes. It tells two peers that trust
//! each other whether they hold the same; it is no defence against a peer that lies.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::Hash;

/// The hash of a set; the empty set's is all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SetHash([u8; 32]);

impl SetHash {
    /// Returns the hash of the set of these pairs, whose ids must differ.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, Hash)>) -> Self {
        pairs
            .into_iter()
            .fold(Self::default(), |set, (id, hash)| set.toggled(id, hash))
    }

    /// Returns the hash of the set with the pair added, or removed if the set has it.
    #[must_use]
    pub fn toggled(self, id: &str, hash: Hash) -> Self {
        // The content hash has a fixed length and comes first, so that no two pairs read the same.
        let pair = Sha256::new()
            .chain_update(hash.as_bytes())
            .chain_update(id.as_bytes())
            .finalize();
        let mut bytes = self.0;
        bytes
            .iter_mut()
            .zip(pair)
            .for_each(|(byte, other)| *byte ^= other);
        Self(bytes)
    }

    /// Returns the hash of the set with the content `after` of a resource in the place of `before`.
    #[must_use]
    pub fn replaced(self, id: &str, before: Option<Hash>, after: Option<Hash>) -> Self {
        let pair = before.into_iter().chain(after);
        pair.fold(self, |set, hash| set.toggled(id, hash))
    }

    /// Reads the 32 bytes of the wire; `None` for any other length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Reads what `Display` writes.
    pub fn from_hex(text: &str) -> Option<Self> {
        Self::from_slice(&hex::decode(text).ok()?)
    }

    /// The 32 bytes, as the wire carries them.
    pub fn to_vec(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl fmt::Display for SetHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SetHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_pairs_does_not_matter() {
        let a = Hash::of(b"a");
        let b = Hash::of(b"b");
        assert_eq!(
            SetHash::of([("1", a), ("2", b)]),
            SetHash::of([("2", b), ("1", a)])
        );
        assert_ne!(
            SetHash::of([("1", a), ("2", b)]),
            SetHash::of([("1", b), ("2", a)])
        );
    }

    #[test]
    fn a_pair_taken_out_leaves_the_set_as_it_was() {
        let before = SetHash::of([("1", Hash::of(b"a"))]);
        let more = before.toggled("2", Hash::of(b"b"));
        assert_ne!(more, before);
        assert_eq!(more.toggled("2", Hash::of(b"b")), before);
        assert_eq!(SetHash::of([]), SetHash::default());
        assert_eq!(SetHash::from_hex(&more.to_string()), Some(more));
    }
}
