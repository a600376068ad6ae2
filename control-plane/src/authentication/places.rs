//! Bounds on what one caller, and all of them, have open at once: calls that wait for their answer,
//! and live streams.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use kanat_model::{Code, Error};
use parking_lot::Mutex;

use crate::app::Credential;

/// Calls of one holder that wait for their answer.
const MAX_CALLS_OF_HOLDER: usize = 64;
/// Live streams of one holder.
const MAX_STREAMS_OF_HOLDER: usize = 64;
/// Live streams of all credentials.
const MAX_STREAMS: usize = 1_000;
/// Live streams of all callers without a credential.
const MAX_STREAMS_OF_STRANGERS: usize = 256;

/// Open calls and streams by their holders.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    by_holder: HashMap<(Holder, Kind), usize>,
    streams: usize,
    streams_of_strangers: usize,
}

/// Holder of places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    Caller(Credential),
    /// The network of a caller without a credential.
    Stranger(IpAddr),
}

/// Kind of a place.
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
    held: (Holder, Kind),
}

impl Places {
    /// Takes a place for a call.
    ///
    /// # Errors
    /// When as many are taken as may be.
    pub fn take(&self, holder: Holder, kind: Kind) -> Result<Place, Error> {
        let mut open = self.0.lock();
        let who = holder.name();
        let limit = holder.streams();
        let held = (holder, kind);
        let by_holder = open.by_holder.get(&held).copied().unwrap_or(0);
        let refusal = match kind {
            Kind::Call if by_holder >= MAX_CALLS_OF_HOLDER => {
                Some(format!("{who} has {MAX_CALLS_OF_HOLDER} calls waiting"))
            }
            Kind::Stream if by_holder >= MAX_STREAMS_OF_HOLDER => Some(format!(
                "{who} has {MAX_STREAMS_OF_HOLDER} live streams open"
            )),
            Kind::Stream if *open.streams_like(&held.0) >= limit => {
                Some(format!("{limit} live streams are open"))
            }
            Kind::Call | Kind::Stream => None,
        };
        if let Some(refusal) = refusal {
            return Err(Error::new(Code::ResourceExhausted, refusal));
        }
        open.by_holder.insert(held.clone(), by_holder + 1);
        *open.streams_like(&held.0) += usize::from(kind == Kind::Stream);
        Ok(Place {
            places: self.clone(),
            held,
        })
    }
}

impl Holder {
    fn name(&self) -> &'static str {
        match self {
            Self::Caller(Credential::Key(_)) => "this key",
            Self::Caller(Credential::Member(_)) => "this member",
            Self::Caller(Credential::Person(_)) => "this person",
            Self::Stranger(_) => "this address",
        }
    }

    /// Number of streams that all holders of this sort may have.
    fn streams(&self) -> usize {
        match self {
            Self::Caller(_) => MAX_STREAMS,
            Self::Stranger(_) => MAX_STREAMS_OF_STRANGERS,
        }
    }
}

impl Open {
    /// The streams of all holders of the same sort.
    fn streams_like(&mut self, holder: &Holder) -> &mut usize {
        match holder {
            Holder::Caller(_) => &mut self.streams,
            Holder::Stranger(_) => &mut self.streams_of_strangers,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.0.lock();
        *open.streams_like(&self.held.0) -= usize::from(self.held.1 == Kind::Stream);
        if let Some(by_holder) = open.by_holder.get_mut(&self.held) {
            *by_holder -= 1;
            if *by_holder == 0 {
                open.by_holder.remove(&self.held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kanat_model::id::ApiKeyId;

    use super::*;

    fn key_of(id: ApiKeyId) -> Holder {
        Holder::Caller(Credential::Key(id))
    }

    #[test]
    fn one_caller_takes_so_many_places_and_leaves_those_of_others() {
        let places = Places::default();
        let one = || key_of(ApiKeyId::from("key_1"));
        let other = || key_of(ApiKeyId::from("key_2"));
        let mut calls: Vec<_> = (0..MAX_CALLS_OF_HOLDER)
            .map(|_| places.take(one(), Kind::Call).unwrap())
            .collect();
        assert_eq!(
            places.take(one(), Kind::Call).err().unwrap().code,
            Code::ResourceExhausted
        );
        assert!(places.take(one(), Kind::Stream).is_ok());
        assert!(places.take(other(), Kind::Call).is_ok());
        calls.pop();
        assert!(places.take(one(), Kind::Call).is_ok());
        drop(calls);
        assert!(places.0.lock().by_holder.is_empty());
    }

    #[test]
    fn all_callers_have_so_many_streams_together() {
        let places = Places::default();
        let key = |n: usize| key_of(ApiKeyId::from(format!("key_{}", n / MAX_STREAMS_OF_HOLDER)));
        let mut streams: Vec<_> = (0..MAX_STREAMS)
            .map(|n| places.take(key(n), Kind::Stream).unwrap())
            .collect();
        assert_eq!(
            places
                .take(key(MAX_STREAMS * 2), Kind::Stream)
                .err()
                .unwrap()
                .code,
            Code::ResourceExhausted
        );
        streams.pop();
        assert!(places.take(key(MAX_STREAMS * 2), Kind::Stream).is_ok());
    }

    #[test]
    fn streams_of_strangers_leave_those_of_callers() {
        let places = Places::default();
        let stranger = |n: usize| {
            let address = u32::try_from(n / MAX_STREAMS_OF_HOLDER).unwrap();
            Holder::Stranger(std::net::Ipv4Addr::from(address).into())
        };
        let streams: Vec<_> = (0..MAX_STREAMS_OF_STRANGERS)
            .map(|n| places.take(stranger(n), Kind::Stream).unwrap())
            .collect();
        let more = stranger(MAX_STREAMS_OF_STRANGERS);
        let refused = places.take(more.clone(), Kind::Stream).err().unwrap();
        assert_eq!(refused.message, "256 live streams are open");
        let own = places.take(stranger(0), Kind::Stream).err().unwrap();
        assert_eq!(own.message, "this address has 64 live streams open");
        assert!(places.take(more, Kind::Call).is_ok());
        let key = key_of(ApiKeyId::from("key_1"));
        assert!(places.take(key, Kind::Stream).is_ok());
        drop(streams);
        assert!(places.0.lock().by_holder.is_empty());
    }
}
