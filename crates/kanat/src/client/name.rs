//! Things by the names that people know them by: commands take an id or a name, the API takes ids.

use anyhow::Result;
use kanat_model::nearest;

use super::Client;
use crate::exit::failure;
use crate::output::Json;

/// Number of environments that are searched for a name.
const MAX_SEARCHED: usize = 16;

/// Number of letters from which on a text is taken for the beginning of a name.
const MIN_SHORT: usize = 3;

/// A kind of thing that has names.
pub struct Noun {
    /// In words.
    pub name: &'static str,
    /// The path of its list.
    pub path: &'static str,
    /// Beginning of its ids, `_` included.
    pub prefix: &'static str,
    /// Field that holds their names.
    pub field: &'static str,
    /// The command that lists them.
    pub list: &'static str,
}

pub const FLOW: Noun = Noun {
    name: "flow",
    path: "/flows",
    prefix: "flw_",
    field: "name",
    list: "kanat flow list",
};
pub const TABLE: Noun = Noun {
    name: "lookup table",
    path: "/lookup-tables",
    prefix: "lt_",
    field: "name",
    list: "kanat lookup list",
};
pub const API: Noun = Noun {
    name: "published API",
    path: "/published-apis",
    prefix: "api_",
    field: "name",
    list: "kanat api list",
};
pub const ADAPTER: Noun = Noun {
    name: "adapter",
    path: "/adapters",
    prefix: "adp_",
    field: "name",
    list: "kanat adapter list",
};
pub const INSTANCE: Noun = Noun {
    name: "connector instance",
    path: "/connectors/instances",
    prefix: "ci_",
    field: "name",
    list: "kanat connector list",
};

pub const ENVIRONMENT: Noun = Noun {
    name: "environment",
    path: "/environments",
    prefix: "env_",
    field: "name",
    list: "kanat environment list",
};
pub const POLICY: Noun = Noun {
    name: "policy",
    path: "/governance/policies",
    prefix: "pol_",
    field: "name",
    list: "kanat policy list",
};

pub const MEMBER: Noun = Noun {
    name: "member",
    path: "/members",
    prefix: "mem_",
    field: EMAIL,
    list: "kanat member list",
};

/// Field of names in which the case of letters does not matter.
const EMAIL: &str = "email";

impl Noun {
    /// Returns the name of a thing.
    pub fn name_of(&self, item: &Json) -> String {
        item.text(self.field)
    }

    fn is_called(&self, item: &Json, name: &str) -> bool {
        match self.field {
            EMAIL => self.name_of(item).eq_ignore_ascii_case(name),
            _ => self.name_of(item) == name,
        }
    }

    /// Returns the path of the thing with this id.
    pub fn at(&self, id: &str) -> String {
        format!("{}/{}", self.path, segment(id))
    }
}

impl Client {
    /// The id of the thing that `text` names.
    pub async fn id(&self, noun: &Noun, text: &str) -> Result<String> {
        if let Some(id) = self.find(noun, text).await? {
            return Ok(id);
        }
        let noun_name = noun.name;
        if let Some(environment) = self.elsewhere(noun, text).await {
            return Err(failure(format!(
                "no {noun_name} is called {text:?} in this environment, but environment \
                 {environment:?} has one: give --env\n`{}` shows those there are",
                noun.list
            )));
        }
        let near = self.near(noun, text).await;
        Err(failure(format!(
            "no {noun_name} is called {text:?}{near}\n`{}` shows those there are",
            noun.list
        )))
    }

    /// The id of the thing that is named; none where none is.
    pub async fn id_of(&self, noun: &Noun, text: Option<&str>) -> Result<Option<String>> {
        match text {
            Some(text) => self.id(noun, text).await.map(Some),
            None => Ok(None),
        }
    }

    /// The name of the first other environment that has a thing of this name; none where the others
    /// cannot be asked.
    async fn elsewhere(&self, noun: &Noun, text: &str) -> Option<String> {
        if noun.path == ENVIRONMENT.path {
            return None;
        }
        let environments = self.all(ENVIRONMENT.path, &[]).await.ok()?;
        for environment in environments.iter().take(MAX_SEARCHED) {
            let there = self.in_environment(environment.text("id"));
            if let Ok(Some(_)) = there.find(noun, text).await {
                return Some(environment.text("name"));
            }
        }
        None
    }

    /// The nearest name, as a question; nothing when no name is near, or the names cannot be had.
    pub async fn near(&self, noun: &Noun, text: &str) -> String {
        let items = self.all(noun.path, &[]).await.unwrap_or_default();
        let names: Vec<String> = items.iter().map(|item| noun.name_of(item)).collect();
        suggestion(text, &names)
    }

    /// The id of the thing that `text` names, if it exists; an id is taken as it is.
    pub async fn find(&self, noun: &Noun, text: &str) -> Result<Option<String>> {
        if text.starts_with(noun.prefix) {
            return Ok(Some(text.to_owned()));
        }
        let items = self.all(noun.path, &[("search", text.to_owned())]).await?;
        let found = items.iter().find(|item| noun.is_called(item, text));
        Ok(found.map(|item| item.text("id")))
    }

    /// The path of the thing that `text` names.
    pub async fn path(&self, noun: &Noun, text: &str) -> Result<String> {
        Ok(noun.at(&self.id(noun, text).await?))
    }
}

/// Returns the known name that was probably meant, as a question: a near one, one of which a word
/// is meant, such as `GET /ping` by `ping`, or one that is cut short, such as `production` by
/// `prod`.
fn suggestion(text: &str, names: &[String]) -> String {
    let names = || names.iter().map(String::as_str);
    let near = nearest::suggestion(text, names());
    let is_word = |name: &&str| name.split([' ', '/']).any(|word| word == text);
    let is_short = |name: &&str| text.len() >= MIN_SHORT && name.starts_with(text);
    match names().find(is_word).or_else(|| names().find(is_short)) {
        Some(name) if near.is_empty() => format!("; did you mean {name:?}"),
        Some(_) | None => near,
    }
}

/// `text` as one segment of a path.
pub fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_several_words_is_found_by_one_of_them() {
        let names = ["GET /ping", "orders", "POST /orders/new"].map(str::to_owned);
        assert_eq!(suggestion("ping", &names), r#"; did you mean "GET /ping""#);
        assert_eq!(suggestion("orders2", &names), r#"; did you mean "orders""#);
        assert_eq!(suggestion("none", &names), "");
        assert_eq!(suggestion("ord", &names), r#"; did you mean "orders""#);
        assert_eq!(suggestion("or", &names), "");
    }

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(segment("DE/..?ü"), "DE%2F..%3F%C3%BC");
    }
}
