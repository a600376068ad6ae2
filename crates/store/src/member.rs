//! Members of an account: people, with their roles and invitations.

use kanat_model::Timestamp;
use kanat_model::audit::PrincipalType;
use kanat_model::id::{AccountId, MemberId};
use kanat_model::member::Status;

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::{lists, statements};
use crate::{Db, Error, Result};

record! {
    pub struct Member in "member" {
        pub id: MemberId,
        pub account_id: AccountId,
        /// Address that was invited, or that the issuer has verified.
        pub email: Option<String>,
        /// The address by which it is found: of several that differ in case there is one.
        pub normalized_email: Option<String>,
        pub name: String,
        /// A role's text.
        pub role: String,
        /// Issuer of the person's tokens; `None` of one who is invited.
        pub issuer: Option<String>,
        /// Subject of the person's tokens.
        pub subject: Option<String>,
        /// SHA-256 of the token of the invitation, until it is used.
        pub invite_sha256: Option<[u8; 32]>,
        pub invite_expires_at: Option<Timestamp>,
        /// Caller who has invited: kind, id and name. Nobody invites people whose roles an issuer
        /// gives.
        pub invited_by_type: Option<PrincipalType>,
        pub invited_by_id: Option<String>,
        pub invited_by_name: Option<String>,
        pub invited_at: Option<Timestamp>,
        pub joined_at: Option<Timestamp>,
        pub last_seen_at: Option<Timestamp>,
        /// Grows with every change of the row, but for `last_seen_at`.
        pub revision: u64,
    }
}

impl Member {
    pub fn status(&self) -> Status {
        if self.issuer.is_some() {
            Status::Active
        } else {
            Status::Invited
        }
    }

    /// Returns the kind, id and name of who has invited.
    pub fn inviter(&self) -> Option<(PrincipalType, &str, &str)> {
        let name = self.invited_by_name.as_deref().unwrap_or_default();
        Some((self.invited_by_type?, self.invited_by_id.as_deref()?, name))
    }

    /// Returns the name, or the address of one whose name is not known.
    pub fn title(&self) -> &str {
        match &self.email {
            Some(email) if self.name.is_empty() => email,
            Some(_) | None => &self.name,
        }
    }
}

/// Returns an address as it is compared: without regard to case. A letter that is no other letter's
/// upper case stays as it is, so that no two addresses look alike to this alone: the Kelvin sign,
/// whose lower case is `k`, is not the upper case of `k`.
pub fn normalized(email: &str) -> String {
    email.chars().map(lower_case).collect()
}

fn lower_case(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) if lower.to_uppercase().eq([letter]) => lower,
        _ => letter,
    }
}

/// Errors when the account has a member of that address.
pub async fn insert(db: &mut Db, member: &Member) -> Result<()> {
    db.insert(member)
        .await
        .map_err(Error::taken("member", member.title()))
}

statements! {
    fn get(account: &AccountId, id: &MemberId) -> Option<Member> =
        "SELECT {COLUMNS} FROM member WHERE account_id = $1 AND id = $2";

    /// Returns the member whose tokens have this issuer and this subject.
    fn by_identity(account: &AccountId, issuer: &str, subject: &str) -> Option<Member> =
        "SELECT {COLUMNS} FROM member WHERE account_id = $1 AND issuer = $2 AND subject = $3";

    /// Returns the member of a [`normalized`] address.
    fn by_email(account: &AccountId, normalized_email: &str) -> Option<Member> =
        "SELECT {COLUMNS} FROM member WHERE account_id = $1 AND normalized_email = $2";

    /// Returns the member whose invitation has a token of this hash.
    fn by_invitation(account: &AccountId, sha256: &[u8; 32]) -> Option<Member> =
        "SELECT {COLUMNS} FROM member WHERE account_id = $1 AND invite_sha256 = $2";

    /// Returns the number of active owners other than the member of this id.
    fn other_owners(account: &AccountId, id: &str) -> u64 =
        "SELECT COUNT(*) AS total FROM member WHERE account_id = $1 AND id <> $2 AND role = \
         'owner' AND issuer IS NOT NULL";

    fn delete(account: &AccountId, id: &MemberId) -> bool =
        "DELETE FROM member WHERE account_id = $1 AND id = $2";

    fn seen(id: &MemberId, at: Timestamp) =
        "UPDATE member SET last_seen_at = $2 WHERE id = $1";
}

lists! {
    /// The account's members, newest first; `search` is looked for in name and address.
    fn list(account: &AccountId; search) -> Member =
        "FROM member WHERE account_id = $1 AND ($2 = '' OR name GLOB $2 OR COALESCE(email, '') \
         GLOB $2)",
        "ORDER BY id DESC LIMIT $3 OFFSET $4";
}

const UPDATE: &str = sql!(
    Member,
    "UPDATE member SET email = {email}, normalized_email = {normalized_email}, name = {name}, role \
     = {role}, issuer = {issuer}, subject = {subject}, invite_sha256 = {invite_sha256}, \
     invite_expires_at = {invite_expires_at}, joined_at = {joined_at}, last_seen_at = \
     {last_seen_at}, revision = revision + 1 WHERE account_id = {account_id} AND id = {id} AND \
     revision = {revision}"
);

/// Writes a member as its next revision. Errors when the row is no longer at `member.revision`, and
/// when another member has the address.
pub async fn update(db: &mut Db, member: &mut Member) -> Result<()> {
    let done = db
        .execute(UPDATE, &member.values())
        .await
        .map_err(Error::taken("member", member.title()))?;
    Error::check_changed(done, "member", &member.id)?;
    member.revision += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_differ_in_case_are_one_and_those_that_look_alike_are_not() {
        assert_eq!(normalized("Ada@EXAMPLE.com"), "ada@example.com");
        assert_eq!(normalized("ÄDA@Example.com"), normalized("äda@example.com"));
        for other in [
            "\u{212a}ate@example.com",
            "kate@example.com.",
            "kate+a@example.com",
        ] {
            assert_ne!(normalized(other), "kate@example.com", "{other}");
        }
        assert_ne!(
            normalized("\u{212b}sa@a.example"),
            normalized("åsa@a.example")
        );
        assert_ne!(
            normalized("\u{130}da@a.example"),
            normalized("ida@a.example")
        );
    }
}
