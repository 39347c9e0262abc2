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
    let typos = strsim::osa_distance(name, other);
    if typos <= 1 + name.chars().count().saturating_sub(1) / 4 {
        return Some(typos);
    }
    let long_enough = name.len().min(other.len()) >= 3;
    (long_enough && (other.starts_with(name) || name.starts_with(other))).then_some(typos)
}

#[cfg(test)]
mod tests {
    use super::*;

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
