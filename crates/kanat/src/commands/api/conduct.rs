//! How a published API treats calls, apart from what its versions take and answer.

use clap::Args;
use serde_json::json;

use crate::output::Json;

/// Deadline of calls, checks of their answers, and the pages that may call.
#[derive(Args)]
pub struct Conduct {
    /// How long a call waits for the flow, such as `30s`.
    #[arg(long)]
    deadline: Option<String>,
    /// Treatment of the message of a call that ran out of time: `continue` or `discard`.
    #[arg(long)]
    on_timeout: Option<String>,
    /// `true` refuses an answer that does not fit its schema.
    #[arg(long)]
    strict_response: Option<bool>,
    /// An origin whose pages may call, such as `https://shop.example`, or `*`; those that are given
    /// replace all others, and an empty text takes all away.
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    cors_origins: Vec<String>,
}

impl Conduct {
    /// The members of a request, where the API has been `before`.
    pub fn members(&self, before: &Json) -> [(&'static str, Option<Json>); 4] {
        [
            ("deadline", self.deadline.clone().map(Json::Text)),
            ("onTimeout", self.on_timeout.clone().map(Json::Text)),
            (
                "strictResponse",
                self.strict_response.map(|strict| json!(strict).into()),
            ),
            ("cors", self.cors(before)),
        ]
    }

    /// The cross-origin rules of before with other origins; none where they stay.
    fn cors(&self, before: &Json) -> Option<Json> {
        let mut origins = self.cors_origins.clone();
        if origins.is_empty() {
            return None;
        }
        origins.retain(|origin| !origin.is_empty());
        let rules = before.at("cors").filter(|_| before.has("cors"));
        let rules = rules.cloned().unwrap_or_else(|| json!({}).into());
        Some(rules.with([("origins", Some(json!(origins).into()))]))
    }
}
