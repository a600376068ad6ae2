//! States of members, and the rule that an account keeps an owner.

use crate::{Error, Result};

texts! {
    /// State of a member.
    pub enum Status {
        /// Nobody has come with the invitation so far.
        Invited = "invited",
        /// The member belongs to a person of an identity provider.
        Active = "active",
    }
}

/// Checks that an owner may leave, or become less, beside a number of other active owners.
///
/// # Errors
/// There is no other owner: each account keeps one.
pub fn check_other_owners(other_owners: u64) -> Result<()> {
    if other_owners > 0 {
        return Ok(());
    }
    Err(Error::precondition(
        "the last owner stays: make another member an owner first",
    ))
}
