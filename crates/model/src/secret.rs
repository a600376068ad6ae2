//! Text that must not show: its `Debug` is a mask, and it is wiped when dropped.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A value that can be read only by asking for it by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The bare value; keep it out of logs and answers.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> ZeroizeOnDrop for Secret<T> {}

impl<T: Zeroize> std::fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("********")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    struct Probe(Rc<Cell<bool>>);

    impl Zeroize for Probe {
        fn zeroize(&mut self) {
            self.0.set(true);
        }
    }

    #[test]
    fn a_secret_is_wiped_when_it_is_dropped() {
        let wiped = Rc::new(Cell::new(false));
        let secret = Secret::new(Probe(Rc::clone(&wiped)));
        assert!(!wiped.get());
        drop(secret);
        assert!(wiped.get());
    }
}
