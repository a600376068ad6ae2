//! Content negotiation by the `Accept` header (RFC 9110, section 12.5.1).

/// Precision of a media range; the most specific range that matches counts.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Specificity {
    /// `*/*`.
    Any,
    /// `text/*`.
    Type,
    /// `text/csv`.
    Subtype,
}

/// Returns whether the caller prefers CSV to JSON. JSON is the default at equal quality.
pub(super) fn prefers_csv(accept: &str) -> bool {
    match (
        quality(accept, "text", "csv"),
        quality(accept, "application", "json"),
    ) {
        (None, _) => false,
        (Some((_, csv)), None) => csv > 0.0,
        // At equal quality, CSV wins where its range is more specific.
        (Some((csv_named, csv)), Some((json_named, json))) => {
            csv > json || (csv == json && csv_named > json_named)
        }
    }
}

/// Returns the q-value of a media type, from 0 to 1, and the precision of the range that gives it.
fn quality(accept: &str, kind: &str, subtype: &str) -> Option<(Specificity, f32)> {
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (its_kind, its_subtype) = parts.next()?.split_once('/')?;
        let is_kind = its_kind.eq_ignore_ascii_case(kind);
        let named = match its_subtype {
            "*" if its_kind == "*" => Specificity::Any,
            "*" if is_kind => Specificity::Type,
            _ if is_kind && its_subtype.eq_ignore_ascii_case(subtype) => Specificity::Subtype,
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
    fn csv_is_given_to_callers_that_prefer_it() {
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
