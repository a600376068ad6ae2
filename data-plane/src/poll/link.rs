//! Next page by `Link` headers (RFC 8288). Links with another context (`anchor`) are ignored.

use http::HeaderMap;
use http::header::LINK;
use url::Url;

/// Returns the first target with the relation `next`, relative to `base`; `None` when there is
/// none.
///
/// # Errors
/// The target is no URL that can be requested.
pub(crate) fn next(headers: &HeaderMap, base: &Url) -> Result<Option<Url>, String> {
    let values = headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    let Some(target) = values
        .flat_map(links)
        .find(|link| link.is_next(base))
        .map(|link| link.target)
    else {
        return Ok(None);
    };
    let url = base
        .join(&target)
        .map_err(|error| format!("the Link header's next page {target:?} is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "the Link header's next page {target:?} is neither http nor https"
        ));
    }
    Ok(Some(url))
}

struct Link {
    target: String,
    /// Names in lower case. The first of several parameters with one name counts.
    parameters: Vec<(String, String)>,
}

impl Link {
    fn is_next(&self, base: &Url) -> bool {
        let rel = self.parameter("rel").unwrap_or_default();
        let here = self
            .parameter("anchor")
            .is_none_or(|anchor| base.join(anchor).is_ok_and(|anchor| anchor == *base));
        here && rel
            .split_ascii_whitespace()
            .any(|relation| relation.eq_ignore_ascii_case("next"))
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Returns the links of one header, up to the first one that cannot be read.
fn links(text: &str) -> Vec<Link> {
    let mut rest = text;
    let mut links = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((target, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        else {
            return links;
        };
        let (parameters, after) = parameters(after);
        links.push(Link {
            target: target.trim().to_owned(),
            parameters,
        });
        rest = after;
    }
}

/// Returns the parameters of a link, and the text after it.
fn parameters(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let Some(after) = rest.strip_prefix(';') else {
            return (found, rest);
        };
        let after = after.trim_start_matches([' ', '\t']);
        let end = after
            .find(['=', ';', ',', ' ', '\t'])
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let spaced = after.trim_start_matches([' ', '\t']);
        let (value, after) = match spaced.strip_prefix('=') {
            Some(value) => self::value(value.trim_start_matches([' ', '\t'])),
            None => (String::new(), after),
        };
        if !name.is_empty() {
            found.push((name.to_ascii_lowercase(), value));
        }
        rest = after;
    }
}

/// Reads a token or a quoted string, which may contain commas, semicolons, and escaped quotes.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',', ' ', '\t']).unwrap_or(text.len());
        let (token, rest) = text.split_at(end);
        return (token.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            plain => value.push(plain),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(LINK, value.parse().unwrap());
        }
        let base = Url::parse("https://shop.example/v1/orders?page=1").unwrap();
        next(&headers, &base).unwrap().map(|url| url.to_string())
    }

    #[test]
    fn finds_the_next_page_however_it_is_written() {
        let next = |text: &str| Some(text.to_owned());
        for (values, expected) in [
            (&[][..], None),
            (
                &["<https://shop.example/v1/orders?page=2>; rel=\"next\""],
                next("https://shop.example/v1/orders?page=2"),
            ),
            (
                &["<https://a.example/>; rel=next"],
                next("https://a.example/"),
            ),
            (
                &["<?page=2>; rel=\"next\", <?page=9>; rel=\"last\""],
                next("https://shop.example/v1/orders?page=2"),
            ),
            (
                &["<?page=9>; rel=last , <?page=2> ; rel = \"prev NEXT\""],
                next("https://shop.example/v1/orders?page=2"),
            ),
            (
                &["</x?a=1,2;b=3>; title=\"a, b; rel=\\\"next\\\"\"; rel=\"last\",</y>;REL=Next"],
                next("https://shop.example/y"),
            ),
            (
                &["<?page=9>; rel=last", "<../v2/orders>; rel=next"],
                next("https://shop.example/v2/orders"),
            ),
            // The first `rel` counts, and a link may lead somewhere else than from this page.
            (&["</a>; rel=last; rel=next"], None),
            (
                &["</a>; anchor=\"/other\"; rel=next, </b>; rel=next"],
                next("https://shop.example/b"),
            ),
            (
                &["</a>; anchor=\"\"; rel=next"],
                next("https://shop.example/a"),
            ),
            (
                &["</a>; crossorigin; rel=next"],
                next("https://shop.example/a"),
            ),
            (
                &[
                    "</a>; rel=\"nextpage\"",
                    "</a> rel=next",
                    "rel=next",
                    "<",
                    "<>",
                    ";;,<a",
                ],
                None,
            ),
            (
                &["<//b.example/c>; rel=\"next\"; title*=UTF-8''n%c3%a4chste"],
                next("https://b.example/c"),
            ),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
    }

    #[test]
    fn refuses_what_cannot_be_asked_for() {
        let base = Url::parse("https://shop.example/").unwrap();
        for target in [
            "ftp://shop.example/",
            "javascript:alert(1)",
            "http://[",
            "file:///etc/passwd",
        ] {
            let headers =
                HeaderMap::from_iter([(LINK, format!("<{target}>; rel=next").parse().unwrap())]);
            assert!(
                next(&headers, &base).unwrap_err().contains("next page"),
                "{target}"
            );
        }
    }

    #[test]
    fn no_header_makes_it_panic() {
        use proptest::prelude::*;
        proptest!(|(text in "[<>;,=\" \\\\a-zü/?]{0,60}")| {
            links(&text);
        });
    }
}
