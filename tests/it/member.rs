//! Members: people who log in by an identity provider. Each test runs on SQLite, and on PostgreSQL
//! behind two control planes.

mod accept;
mod first_day;
mod invite;
mod list;
mod mail;
mod organization;
mod owners;
mod remove;
mod roles;
mod token;
mod update;

use kanat_tests::rest::text;
use serde_json::Value;

pub use organization::Organization;

const MEMBERS: &str = "/api/v1/members";

fn path_of(member: &Value) -> String {
    format!("{MEMBERS}/{}", text(&member["id"]))
}

/// Returns the token in the link of an invitation.
fn token_of(invitation: &Value) -> String {
    let url = text(&invitation["inviteUrl"]);
    let (_, token) = url.split_once("/api/v1/invite#token=").unwrap();
    token.to_owned()
}
