//! A map that is copied on write, shard by shard: a clone costs a few microseconds at any size, and
//! a change of a clone copies one shard. Made for sets of 100,000 entries that change one at a
//! time.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const SHARDS: usize = 512;

/// A hash map whose clones share the shards that did not change since.
#[derive(Debug)]
pub struct ShardedMap<K, V> {
    shards: Arc<[Arc<HashMap<K, V>>]>,
    len: usize,
}

impl<K, V> Clone for ShardedMap<K, V> {
    fn clone(&self) -> Self {
        Self {
            shards: Arc::clone(&self.shards),
            len: self.len,
        }
    }
}

impl<K, V> Default for ShardedMap<K, V> {
    fn default() -> Self {
        let empty = Arc::new(HashMap::new());
        Self {
            shards: (0..SHARDS).map(|_| Arc::clone(&empty)).collect(),
            len: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> ShardedMap<K, V> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of `key`.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards[shard_of(key)].get(key)
    }

    /// Sets the value of `key`, and returns the former one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let former = self.shard_mut(shard_of(&key)).insert(key, value);
        self.len += usize::from(former.is_none());
        former
    }

    /// Removes `key`, and returns its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // The removal of an absent key must not copy the shard.
        self.get(key)?;
        let former = self.shard_mut(shard_of(key)).remove(key);
        self.len -= usize::from(former.is_some());
        former
    }

    /// Returns every entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    /// Returns the entries of shards that `other` does not share: all that differ are among them,
    /// and few others when one map was made from the other.
    pub fn unshared_entries<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a K, &'a V)> {
        self.shards
            .iter()
            .zip(other.shards.iter())
            .filter(|(own, others)| !Arc::ptr_eq(own, others))
            .flat_map(|(own, _)| own.iter())
    }

    fn shard_mut(&mut self, shard: usize) -> &mut HashMap<K, V> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[shard])
    }
}

impl<K: Hash + Eq + Clone, V: Clone> FromIterator<(K, V)> for ShardedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// Returns the shard of a key. A key and its borrowed form have one hash, by the contract of
/// `Borrow`.
fn shard_of<Q: Hash + ?Sized>(key: &Q) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    (hasher.finish() % SHARDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_had() {
        let mut map: ShardedMap<String, u32> =
            (0..2_000).map(|n| (format!("key {n}"), n)).collect();
        let before = map.clone();
        assert_eq!(map.insert("key 7".to_owned(), 70), Some(7));
        assert_eq!(map.remove("key 8"), Some(8));
        assert_eq!(map.remove("key 8"), None);
        assert_eq!(map.insert("new".to_owned(), 1), None);
        assert_eq!(before.get("key 7"), Some(&7));
        assert_eq!(before.get("key 8"), Some(&8));
        assert_eq!(before.get("new"), None);
        assert_eq!(map.get("key 7"), Some(&70));
        assert_eq!(map.get("key 8"), None);
        assert_eq!(map.get("new"), Some(&1));
        assert_eq!(before.len(), 2_000);
        assert_eq!(map.len(), 2_000);
        assert_eq!(map.iter().count(), map.len());
    }

    #[test]
    fn one_change_leaves_the_other_shards_shared() {
        let mut map: ShardedMap<String, u32> =
            (0..20_000).map(|n| (format!("key {n}"), n)).collect();
        let before = map.clone();
        map.insert("key 7".to_owned(), 70);
        let unshared: Vec<_> = map.unshared_entries(&before).collect();
        assert!(unshared.contains(&(&"key 7".to_owned(), &70)));
        assert!(
            unshared.len() < 200,
            "{} entries were copied",
            unshared.len()
        );
        assert_eq!(map.unshared_entries(&map.clone()).count(), 0);
    }

    #[test]
    fn the_empty_map_is_empty() {
        let map = ShardedMap::<String, u32>::default();
        assert!(map.is_empty());
        assert_eq!(map.get("x"), None);
    }
}
