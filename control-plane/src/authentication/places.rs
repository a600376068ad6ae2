//! Bounds on what one caller, and all of them, have open at once: calls that wait for their answer,
//! and live streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kanat_model::id::ApiKeyId;
use kanat_model::{Code, Error};

/// Calls of one credential that wait for their answer.
const CALLS_OF_ONE: usize = 64;
/// Live streams of one credential.
const STREAMS_OF_ONE: usize = 64;
/// Live streams of all credentials.
const STREAMS: usize = 1_000;

/// What is open, by credential.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    of_one: HashMap<(ApiKeyId, Kind), usize>,
    streams: usize,
}

/// What a call takes a place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It is answered and done.
    Call,
    /// It is answered for as long as its caller likes.
    Stream,
}

/// A place that is free again when this is dropped.
pub struct Place {
    places: Places,
    held: (ApiKeyId, Kind),
}

impl Places {
    /// Takes a place for a call.
    ///
    /// # Errors
    /// When as many are taken as may be.
    pub fn take(&self, key_id: &ApiKeyId, kind: Kind) -> Result<Place, Error> {
        let mut open = self.open();
        let held = (key_id.clone(), kind);
        let of_one = open.of_one.get(&held).copied().unwrap_or(0);
        let refusal = match kind {
            Kind::Call if of_one >= CALLS_OF_ONE => {
                Some(format!("this key has {CALLS_OF_ONE} calls waiting"))
            }
            Kind::Stream if of_one >= STREAMS_OF_ONE => {
                Some(format!("this key has {STREAMS_OF_ONE} live streams open"))
            }
            Kind::Stream if open.streams >= STREAMS => {
                Some(format!("{STREAMS} live streams are open"))
            }
            Kind::Call | Kind::Stream => None,
        };
        if let Some(refusal) = refusal {
            return Err(Error::new(Code::ResourceExhausted, refusal));
        }
        open.of_one.insert(held.clone(), of_one + 1);
        open.streams += usize::from(kind == Kind::Stream);
        Ok(Place {
            places: self.clone(),
            held,
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.open();
        open.streams -= usize::from(self.held.1 == Kind::Stream);
        if let Some(of_one) = open.of_one.get_mut(&self.held) {
            *of_one -= 1;
            if *of_one == 0 {
                open.of_one.remove(&self.held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_takes_so_many_places_and_leaves_those_of_others() {
        let places = Places::default();
        let one = ApiKeyId::from("key_1");
        let other = ApiKeyId::from("key_2");
        let mut calls: Vec<_> = (0..CALLS_OF_ONE)
            .map(|_| places.take(&one, Kind::Call).unwrap())
            .collect();
        assert_eq!(
            places.take(&one, Kind::Call).err().unwrap().code,
            Code::ResourceExhausted
        );
        assert!(places.take(&one, Kind::Stream).is_ok());
        assert!(places.take(&other, Kind::Call).is_ok());
        calls.pop();
        assert!(places.take(&one, Kind::Call).is_ok());
        drop(calls);
        assert!(places.open().of_one.is_empty());
    }

    #[test]
    fn all_callers_have_so_many_streams_together() {
        let places = Places::default();
        let key = |n: usize| ApiKeyId::from(format!("key_{}", n / STREAMS_OF_ONE));
        let mut streams: Vec<_> = (0..STREAMS)
            .map(|n| places.take(&key(n), Kind::Stream).unwrap())
            .collect();
        assert_eq!(
            places
                .take(&key(STREAMS * 2), Kind::Stream)
                .err()
                .unwrap()
                .code,
            Code::ResourceExhausted
        );
        streams.pop();
        assert!(places.take(&key(STREAMS * 2), Kind::Stream).is_ok());
    }
}
