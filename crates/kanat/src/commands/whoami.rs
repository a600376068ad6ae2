//! `kanat whoami`: the service that commands speak to, and as whom.

use anyhow::Result;

use super::Session;
use crate::output::table;

/// Arguments of `kanat whoami`.
#[derive(clap::Args)]
pub struct Whoami {}

const FIELDS: &str = "API key:name,Role:role,Account:account.name,Environment:environment.name,\
                      Id:id";
const FIELDS_OF_USER: &str = "User:name,E-mail:email,Role:role,Account:account.name,\
                              Environment:environment.name,Id:id";

impl Whoami {
    pub async fn run(self, session: &Session) -> Result<()> {
        let url = session.client.url();
        session
            .show("/me", |me| {
                let fields = match me.text("type").as_str() {
                    "user" => FIELDS_OF_USER,
                    _ => FIELDS,
                };
                format!("Service:      {url}\n{}", table::fields(me, fields))
            })
            .await
    }
}
