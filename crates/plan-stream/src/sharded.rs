//! A map that many readers share while it changes: a clone costs a few microseconds whatever it
//! holds, and a change copies one shard of it. Made for sets of 100,000 entries that change one at
//! a time.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const SHARDS: usize = 512;

/// An immutable-by-sharing hash map: clones share what did not change since.
#[derive(Debug)]
pub struct Sharded<K, V> {
    shards: Arc<[Arc<HashMap<K, V>>]>,
    len: usize,
}

impl<K, V> Clone for Sharded<K, V> {
    fn clone(&self) -> Self {
        Self {
            shards: Arc::clone(&self.shards),
            len: self.len,
        }
    }
}

impl<K, V> Default for Sharded<K, V> {
    fn default() -> Self {
        let empty = Arc::new(HashMap::new());
        Self {
            shards: (0..SHARDS).map(|_| Arc::clone(&empty)).collect(),
            len: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Sharded<K, V> {
    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `key`.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards[shard_of(key)].get(key)
    }

    /// Sets the value of `key` and gives the former one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let former = self.shard_mut(shard_of(&key)).insert(key, value);
        self.len += usize::from(former.is_none());
        former
    }

    /// Takes `key` out and gives its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // A key that is not there must not cost a copy.
        self.get(key)?;
        let former = self.shard_mut(shard_of(key)).remove(key);
        self.len -= usize::from(former.is_some());
        former
    }

    /// Every entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    /// The entries that stand in shards which `other` does not share: all that differ are among
    /// them, and few others when one was made from the other.
    pub fn unshared<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a K, &'a V)> {
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

impl<K: Hash + Eq + Clone, V: Clone> FromIterator<(K, V)> for Sharded<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// The same for equal keys in one process; `Borrow` promises that it is the same for a key and its
/// borrowed form.
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
        let mut map: Sharded<String, u32> = (0..2_000).map(|n| (format!("key {n}"), n)).collect();
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
        let mut map: Sharded<String, u32> = (0..20_000).map(|n| (format!("key {n}"), n)).collect();
        let before = map.clone();
        map.insert("key 7".to_owned(), 70);
        let unshared: Vec<_> = map.unshared(&before).collect();
        assert!(unshared.contains(&(&"key 7".to_owned(), &70)));
        assert!(
            unshared.len() < 200,
            "{} entries were copied",
            unshared.len()
        );
        assert_eq!(map.unshared(&map.clone()).count(), 0);
    }

    #[test]
    fn the_empty_map_is_empty() {
        let map = Sharded::<String, u32>::default();
        assert!(map.is_empty());
        assert_eq!(map.get("x"), None);
    }
}
