//! Quality values ("q-values") of content negotiation, RFC 9110, section 12.4.2.

/// One item of a header such as `Accept` or `Accept-Encoding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'h> {
    /// The item without its parameters.
    pub value: &'h str,
    /// Preference from 0 (not acceptable) to 1,000. A malformed value counts as 0.
    pub quality: u16,
}

/// Returns the items of a header's value in their order.
pub fn items(header: &str) -> impl Iterator<Item = Item<'_>> {
    header.split(',').map(|item| {
        let (value, parameters) = item.split_once(';').unwrap_or((item, ""));
        Item {
            value: value.trim(),
            quality: quality(parameters),
        }
    })
}

fn quality(parameters: &str) -> u16 {
    let quality = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("q")
            .then(|| value.trim().parse::<f32>().unwrap_or(0.0))
    });
    (quality.unwrap_or(1.0).clamp(0.0, 1.0) * 1_000.0).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_without_a_quality_is_preferred_most() {
        let header = "text/csv;header=present; Q=0.29, */* ; q = 0.001,a;q=x,b;q=7,c";
        let found: Vec<_> = items(header)
            .map(|item| (item.value, item.quality))
            .collect();
        assert_eq!(
            found,
            [
                ("text/csv", 290),
                ("*/*", 1),
                ("a", 0),
                ("b", 1_000),
                ("c", 1_000)
            ]
        );
    }
}
