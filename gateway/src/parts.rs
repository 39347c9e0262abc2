//! Long pages in parts, each within the budget of an answer: a part ends where a heading begins, and says where the page goes on.

use crate::budget::{LIMIT, tokens};

/// Tokens for the line that says where the page goes on.
const RESERVE: usize = 100;

/// Splits a page. Its parts together are the page.
pub fn of(page: &str) -> Vec<String> {
    let room = LIMIT - RESERVE;
    let mut parts: Vec<(String, usize)> = Vec::new();
    for section in sections(page) {
        let needed = tokens(&section);
        match parts.last_mut() {
            Some((part, used)) if *used + needed <= room => {
                part.push_str(&section);
                *used += needed;
            }
            _ if needed <= room => parts.push((section, needed)),
            _ => parts.extend(lines(&section, room)),
        }
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

/// Returns a part as it is read: `uri` is the address of the page.
pub fn told(uri: &str, parts: &[String], number: usize) -> Option<String> {
    let part = parts.get(number.checked_sub(1)?)?;
    let next = parts.get(number).map(|next| {
        let total = parts.len();
        let next_uri = address(uri, number + 1);
        let title = title(next).map(|title| format!(", with {title}"));
        format!(
            "\n(Part {number} of {total}. Next part: {next_uri}{})\n",
            title.unwrap_or_default()
        )
    });
    Some(format!("{part}{}", next.unwrap_or_default()))
}

/// The address of a part.
pub fn address(uri: &str, number: usize) -> String {
    match number {
        1 => uri.to_owned(),
        number => format!("{uri}/{number}"),
    }
}

/// The heading with which a part begins.
pub fn title(part: &str) -> Option<&str> {
    let first = part.lines().next()?;
    first
        .starts_with('#')
        .then(|| first.trim_start_matches(['#', ' ']))
}

/// Splits a page before each heading; a line in a code block is none.
fn sections(page: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    let mut is_code = false;
    for line in page.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('#') && sections.last().is_some_and(|one| !one.is_empty()) {
            sections.push(String::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push_str(line);
        }
    }
    sections
}

/// Splits a section that is too long by itself between lines.
fn lines(section: &str, room: usize) -> Vec<(String, usize)> {
    let mut parts: Vec<(String, usize)> = Vec::new();
    for line in section.split_inclusive('\n') {
        let needed = tokens(line);
        match parts.last_mut() {
            Some((part, used)) if *used + needed <= room => {
                part.push_str(line);
                *used += needed;
            }
            _ => parts.push((line.to_owned(), needed)),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fit_and_together_are_the_page() {
        let long = "some words of prose, and more of them\n".repeat(3_000);
        let page = format!("# Page\n\n## One\n\n{long}\n```\n# no heading\n```\n## Two\n\nshort\n");
        let parts = of(&page);
        assert!(parts.len() > 1);
        assert_eq!(parts.concat(), page);
        for number in 1..=parts.len() {
            let told = told("page", &parts, number).expect("there is one");
            assert!(tokens(&told) <= LIMIT, "{number}: {}", tokens(&told));
            let next = told.contains(&format!("Next part: page/{}", number + 1));
            assert_eq!(next, number < parts.len(), "{number}");
        }
        assert_eq!(told("page", &parts, 0), None);
        assert_eq!(told("page", &parts, parts.len() + 1), None);
        assert!(!parts.iter().any(|part| part.starts_with("# no heading")));
    }

    #[test]
    fn a_short_page_is_one_part() {
        assert_eq!(
            told("page", &of("# Page\n\ntext\n"), 1).as_deref(),
            Some("# Page\n\ntext\n")
        );
    }
}
