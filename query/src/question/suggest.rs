//! Suggests known names that resemble an unknown one.

/// Most names that are suggested.
const MOST: usize = 3;

/// Returns the known names nearest to `name`, nearest first: a few typos apart, or one a prefix of the other.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|other| Some((distance_if_near(&name, &other.to_lowercase())?, other)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(MOST);
    near.into_iter()
        .map(|(_, other)| other.to_owned())
        .collect()
}

fn distance_if_near(name: &str, other: &str) -> Option<usize> {
    let typos = distance(name, other);
    if typos <= 1 + name.chars().count().saturating_sub(1) / 4 {
        return Some(typos);
    }
    let long_enough = name.len().min(other.len()) >= 3;
    (long_enough && (other.starts_with(name) || name.starts_with(other))).then_some(typos)
}

/// Counts the insertions, deletions, replacements and swaps of neighbours between `a` and `b`.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("abc", "", 3),
            ("calls", "calls", 0),
            ("calls", "call", 1),
            ("fucntion", "function", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn nearest_come_first_and_far_ones_not_at_all() {
        let known = ["calls", "events", "functions", "function", "tail"];
        assert_eq!(suggest("call", known), ["calls"]);
        assert_eq!(suggest("fucntion", known), ["function", "functions"]);
        assert_eq!(suggest("func", known), ["function", "functions"]);
        assert_eq!(suggest("EVENT", known), ["events"]);
        assert!(suggest("zebra", known).is_empty());
    }
}
