//! What a recording's user should know of what is not in it: functions that could not be recorded, and the program that
//! was executed in place of the recorded one.

use std::collections::BTreeMap;
use std::path::Path;

use server::quantity::{count, grouped};

use crate::ask::Asker;
use crate::render::escaped;

/// What can be recorded of a program without functions.
const INSTEAD: &str = "what it calls in libraries can be (-f open -f malloc), and its system calls (--syscalls), and every \
    instruction (--full)";
/// Why the functions of the program and of its own libraries could not be recorded.
const REFUSED: &str = "select reason from probes where kind = 'trace' and state = 'skipped' and function not like 'system call %' \
    and function not like '%@plt' and module in (select name from modules where not system)";
/// Most reasons that are told.
const MOST_REASONS: usize = 4;

/// Returns the lines that say why no function of a recording's program is recorded.
pub fn why_no_function(recording: &Path) -> Vec<String> {
    let rows = Asker::open(recording).and_then(|mut asker| asker.texts(REFUSED));
    let Ok(rows) = rows else {
        return Vec::new();
    };
    let reasons: Vec<String> = rows.into_iter().flatten().flatten().collect();
    no_function(&reasons)
}

/// `reasons`: one for each function that was refused.
fn no_function(reasons: &[String]) -> Vec<String> {
    if reasons.is_empty() {
        return vec![format!(
            "it has no functions that can be recorded, probably because its symbols were stripped; {INSTEAD}"
        )];
    }
    let what = match reasons.len() as u64 {
        1 => "its only function cannot be recorded".to_owned(),
        many => format!("none of its {} functions can be recorded", grouped(many)),
    };
    let mut lines = vec![format!("{what} (see the table probes); {INSTEAD}")];
    let groups = by_reason(reasons.iter().map(String::as_str));
    let told = groups.iter().take(MOST_REASONS);
    lines.extend(
        told.map(|(reason, number)| format!("{}: {}", count(*number, "function"), escaped(reason))),
    );
    let rest = groups.iter().skip(MOST_REASONS).map(|(_, number)| number);
    let rest: u64 = rest.sum();
    if rest > 0 {
        lines.push(format!("{}: other reasons", count(rest, "function")));
    }
    lines
}

/// Returns each reason with its number, the most frequent one first. Reasons that differ in numbers alone are one, with `...` there.
pub fn by_reason<'a>(reasons: impl Iterator<Item = &'a str>) -> Vec<(String, u64)> {
    let mut found: BTreeMap<String, (String, u64)> = BTreeMap::new();
    for reason in reasons {
        let (text, number) = found
            .entry(without_numbers(reason))
            .or_insert_with(|| (reason.to_owned(), 0));
        *text = what_is_common(text, reason);
        *number += 1;
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    found
}

fn without_numbers(text: &str) -> String {
    let is_number = |word: &str| {
        let word = word.strip_prefix("/proc/").unwrap_or(word);
        word.starts_with(|first: char| first.is_ascii_digit())
    };
    let words = text
        .split(' ')
        .map(|word| if is_number(word) { "..." } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// `one` and `other` have the same number of words.
fn what_is_common(one: &str, other: &str) -> String {
    let pairs = one.split(' ').zip(other.split(' '));
    let words = pairs.map(|(one, other)| if one == other { one } else { "..." });
    words.collect::<Vec<_>>().join(" ")
}

/// Says that a program became another one, and why that one is not recorded.
pub fn became_line(program: &str) -> String {
    let became = format!("the program became another one, {program}, which is not recorded");
    // Below /proc the path may mean another file to us than it did to the program.
    let path = Path::new(program);
    let why = (!path.starts_with("/proc")).then(|| recorder::why_not_recorded(path));
    match why.flatten() {
        Some(why) => format!("{became} and cannot be: {}", why.one_line()),
        None => format!("{became}: without --children, a recording ends at exec; record that one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_functions_are_counted_by_reason() {
        assert_eq!(no_function(&[]).len(), 1);
        assert!(no_function(&[])[0].contains("stripped"));
        let reasons = [
            "it returns twice",
            "the branch at 0x10 leads to 0x13, inside the patched bytes",
            "only 3 bytes; a patch needs 5",
            "only 2 bytes; a patch needs 5",
            "only 3 bytes; a patch needs 5",
            "a",
            "b",
        ];
        let lines = no_function(&reasons.map(str::to_owned));
        assert!(!lines[0].contains("stripped"), "{}", lines[0]);
        assert!(lines[0].starts_with("none of its 7 functions can be recorded"));
        assert_eq!(
            lines[1..],
            [
                "3 functions: only ... bytes; a patch needs 5",
                "1 function: a",
                "1 function: b",
                "1 function: it returns twice",
                "1 function: other reasons",
            ]
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_not_said_to_be_unrecordable() {
        assert_eq!(
            became_line("/nonexistent/program"),
            "the program became another one, /nonexistent/program, which is not recorded: without --children, a recording \
             ends at exec; record that one"
        );
    }
}
