//! The name that was probably meant.

/// Returns the known name nearest to `name`, when it is near enough to be a slip: at most a third
/// of its letters differ, and beyond two edits at most half of those between the beginning and the
/// end that both have.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    nearest_within(usize::MAX, name, known)
}

/// Returns the known name nearest to `name`, when at most `edits` edits and at most a third of the
/// letters tell them apart.
pub fn nearest_within<'k, K>(edits: usize, name: &str, known: K) -> Option<&'k str>
where
    K: IntoIterator<Item = &'k str>,
{
    let name: Vec<char> = name
        .chars()
        .take(MAX_CHARACTERS)
        .flat_map(char::to_lowercase)
        .collect();
    let allowed = (name.len() / 3).max(1).min(edits);
    known
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= allowed && *distance <= (differing(&name, candidate) / 2).max(2)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns `; did you mean "x"` for the nearest known name, or an empty text.
pub fn suggestion<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known)
        .map(|near| format!("; did you mean {near:?}"))
        .unwrap_or_default()
}

/// Longer names are not compared beyond this: the work grows with the square.
const MAX_CHARACTERS: usize = 64;

/// Number of letters between the beginning and the end that two names share; of the longer one.
fn differing(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let ends = a[start..].iter().rev().zip(b[start..].iter().rev());
    let end = ends.take_while(|(x, y)| x == y).count();
    a.len().max(b.len()) - start - end
}

/// Edits, adjacent swaps among them, that lead from one to the other.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b
        .chars()
        .take(MAX_CHARACTERS)
        .flat_map(char::to_lowercase)
        .collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (row[j] + usize::from(x != y))
                .min(row[j + 1] + 1)
                .min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_nothing_else() {
        let known = [
            "mapping",
            "on_error",
            "ordering_key",
            "source",
            "steps",
            "target",
            "when",
        ];
        for (name, expect) in [
            ("maping", Some("mapping")),
            ("on_eror", Some("on_error")),
            ("Target", Some("target")),
            ("trget", Some("target")),
            ("wehn", Some("when")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expect, "{name}");
        }
    }

    #[test]
    fn another_word_after_the_same_beginning_is_no_slip() {
        assert_eq!(nearest("poll-int2", ["poll-act"]), None);
        assert_eq!(nearest("database_host", ["database_url"]), None);
        assert_eq!(nearest("poll-atc2", ["poll-act"]), Some("poll-act"));
    }

    #[test]
    fn a_bound_on_edits_holds_for_long_names_too() {
        let known = ["database_url"];
        assert_eq!(nearest("datbase_uurrl", known), Some("database_url"));
        assert_eq!(nearest_within(2, "datbase_uurrl", known), None);
        assert_eq!(
            nearest_within(2, "databse_uri", known),
            Some("database_url")
        );
        assert_eq!(nearest_within(2, "ulr", ["url"]), Some("url"));
        assert_eq!(nearest_within(2, "key", ["url"]), None);
    }
}
