//! Suggestions: the known name that is nearest to one that was not found.

/// Returns `; did you mean ...?` when one of `names` is near; else nothing.
pub(crate) fn suggestion(found: &str, names: &[&str]) -> String {
    let found = found.to_lowercase();
    let max_distance = |name: &str| (found.len().max(name.len()) / 3).max(1);
    let distances = names
        .iter()
        .map(|name| (distance(&found, &name.to_lowercase()), name));
    let near = distances.filter(|(distance, name)| *distance <= max_distance(name));
    let nearest = near
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| *name);
    let same_start = || {
        names
            .iter()
            .find(|name| found.len() >= 3 && name.starts_with(&found))
            .copied()
    };
    nearest
        .or_else(same_start)
        .map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Counts the insertions, deletions, replacements and swaps of neighbours that turn one word into
/// the other. Words of more than 40 characters are infinitely far apart.
fn distance(left: &str, right: &str) -> usize {
    const MAX_CHARACTERS: usize = 40;
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len() > MAX_CHARACTERS || right.len() > MAX_CHARACTERS {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_swaps_as_one() {
        assert_eq!(distance("sorce", "source"), 1);
        assert_eq!(distance("soruce", "source"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn suggests_only_what_is_near() {
        let names = ["decimal", "default", "date"];
        assert_eq!(suggestion("decmal", &names), "; did you mean `decimal`?");
        assert_eq!(suggestion("dec", &names), "; did you mean `decimal`?");
        assert_eq!(suggestion("frobnicate", &names), "");
    }
}
