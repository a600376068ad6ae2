//! Fields of the answers of a published API, compared with the schema of its answers. A schema that
//! no answer fits is a reason for a warning and not for a refusal: callers get 502 until it is
//! changed.

use kanat_flow::{Definition, parse_stored_response};
use kanat_model::{Error, Result};
use kanat_proto::plan::v1::response_mapping::Body;
use kanat_schema::Schema;
use kanat_store::published_api::version::Content;

use super::calling_apis::response_texts;

/// Names of the top-level fields of each answer.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerFields {
    /// Names the block that has the fields.
    block: &'static str,
    names: Vec<String>,
}

impl AnswerFields {
    /// Returns the fields of the version's `responseMapping`; those of the flow's mapping if it has
    /// none. `None` if they are known at run time only.
    pub fn of(content: &Content, definition: &Definition) -> Option<Self> {
        match response_body(content)? {
            Some(Body::Mapping(block)) => {
                let names = block.fields.iter().map(|field| field.name.as_str());
                Some(Self::new("the responseMapping", names))
            }
            Some(Body::Expression(_) | Body::Template(_)) => None,
            None => Self::of_mapping(definition),
        }
    }

    /// Returns the fields of the flow's mapping, unless the version has a `responseMapping`.
    pub fn of_flow(content: &Content, definition: &Definition) -> Option<Self> {
        match response_body(content)? {
            Some(_) => None,
            None => Self::of_mapping(definition),
        }
    }

    fn of_mapping(definition: &Definition) -> Option<Self> {
        let fields = definition.mapping.as_deref()?;
        let names = fields.iter().map(|field| field.name.as_str());
        Some(Self::new("the flow's mapping", names))
    }

    fn new<'n>(block: &'static str, names: impl Iterator<Item = &'n str>) -> Self {
        let top_level = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
        let mut names: Vec<String> = names.map(top_level).collect();
        names.sort_unstable();
        names.dedup();
        Self { block, names }
    }

    /// Returns a sentence for each way in which no answer fits the schema.
    ///
    /// # Errors
    /// The process is about to end.
    pub async fn warnings(self, schema: String) -> Result<Vec<String>> {
        let warnings = tokio::task::spawn_blocking(move || self.unfit(&schema));
        warnings.await.map_err(|_| Error::internal())
    }

    fn unfit(&self, schema: &str) -> Vec<String> {
        let Ok(schema) = Schema::compile(schema) else {
            return Vec::new();
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let block = self.block;
        let missing = quoted(&schema.missing_members(&names)).map(|names| {
            format!(
                "{block} has no {names}, which the responseSchema requires: each call runs the \
                 flow, and then gets 502"
            )
        });
        let refused = quoted(&schema.refused_members(&names)).map(|names| {
            format!(
                "{block} has {names}, which the responseSchema does not allow: a call whose answer \
                 has that runs the flow, and then gets 502"
            )
        });
        missing.into_iter().chain(refused).collect()
    }
}

/// Returns the body of the version's `responseMapping`; `None` if it cannot be read.
fn response_body(content: &Content) -> Option<Option<Body>> {
    let response = parse_stored_response(&response_texts(content), None).ok()?;
    Some(response.to_plan().and_then(|plan| plan.body))
}

/// Returns the names in quotes; `None` without any.
pub fn quoted(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    (!quoted.is_empty()).then(|| quoted.join(", "))
}
