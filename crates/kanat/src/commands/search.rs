//! `kanat search`: resources of every kind by their words.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use kanat_model::search::Kind;

use super::{Page, Session};
use crate::output::{Format, Json};

/// Arguments of `kanat search`.
#[derive(clap::Args)]
pub struct Search {
    /// Words, each the beginning of a word in name, description or text.
    #[arg(required = true)]
    words: Vec<String>,
    /// Only what is of this type.
    #[arg(
        long = "type",
        value_parser = PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.as_str()))
    )]
    kind: Option<String>,
    #[command(flatten)]
    page: Page,
}

const COLUMNS: &str = "TYPE:type,NAME:name,ID:id,EXCERPT:excerpt";

impl Search {
    pub async fn run(self, session: &Session) -> Result<()> {
        let query = self
            .page
            .with([("q", Some(self.words.join(" "))), ("type", self.kind)]);
        let page = session.client.get("/search", &query).await?;
        let page = match session.format {
            Format::Table => with_plain_excerpts(page),
            Format::Json | Format::Yaml => page,
        };
        session.print_page(&page, COLUMNS)
    }
}

/// Excerpts are HTML, which people read without its marks and escapes.
fn with_plain_excerpts(page: Json) -> Json {
    let hits = page.list("data").iter().map(|hit| {
        let excerpt = Json::Text(plain(&hit.text("excerpt")));
        hit.clone().with([("excerpt", Some(excerpt))])
    });
    let hits = Json::List(hits.collect());
    page.with([("data", Some(hits))])
}

fn plain(html: &str) -> String {
    const ESCAPES: [(&str, &str); 7] = [
        ("<mark>", ""),
        ("</mark>", ""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        // The last one: what it gives is no escape.
        ("&amp;", "&"),
    ];
    let unescape = |text: String, (written, meant)| text.replace(written, meant);
    ESCAPES.into_iter().fold(html.to_owned(), unescape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_read_as_plain_text() {
        assert_eq!(
            plain("<mark>a</mark> &lt;b&gt; &amp;lt; &quot;&#39;"),
            "a <b> &lt; \"'"
        );
    }
}
