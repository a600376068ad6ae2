//! Use-cases of members: invitations, roles, and the people whom tokens of identity providers are
//! about.

use std::time::Duration;

use kanat_auth::{Role, key, random_token};
use kanat_mail::Mail;
use kanat_model::id::{AccountId, MemberId};
use kanat_model::member::{Status, check_other_owners};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, Result, Secret, Timestamp};
use kanat_store::member::{self, Member, normalized};
use kanat_store::{Db, account};

use crate::app::audit::{self, Action, Audited};
use crate::app::{App, Call, Caller, Credential, resource};
use crate::identity::{ClaimedRole, Identity};

resource!(
    "member",
    MemberId,
    Member,
    member::get,
    account_id,
    revision
);

/// Time for which an invitation is good.
const INVITATION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Longest address of RFC 5321, in bytes.
const MAX_EMAIL_BYTES: usize = 254;

/// A member who was invited, and the invitation.
pub struct Invitation {
    pub member: Member,
    /// The link; `None` where this very call made the invitation before a crash.
    pub url: Option<Secret<String>>,
    /// True where a mail server has taken the mail with the link.
    pub is_sent: bool,
}

/// Invites a person.
pub async fn invite(call: &Call, email: &str, role: &str) -> Result<Invitation> {
    call.caller.refuse_if_bound()?;
    let role = grantable(&call.caller, role)?;
    let email = check_email(email)?;
    let now = Timestamp::now();
    let token = Secret::new(random_token());
    let inviter = call.caller.principal();
    let invited = Member {
        id: MemberId::generate(),
        account_id: call.caller.account_id.clone(),
        normalized_email: Some(normalized(&email)),
        email: Some(email),
        name: String::new(),
        role: role.as_str().to_owned(),
        issuer: None,
        subject: None,
        invite_sha256: Some(key::sha256(token.expose())),
        invite_expires_at: Some(now.after(INVITATION)),
        invited_by_type: Some(inviter.kind),
        invited_by_id: Some(inviter.id),
        invited_by_name: Some(inviter.name),
        invited_at: Some(now),
        joined_at: None,
        last_seen_at: None,
        revision: 1,
    };
    let mut tx = call.write().await?;
    if let Some(member) = call.made::<MemberId>(&mut tx).await? {
        return Ok(Invitation {
            member,
            url: None,
            is_sent: false,
        });
    }
    member::insert(&mut tx, &invited).await?;
    call.caller
        .record_idempotent_result(&mut tx, &invited.id)
        .await?;
    audit::created(call, &mut tx, &invited).await?;
    tx.commit().await?;
    Ok(send(&call.app, invited, &token).await)
}

/// Invites a person anew, with another link. The former link ends.
pub async fn resend(call: &Call, id: &MemberId) -> Result<Invitation> {
    call.caller.refuse_if_bound()?;
    let token = Secret::new(random_token());
    let mut tx = call.write().await?;
    account::lock(&mut tx, &call.caller.account_id).await?;
    let (before, is_repeat) = call.load_for_change(&mut tx, id).await?;
    if is_repeat {
        return Ok(Invitation {
            member: before,
            url: None,
            is_sent: false,
        });
    }
    check_grantable(&call.caller, &before)?;
    if before.status() == Status::Active {
        return Err(Error::precondition(
            "the member is active: nobody is to be invited",
        ));
    }
    let mut after = before.clone();
    after.invite_sha256 = Some(key::sha256(token.expose()));
    after.invite_expires_at = Some(Timestamp::now().after(INVITATION));
    member::update(&mut tx, &mut after).await?;
    audit::updated(call, &mut tx, &before, &after).await?;
    tx.commit().await?;
    Ok(send(&call.app, after, &token).await)
}

/// The account's members, newest first.
pub async fn list(call: &Call, search: &str, page: Page) -> Result<ListPage<Member>> {
    let mut tx = call.read().await?;
    Ok(member::list(&mut tx, &call.caller.account_id, search, page).await?)
}

/// Changes the role of a member, if one is given.
pub async fn update(call: &Call, id: &MemberId, role: Option<&str>) -> Result<Member> {
    call.caller.refuse_if_bound()?;
    let role = role.map(|role| grantable(&call.caller, role)).transpose()?;
    let mut tx = call.write().await?;
    account::lock(&mut tx, &call.caller.account_id).await?;
    let (before, is_repeat) = call.load_for_change(&mut tx, id).await?;
    if is_repeat {
        return Ok(before);
    }
    check_grantable(&call.caller, &before)?;
    let mut after = before.clone();
    if let Some(role) = role.filter(|role| role.as_str() != before.role) {
        if let Some(issuer) = &before.issuer
            && call.app.identities.gives_roles(issuer)
        {
            return Err(Error::field(
                "role",
                format!("the roles of people of {issuer} come from their tokens: change it there"),
            ));
        }
        refuse_last_owner(&mut tx, &before).await?;
        role.as_str().clone_into(&mut after.role);
        member::update(&mut tx, &mut after).await?;
    }
    audit::updated(call, &mut tx, &before, &after).await?;
    tx.commit().await?;
    Ok(after)
}

/// Removes a member, or takes an invitation back.
pub async fn remove(call: &Call, id: &MemberId) -> Result<()> {
    call.caller.refuse_if_bound()?;
    let mut tx = call.write().await?;
    account::lock(&mut tx, &call.caller.account_id).await?;
    let Some(found) = call.load_for_change_unless_repeated(&mut tx, id).await? else {
        return Ok(());
    };
    check_grantable(&call.caller, &found)?;
    refuse_last_owner(&mut tx, &found).await?;
    member::delete(&mut tx, &call.caller.account_id, id).await?;
    audit::deleted(call, &mut tx, &found).await?;
    Ok(tx.commit().await?)
}

/// Accepts an invitation as the person of the caller's token.
///
/// # Errors
/// The caller has no token of an identity provider, or one of another address; the token of the
/// invitation is not known, was used or has expired.
pub async fn accept(mut call: Call, token: &str) -> Result<Member> {
    let Credential::Person(person) = call.caller.credential.clone() else {
        return Err(accepted_by_people());
    };
    refuse_without_role(&person)?;
    let account = call.caller.account_id.clone();
    let now = Timestamp::now();
    let mut tx = call.write().await?;
    account::lock(&mut tx, &account).await?;
    if let Some(made) = call.made::<MemberId>(&mut tx).await? {
        return Ok(made);
    }
    let found = member::by_invitation(&mut tx, &account, &key::sha256(token)).await?;
    let before = found.filter(|found| is_invited(found, now));
    let before = before.ok_or_else(|| {
        Error::field(
            "token",
            "the invitation is not known, was used or has expired: ask for another one",
        )
    })?;
    let is_same = |member: &Member| {
        let identity = (member.issuer.as_deref(), member.subject.as_deref());
        identity == (Some(&person.issuer), Some(&person.subject))
    };
    let is_meant = person.email.as_deref().map(normalized) == before.normalized_email;
    if !is_meant || (before.status() == Status::Active && !is_same(&before)) {
        return Err(Error::new(
            Code::PermissionDenied,
            "the invitation is for another e-mail address than the verified one of this token",
        ));
    }
    let other = member::by_identity(&mut tx, &account, &person.issuer, &person.subject).await?;
    if other.is_some_and(|other| other.id != before.id) {
        return Err(Error::precondition(
            "the person of this token is a member already, by another address",
        ));
    }
    let mut after = before.clone();
    after.invite_sha256 = None;
    after.invite_expires_at = None;
    join(&mut after, &person, now);
    member::update(&mut tx, &mut after).await?;
    call.caller
        .record_idempotent_result(&mut tx, &after.id)
        .await?;
    call.caller.credential = Credential::Member(after.id.clone());
    call.caller.role = Role::parse(&after.role).unwrap_or(Role::Viewer);
    after.title().clone_into(&mut call.caller.name);
    audit::updated(&call, &mut tx, &before, &after).await?;
    tx.commit().await?;
    Ok(after)
}

/// Returns the member of a verified token, with the role of this call. On first use, accepts the
/// invitation of the token's verified address, or creates a member if the issuer gives roles. Also
/// stores a changed name or role.
///
/// # Errors
/// [`Code::PermissionDenied`] when the person is no member, or lacks a role that the issuer gives.
pub async fn provision_member(app: &App, account: &AccountId, person: &Identity) -> Result<Member> {
    refuse_without_role(person)?;
    let now = Timestamp::now();
    let found = find(&mut *app.store.read().await?, account, person, now).await?;
    let wants_change = match (&found, person.role) {
        (Some(found), _) => is_outdated(found, person),
        (None, ClaimedRole::Given(_)) => true,
        (None, _) => {
            let message = "you are not a member: ask an admin for an invitation";
            return Err(Error::new(Code::PermissionDenied, message));
        }
    };
    if let Some(found) = found.clone().filter(|_| !wants_change) {
        return Ok(found);
    }
    let mut tx = app.store.begin().await?;
    account::lock(&mut tx, account).await?;
    let (verb, before, after) = match find(&mut tx, account, person, now).await? {
        Some(before) if is_outdated(&before, person) => {
            let mut after = before.clone();
            join(&mut after, person, now);
            member::update(&mut tx, &mut after).await?;
            let verb = match before.status() {
                Status::Invited => "accept",
                Status::Active => "update",
            };
            (verb, Some(before.state(app)?), after)
        }
        Some(found) => return Ok(found),
        None => ("create", None, create(&mut tx, account, person, now).await?),
    };
    let action = Action::new("member", verb);
    let state = after.state(app)?;
    let entity = after.entity();
    audit::changed_by_system(&mut tx, account, action, entity, before, Some(state)).await?;
    tx.commit().await?;
    Ok(after)
}

/// Errors when no member is an active owner: the account's last owner key stays then.
pub async fn refuse_last_owner_key(db: &mut Db, account: &AccountId) -> Result<()> {
    if member::other_owners(db, account, "").await? > 0 {
        return Ok(());
    }
    Err(Error::precondition(
        "the account's last owner key cannot be revoked while no member is an owner: make another \
         one first",
    ))
}

async fn refuse_last_owner(db: &mut Db, member: &Member) -> Result<()> {
    let is_owner = member.role == Role::Owner.as_str() && member.status() == Status::Active;
    if !is_owner {
        return Ok(());
    }
    check_other_owners(member::other_owners(db, &member.account_id, member.id.as_str()).await?)
}

/// Errors when the issuer gives roles, and none to this person.
fn refuse_without_role(person: &Identity) -> Result<()> {
    match person.role {
        ClaimedRole::Missing => Err(Error::new(
            Code::PermissionDenied,
            "the token has no role of this service: ask its issuer",
        )),
        ClaimedRole::NotAsked | ClaimedRole::Given(_) => Ok(()),
    }
}

/// Returns the member of a person, else the one whose invitation has the person's address.
async fn find(
    db: &mut Db,
    account: &AccountId,
    person: &Identity,
    now: Timestamp,
) -> Result<Option<Member>> {
    let found = member::by_identity(db, account, &person.issuer, &person.subject).await?;
    if found.is_some() {
        return Ok(found);
    }
    let Some(email) = &person.email else {
        return Ok(None);
    };
    let invited = member::by_email(db, account, &normalized(email)).await?;
    // Where the issuer gives the role, it also makes members who are not invited any more.
    let is_let_in = |found: &Member| match person.role {
        ClaimedRole::Given(_) => true,
        ClaimedRole::NotAsked | ClaimedRole::Missing => is_invited(found, now),
    };
    Ok(invited.filter(|found| found.status() == Status::Invited && is_let_in(found)))
}

/// Makes the member of a person whose role comes from the issuer.
async fn create(
    db: &mut Db,
    account: &AccountId,
    person: &Identity,
    now: Timestamp,
) -> Result<Member> {
    let mut made = Member {
        id: MemberId::generate(),
        account_id: account.clone(),
        email: person.email.clone(),
        normalized_email: person.email.as_deref().map(normalized),
        name: String::new(),
        role: String::new(),
        issuer: None,
        subject: None,
        invite_sha256: None,
        invite_expires_at: None,
        invited_by_type: None,
        invited_by_id: None,
        invited_by_name: None,
        invited_at: None,
        joined_at: None,
        last_seen_at: None,
        revision: 1,
    };
    if let Some(address) = &made.normalized_email
        && member::by_email(db, account, address).await?.is_some()
    {
        return Err(Error::new(
            Code::PermissionDenied,
            "the e-mail address of this token belongs to another member",
        ));
    }
    join(&mut made, person, now);
    member::insert(db, &made).await?;
    Ok(made)
}

/// Makes the member the person's, with what the token says.
fn join(member: &mut Member, person: &Identity, now: Timestamp) {
    member.issuer = Some(person.issuer.clone());
    member.subject = Some(person.subject.clone());
    member.joined_at.get_or_insert(now);
    if !person.name.is_empty() {
        member.name.clone_from(&person.name);
    }
    if let ClaimedRole::Given(role) = person.role {
        role.as_str().clone_into(&mut member.role);
    }
}

/// Returns whether a token says something else of its member than the row does.
fn is_outdated(member: &Member, person: &Identity) -> bool {
    let has_other_role = match person.role {
        ClaimedRole::Given(role) => role.as_str() != member.role,
        ClaimedRole::NotAsked | ClaimedRole::Missing => false,
    };
    let has_other_name = !person.name.is_empty() && person.name != member.name;
    member.status() == Status::Invited || has_other_role || has_other_name
}

fn is_invited(member: &Member, now: Timestamp) -> bool {
    member.invite_expires_at.is_some_and(|end| now < end)
}

/// Sends the link of an invitation.
async fn send(app: &App, member: Member, token: &Secret<String>) -> Invitation {
    let base = app.api_url.base();
    let url = format!("{base}/api/v1/invite#token={}", token.expose());
    let is_sent = match (&app.mailer, &member.email) {
        (Some(mailer), Some(email)) => {
            let mail = Mail {
                to: email.clone(),
                subject: "You are invited to Kanat".to_owned(),
                text: mail_text(base, &url, &member.role),
            };
            let sent = mailer.send(mail).await;
            if let Err(error) = &sent {
                tracing::warn!(member.id = %member.id, %error, "an invitation was not sent");
            }
            sent.is_ok()
        }
        _ => false,
    };
    Invitation {
        member,
        url: Some(Secret::new(url)),
        is_sent,
    }
}

fn mail_text(base: &str, url: &str, role: &str) -> String {
    format!(
        "You are invited to the Kanat service at {base}, with the role {role}.\n\nLog in, and \
         accept the invitation within seven days:\n\nkanat login --oidc --url {base}\nkanat \
         member accept '{url}'\n\nThe link is good once. If you did not expect it, do nothing.\n"
    )
}

fn check_email(email: &str) -> Result<String> {
    let email = email.trim();
    let is_address = email.split_once('@').is_some_and(|(name, domain)| {
        let mut labels = domain.split('.');
        !name.is_empty() && labels.all(|label| !label.is_empty() && !label.contains('@'))
    });
    let is_readable = email.chars().all(is_of_address);
    if !is_address || !is_readable || email.len() > MAX_EMAIL_BYTES {
        let message = format!("{email:?} is no e-mail address of at most {MAX_EMAIL_BYTES} bytes");
        return Err(Error::field("email", message));
    }
    Ok(email.to_owned())
}

/// Returns whether an address may have a character: none that separates addresses, quotes them, or
/// does not show.
fn is_of_address(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    );
    let is_special = "<>()[],;:\\\"".contains(c);
    !is_invisible && !is_special && !c.is_whitespace() && !c.is_control()
}

/// Returns the role, if the caller may grant it.
fn grantable(caller: &Caller, text: &str) -> Result<Role> {
    let role = Role::parse(text).ok_or_else(|| {
        Error::field(
            "role",
            format!("{text:?} is no role: owner, admin, editor or viewer"),
        )
    })?;
    check_role(caller, role)?;
    Ok(role)
}

/// Errors when the member has a role that the caller cannot grant.
fn check_grantable(caller: &Caller, member: &Member) -> Result<()> {
    check_role(caller, Role::parse(&member.role).unwrap_or(Role::Owner))
}

fn check_role(caller: &Caller, role: Role) -> Result<()> {
    if caller.role.may_grant(role) {
        return Ok(());
    }
    let message = format!(
        "a {} of role {} has no say about the role {role}",
        caller.noun(),
        caller.role
    );
    Err(Error::new(Code::PermissionDenied, message))
}

/// Returns the refusal of a caller without a token of an identity provider.
pub fn accepted_by_people() -> Error {
    Error::new(
        Code::PermissionDenied,
        "an invitation is accepted with the token of an identity provider: kanat login --oidc",
    )
}

#[cfg(test)]
mod tests;
