//! Choice between CSV and JSON by the `Accept` header.

use kanat_net::quality;

/// Specificity of a media range; more specific ranges take precedence.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Specificity {
    Any,
    Type,
    Subtype,
}

/// Returns whether the caller prefers CSV to JSON. JSON is the default where it accepts both alike.
pub(super) fn prefers_csv(accept: &str) -> bool {
    match (
        preference(accept, "text", "csv"),
        preference(accept, "application", "json"),
    ) {
        (None, _) => false,
        (Some((_, csv)), None) => csv > 0,
        // A range may name CSV itself, and another one JSON among everything else.
        (Some((csv_specificity, csv)), Some((json_specificity, json))) => {
            csv > json || (csv == json && csv_specificity > json_specificity)
        }
    }
}

/// Returns the quality of a media type, by the most specific range that covers it.
fn preference(accept: &str, kind: &str, subtype: &str) -> Option<(Specificity, u16)> {
    let ranges = quality::items(accept).filter_map(|range| {
        let (its_kind, its_subtype) = range.value.split_once('/')?;
        let is_kind = its_kind.eq_ignore_ascii_case(kind);
        let specificity = match its_subtype {
            "*" if its_kind == "*" => Specificity::Any,
            "*" if is_kind => Specificity::Type,
            _ if is_kind && its_subtype.eq_ignore_ascii_case(subtype) => Specificity::Subtype,
            _ => return None,
        };
        Some((specificity, range.quality))
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
