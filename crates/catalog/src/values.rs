//! The values of a config, with the defaults of its entry.

use serde_json::{Map, Value};
use url::Url;

use crate::base_url;
use crate::entry::Entry;

/// The values of a checked config.
pub(crate) struct Values<'c> {
    pub(crate) entry: &'c Entry,
    pub(crate) values: &'c Map<String, Value>,
}

impl Values<'_> {
    /// A field's text; its default, or the empty text, when it is left out.
    pub(crate) fn text(&self, name: &str) -> &str {
        let default = || {
            self.entry
                .field(name)
                .and_then(|field| field.default.as_deref())
        };
        self.values
            .get(name)
            .and_then(Value::as_str)
            .or_else(default)
            .unwrap_or_default()
    }

    /// `template` with each `{field}` replaced.
    pub(crate) fn fill(&self, template: &str) -> String {
        let mut filled = template.to_owned();
        for field in &self.entry.fields {
            let place = format!("{{{}}}", field.name);
            if filled.contains(&place) {
                filled = filled.replace(&place, &self.shown(&field.name));
            }
        }
        filled
    }

    pub(crate) fn base_url(&self) -> Result<Url, String> {
        let own = self.text("base_url");
        let text = match &self.entry.base_url {
            Some(template) if own.is_empty() => self.fill(template),
            Some(_) | None => own.to_owned(),
        };
        base_url::parse(&text).map_err(|why| format!("config.base_url {why}"))
    }

    /// A field's text, its default, or the empty text: a number as its digits.
    fn shown(&self, name: &str) -> String {
        match self.values.get(name) {
            Some(Value::Number(number)) => number.to_string(),
            Some(_) | None => self.text(name).to_owned(),
        }
    }

    /// The members of a map, in copies.
    pub(crate) fn pairs(&self, name: &str) -> impl Iterator<Item = (String, String)> {
        self.texts(name)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    /// The members of a map.
    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let members = self.values.get(name).and_then(Value::as_object);
        members
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }
}
