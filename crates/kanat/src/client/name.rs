//! Things by the names that people know them by: commands take an id or a name, the API takes ids.

use anyhow::Result;
use kanat_model::nearest;

use super::Client;
use crate::exit::failure;

/// A kind of thing that has names.
pub struct Noun {
    /// In words.
    pub name: &'static str,
    /// The path of its list.
    pub path: &'static str,
    /// Beginning of its ids, `_` included.
    pub prefix: &'static str,
    /// The command that lists them.
    pub list: &'static str,
}

pub const FLOW: Noun = Noun {
    name: "flow",
    path: "/flows",
    prefix: "flw_",
    list: "kanat flow list",
};
pub const TABLE: Noun = Noun {
    name: "lookup table",
    path: "/lookup-tables",
    prefix: "lt_",
    list: "kanat lookup list",
};
pub const API: Noun = Noun {
    name: "published API",
    path: "/published-apis",
    prefix: "api_",
    list: "kanat api list",
};
pub const ADAPTER: Noun = Noun {
    name: "adapter",
    path: "/adapters",
    prefix: "adp_",
    list: "kanat adapter list",
};
pub const INSTANCE: Noun = Noun {
    name: "connector instance",
    path: "/connectors/instances",
    prefix: "ci_",
    list: "kanat connector list",
};

pub const ENVIRONMENT: Noun = Noun {
    name: "environment",
    path: "/environments",
    prefix: "env_",
    list: "kanat environment list",
};
pub const POLICY: Noun = Noun {
    name: "policy",
    path: "/governance/policies",
    prefix: "pol_",
    list: "kanat policy list",
};

impl Client {
    /// The id of the thing that `text` names.
    pub async fn id(&self, noun: &Noun, text: &str) -> Result<String> {
        if let Some(id) = self.find(noun, text).await? {
            return Ok(id);
        }
        let near = self.near(noun, text).await;
        Err(failure(format!(
            "no {} is called {text:?}{near}\n`{}` shows those there are",
            noun.name, noun.list
        )))
    }

    /// The nearest name, as a question; nothing when no name is near, or the names cannot be had.
    async fn near(&self, noun: &Noun, text: &str) -> String {
        let Ok(answer) = self.get(noun.path, &[("limit", "500".to_owned())]).await else {
            return String::new();
        };
        let names: Vec<String> = answer
            .list("data")
            .iter()
            .map(|item| item.text("name"))
            .collect();
        nearest::suggestion(text, names.iter().map(String::as_str))
    }

    /// The id of the thing that `text` names, if it exists; an id is taken as it is.
    pub async fn find(&self, noun: &Noun, text: &str) -> Result<Option<String>> {
        if text.starts_with(noun.prefix) {
            return Ok(Some(text.to_owned()));
        }
        const PAGE: usize = 500;
        let mut offset = 0;
        loop {
            let query = [
                ("search", text.to_owned()),
                ("limit", PAGE.to_string()),
                ("offset", offset.to_string()),
            ];
            let answer = self.get(noun.path, &query).await?;
            let items = answer.list("data");
            if let Some(item) = items.iter().find(|item| item.text("name") == text) {
                return Ok(Some(item.text("id")));
            }
            if items.len() < PAGE {
                return Ok(None);
            }
            offset += PAGE;
        }
    }

    /// The path of the thing that `text` names.
    pub async fn path(&self, noun: &Noun, text: &str) -> Result<String> {
        Ok(format!(
            "{}/{}",
            noun.path,
            segment(&self.id(noun, text).await?)
        ))
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
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(segment("DE/..?ü"), "DE%2F..%3F%C3%BC");
    }
}
