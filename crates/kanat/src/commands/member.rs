//! `kanat member`: the people of the account, who log in by an identity provider.

use anyhow::Result;
use clap::Subcommand;
use kanat_auth::Role;
use kanat_model::member::{Status, check_other_owners};
use serde_json::json;

use super::confirm::Consent;
use super::{Page, Session, api_key};
use crate::client::name::MEMBER;
use crate::client::{Client, Refusal};
use crate::exit::{failure, usage};
use crate::output::{Json, table};

/// Commands for members. A member is named by id or e-mail address.
#[derive(Subcommand)]
pub enum Command {
    /// List the members of the account, invited ones too.
    List {
        /// Only those whose name or address has this text.
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one member.
    Show { member: String },
    /// Invite a person; the link that the person accepts shows here and nowhere else.
    Invite {
        /// E-mail address that the identity provider knows the person by.
        email: String,
        /// `owner`, `admin`, `editor` or `viewer`.
        #[arg(long)]
        role: String,
    },
    /// Make a new link for a person who was invited; the former link ends.
    Resend { member: String },
    /// Give a member another role: `owner`, `admin`, `editor` or `viewer`.
    Role { member: String, role: String },
    /// Remove a member at once; the service refuses the person from then on.
    Remove {
        member: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Accept an invitation to an account, as the person who is logged in.
    Accept {
        /// Link of the invitation, or the token in it.
        link: String,
    },
}

const COLUMNS: &str = "EMAIL:email,NAME:name,ROLE:role,STATUS:status,LAST SEEN:lastSeenAt,ID:id";
const FIELDS: &str = "E-mail:email,Name:name,Role:role,Status:status,Invited by:invitedBy.name,\
                      Invited:invitedAt,Joined:joinedAt,Last seen:lastSeenAt,Id:id";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::List { search, page } => {
                let query = page.with([("search", search)]);
                session.list(MEMBER.path, query, COLUMNS).await
            }
            Self::Show { member } => {
                let path = client.path(&MEMBER, &member).await?;
                let fields = |member: &Json| table::fields(member, FIELDS);
                session.show(&path, fields).await
            }
            Self::Invite { email, role } => {
                let body = json!({ "email": email, "role": role });
                invite(session, MEMBER.path, &body).await
            }
            Self::Resend { member } => {
                let path = client.path(&MEMBER, &member).await?;
                invite(session, &format!("{path}/resend"), &json!({})).await
            }
            Self::Role { member, role } => {
                let path = client.path(&MEMBER, &member).await?;
                let answer = client.put(&path, &json!({ "role": role })).await?;
                session.print(&answer, |member| {
                    format!("{} is {}", title(member), member.text("role"))
                })
            }
            Self::Remove { member, consent } => {
                let path = client.path(&MEMBER, &member).await?;
                let found = client.get(&path, &[]).await?;
                if consent.is_dry_run() {
                    refuse_last_owner(client, &found).await?;
                }
                let keys = api_key::made_by(client, &found.text("id")).await?;
                consent.ask(&format!(
                    "member {member} {} be removed at once; the service refuses the person from \
                     then on{}",
                    consent.will(),
                    match keys.is_empty() {
                        true => "",
                        false => ", but not the API keys that the person has made",
                    }
                ))?;
                client.delete(&path).await?;
                session.done(&format!("member {member} is removed"))?;
                for key in keys {
                    session.hint(&format!(
                        "API key {:?} ({}), which the person has made, goes on: `kanat api-key \
                         revoke {}` ends it",
                        key.text("name"),
                        key.text("role"),
                        key.text("id")
                    ));
                }
                Ok(())
            }
            Self::Accept { link } => accept(session, &link).await,
        }
    }
}

/// Errors when the service would refuse to remove a member, as the last owner of the account.
async fn refuse_last_owner(client: &Client, member: &Json) -> Result<()> {
    let is_owner = |member: &Json| {
        member.text("role") == Role::Owner.as_str()
            && member.text("status") == Status::Active.as_str()
    };
    if !is_owner(member) {
        return Ok(());
    }
    let id = member.text("id");
    let members = client.all(MEMBER.path, &[]).await?;
    let others = members.iter().filter(|other| other.text("id") != id);
    let count = others.filter(|other| is_owner(other)).count();
    check_other_owners(count as u64).map_err(|error| Refusal::of(&error))?;
    Ok(())
}

/// Invites a person, and prints the link alone on standard output, so that a shell can take it.
async fn invite(session: &Session, path: &str, body: &serde_json::Value) -> Result<()> {
    let answer = session.post(path, body, |answer| answer.text("inviteUrl"));
    let answer = answer.await?;
    let email = answer.text("email");
    if !answer.has("inviteUrl") {
        session.hint(&format!(
            "{email} was invited before, and the link was shown then: `kanat member resend \
             {email}` makes a new one"
        ));
    } else if answer.text("inviteSent") == "true" {
        session.hint(&format!(
            "the link was sent to {email}; it does not show again"
        ));
    } else {
        session.hint(&format!(
            "no mail was sent: hand the link to {email} now, because it does not show again"
        ));
    }
    Ok(())
}

async fn accept(session: &Session, link: &str) -> Result<()> {
    let token = token(link)?;
    if !session.client.is_of_person() {
        return Err(failure(
            "an invitation is accepted by the person who is invited: log in first, `kanat login \
             --oidc`, and give no --api-key or KANAT_API_KEY",
        ));
    }
    let body = json!({ "token": token });
    let accepted = session.post("/members/accept", &body, |member| {
        format!("{} is {} now", title(member), member.text("role"))
    });
    let accepted = accepted.await;
    let url = session.client.url();
    match service_of(link).filter(|service| accepted.is_err() && *service != url) {
        Some(service) => session.hint(&format!(
            "the link is of {service}, and {url} was asked: if these are two services, `kanat \
             login --oidc --url {service}` goes to the other one"
        )),
        None if accepted.is_ok() => session.hint("`kanat whoami` shows the account"),
        None => {}
    }
    accepted.map(drop)
}

/// Returns the address of the service that has made a link.
fn service_of(link: &str) -> Option<&str> {
    let (service, _) = link.trim().split_once("/api/v1/invite")?;
    Some(service)
}

/// Returns the address of a member; the name of one who has none.
fn title(member: &Json) -> String {
    match member.has("email") {
        true => member.text("email"),
        false => member.text("name"),
    }
}

/// Returns the token of a link, or a token that is given alone.
fn token(link: &str) -> Result<&str> {
    let link = link.trim();
    let token = match link.split_once('#') {
        Some((_, fragment)) => {
            let mut parameters = fragment.split('&');
            parameters.find_map(|parameter| parameter.strip_prefix("token="))
        }
        None if link.contains(['/', ':', ' ']) => None,
        None => Some(link.strip_prefix("token=").unwrap_or(link)),
    };
    token.filter(|token| !token.is_empty()).ok_or_else(|| {
        usage(
            "this is no link of an invitation, which ends with #token=...: quote it, so that the \
             shell takes all of it",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_given_by_its_link_or_alone() {
        for (link, expected) in [
            ("https://kanat.example/api/v1/invite#token=a_B-1", "a_B-1"),
            ("http://127.0.0.1:8080/api/v1/invite#token=a_B-1 ", "a_B-1"),
            ("https://kanat.example/x/api/v1/invite#lang=en&token=a", "a"),
            ("token=a", "a"),
            ("a_B-1", "a_B-1"),
        ] {
            assert_eq!(token(link).unwrap(), expected, "{link}");
        }
        for other in [
            "https://kanat.example/api/v1/invite",
            "https://kanat.example/api/v1/invite#",
            "https://kanat.example/api/v1/invite#token=",
            "",
            "a b",
        ] {
            let error = token(other).unwrap_err().to_string();
            assert!(error.contains("#token="), "{other}");
        }
    }
}
