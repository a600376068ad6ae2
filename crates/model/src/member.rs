//! States of members.

texts! {
    /// State of a member.
    pub enum Status {
        /// Nobody has come with the invitation so far.
        Invited = "invited",
        /// The member belongs to a person of an identity provider.
        Active = "active",
    }
}
