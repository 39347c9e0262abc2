//! `info SUBJECT`: each subject is a verb of its own here.

use std::fmt::Write;

use super::frames::a_frame;
use super::options::options_len;

/// The subjects of `info`, with their counterparts here.
const SUBJECTS: [(&str, &str); 28] = [
    ("address", "info-address"),
    ("all-registers", "registers --vectors"),
    ("args", "args"),
    ("breakpoints", "info-breakpoints"),
    ("display", "display"),
    ("dll", "info-shared"),
    ("files", "info-shared"),
    ("frame", "info-frame"),
    ("functions", "info-functions"),
    ("handle", "info-signals"),
    ("inferiors", "status"),
    ("line", "info-line"),
    ("locals", "locals"),
    ("proc", "info-proc"),
    ("program", "status"),
    ("registers", "registers"),
    ("scope", "info-scope"),
    ("sharedlibrary", "info-shared"),
    ("signals", "info-signals"),
    ("source", "info-source"),
    ("stack", "backtrace"),
    ("symbol", "info-symbol"),
    ("target", "status"),
    ("threads", "threads"),
    ("types", "info-types"),
    ("variables", "info-variables"),
    ("vector", "registers --vectors"),
    ("watchpoints", "watch list"),
];

/// Abbreviations that several subjects begin with.
const SHORT: [(&str, &str); 7] = [
    ("b", "breakpoints"),
    ("f", "frame"),
    ("r", "registers"),
    ("s", "stack"),
    ("t", "threads"),
    ("w", "watchpoints"),
    ("sh", "sharedlibrary"),
];

/// The words for `info SUBJECT ..`. Options may precede the subject.
pub fn about(words: &[String]) -> Option<Vec<String>> {
    let (options, words) = words.split_at(options_len(words));
    let (subject, rest) = words.split_first()?;
    let whole = SHORT.iter().find(|(short, _)| short == subject);
    let subject = whole.map_or(subject.as_str(), |(_, whole)| *whole);
    let exact = SUBJECTS.iter().find(|(name, _)| *name == subject);
    let mut begun = SUBJECTS
        .iter()
        .filter(|(name, _)| name.starts_with(subject));
    let begun = || {
        let first = begun.next()?;
        begun.all(|(_, ours)| *ours == first.1).then_some(first)
    };
    let (subject, ours) = exact.or_else(begun)?;
    let ours = ours.split(' ').map(str::to_owned);
    // gdb's "quiet" and "without symbols that nothing describes".
    let is_gdbs = |word: &&String| matches!(word.as_str(), "-q" | "-n");
    let rest = &rest[rest.iter().take_while(is_gdbs).count()..];
    let rest = match *subject {
        "frame" => a_frame(rest),
        _ => rest.to_vec(),
    };
    Some(ours.chain([options, rest.as_slice()].concat()).collect())
}

/// Returns the word of `info ..` that may be a subject, or a recording.
pub fn subject(words: &[String]) -> Option<&String> {
    words.get(options_len(words))
}

/// Returns the subjects of `info`, for a message.
pub fn subject_names() -> String {
    SUBJECTS.map(|(name, _)| name).join(", ")
}

/// Returns the subjects of `info`.
pub fn info_subjects() -> impl Iterator<Item = &'static str> {
    SUBJECTS.into_iter().map(|(name, _)| name)
}

/// Lists what `info` takes, and which verb each is.
pub fn subjects() -> String {
    let mut text = "info SUBJECT: what gdb calls by that name\n\n".to_owned();
    for (theirs, ours) in SUBJECTS {
        let _ = writeln!(text, "  info {theirs:<16} {ours}");
    }
    text + "\nAbbreviations such as info b and info f work, too; help VERB says more.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_the_subjects_of_info() {
        let text = subjects();
        assert!(
            text.contains("\n  info locals           locals\n"),
            "{text}"
        );
        assert_eq!(text.matches("\n  info ").count(), SUBJECTS.len(), "{text}");
    }
}
