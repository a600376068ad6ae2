//! `kanat audit`: the audit log of the account, and whether it is whole.

use anyhow::Result;
use clap::Subcommand;

use super::{Page, Session, query, since};
use crate::client::name::{ENVIRONMENT, MEMBER};
use crate::exit::{failure, usage};
use crate::output::table;

const PATH: &str = "/audit-log";

/// Commands for the audit log.
#[derive(Subcommand)]
pub enum Command {
    /// List entries, newest first.
    List(Box<List>),
    /// Find out whether an entry was changed, removed or added behind the service's back; ends with
    /// 1 if one was.
    Verify {
        /// Head that an earlier verification has shown: a log that has lost its end since is found.
        #[arg(long)]
        head: Option<String>,
    },
}

/// Filters of the list.
#[derive(clap::Args)]
pub struct List {
    /// As in `flow.deploy`.
    #[arg(long)]
    action: Option<String>,
    /// As in `flow`.
    #[arg(long)]
    entity_type: Option<String>,
    /// Id of the entity, as in `flw_...`; a name is none.
    #[arg(long)]
    entity_id: Option<String>,
    /// Id of the caller, or the e-mail address of a member.
    #[arg(long)]
    user_id: Option<String>,
    /// Id or name of an environment.
    #[arg(long)]
    environment_id: Option<String>,
    /// `done` or `denied`.
    #[arg(long)]
    status: Option<String>,
    /// `api`, `cli`, `console`, `mcp` or `system`.
    #[arg(long)]
    via: Option<String>,
    #[arg(long)]
    request_id: Option<String>,
    /// Instant, or a time back such as `1h`.
    #[arg(long, value_parser = since::parse_whole)]
    since: Option<String>,
    /// Instant, or a time back such as `1h`; entries of that moment are left out.
    #[arg(long, value_parser = since::parse_whole)]
    until: Option<String>,
    /// `nextCursor` of the page before, as `-o json` prints it.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    page: Page,
}

const COLUMNS: &str = "AT:at,ACTION:action,NAME:entityName,ENTITY:entityId,\
                       ENVIRONMENT:environmentId,BY:actor.name,VIA:via,STATUS:status,\
                       ADDRESS:address,ID:id";
const FIELDS: &str = "Intact:intact,Broken at:brokenAt,Reason:reason,Entries:entries,From:from,\
                      To:to,Unchained:unchained,Head:head";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::List(list) => list.run(session).await,
            Self::Verify { head } => verify(session, head).await,
        }
    }
}

impl List {
    async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        let environment_id = match &self.environment_id {
            Some(name) => {
                let environment = client.get(&ENVIRONMENT.at(name), &[]).await?;
                Some(environment.text("id"))
            }
            None => None,
        };
        let user_id = match self.user_id {
            Some(user) if user.contains('@') => Some(client.id(&MEMBER, &user).await?),
            Some(user) => Some(check_id("--user-id", user, CALLERS)?),
            None => None,
        };
        let entity_id = self.entity_id;
        let entity_id = entity_id.map(|id| check_id("--entity-id", id, "`kanat audit list`"));
        let query = self.page.with([
            ("action", self.action),
            ("entityType", self.entity_type),
            ("entityId", entity_id.transpose()?),
            ("userId", user_id),
            ("environmentId", environment_id),
            ("status", self.status),
            ("via", self.via),
            ("requestId", self.request_id),
            ("since", self.since),
            ("until", self.until),
            ("cursor", self.cursor),
        ]);
        session.list(PATH, query, COLUMNS).await
    }
}

/// Lists with the ids of those who change things.
const CALLERS: &str = "`kanat member list` and `kanat api-key list`";

/// Errors when a text is no id: the log would be asked for what it cannot have.
fn check_id(flag: &str, text: String, lists: &str) -> Result<String> {
    if text.contains('_') || text == "system" {
        return Ok(text);
    }
    Err(usage(format!(
        "{flag}: {text:?} is no id, such as flw_... or mem_...; see {lists}"
    )))
}

async fn verify(session: &Session, head: Option<String>) -> Result<()> {
    let query = query([("head", head)]);
    let found = session
        .client
        .get(&format!("{PATH}/verify"), &query)
        .await?;
    session.print(&found, |found| table::fields(found, FIELDS))?;
    if found.text("intact") == "true" {
        return Ok(());
    }
    Err(failure(
        "the audit log is not as the service has written it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_id_of_the_log() {
        for id in ["flw_1", "mem_1", "key_1", "system"] {
            assert_eq!(check_id("--user-id", id.to_owned(), "").unwrap(), id);
        }
        let refused = check_id("--user-id", "bob".to_owned(), CALLERS);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("\"bob\" is no id"), "{refused}");
        assert!(refused.contains("`kanat api-key list`"), "{refused}");
    }
}
