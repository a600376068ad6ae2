//! What a caller would rather have, by the `Accept` header.

/// How well a kind of content was named; more is better.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Named {
    Anything,
    Type,
    Whole,
}

/// Whether the caller would rather have CSV than JSON, which it gets where it takes both as gladly.
pub(super) fn prefers_csv(accept: &str) -> bool {
    match (
        gladness(accept, "text", "csv"),
        gladness(accept, "application", "json"),
    ) {
        (None, _) => false,
        (Some((_, csv)), None) => csv > 0.0,
        // As glad of both, it may have named CSV, and JSON as one thing among all.
        (Some((csv_named, csv)), Some((json_named, json))) => {
            csv > json || (csv == json && csv_named > json_named)
        }
    }
}

/// How glad the caller is of a kind of content, from 0 to 1, as the range says that names it best.
fn gladness(accept: &str, kind: &str, subtype: &str) -> Option<(Named, f32)> {
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (its_kind, its_subtype) = parts.next()?.split_once('/')?;
        let is_kind = its_kind.eq_ignore_ascii_case(kind);
        let named = match its_subtype {
            "*" if its_kind == "*" => Named::Anything,
            "*" if is_kind => Named::Type,
            _ if is_kind && its_subtype.eq_ignore_ascii_case(subtype) => Named::Whole,
            _ => return None,
        };
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        Some((
            named,
            weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)),
        ))
    });
    ranges.reduce(|best, range| if range.0 > best.0 { range } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_for_who_would_rather_have_it() {
        for accept in [
            "text/csv",
            "Text/CSV; charset=utf-8",
            "text/csv, */*;q=0.1",
            "text/csv, */*",
            "text/csv;q=0.9, application/json;q=0.1",
            "application/json;q=0, text/*",
        ] {
            assert!(prefers_csv(accept), "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "application/json",
            "text/html",
            "text/csv;q=0",
            "text/csv;q=0, */*",
            "text/csv;q=x",
            "text/csv, application/json",
            "text/csv;q=0.2, application/json;q=0.3",
            "application/json, */*;q=0.5",
        ] {
            assert!(!prefers_csv(accept), "{accept}");
        }
    }
}
