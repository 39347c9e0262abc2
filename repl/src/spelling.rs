//! gdb's spelling, translated to ours: `x/4xw &a`, `info locals`, `tbreak f`, `bt 5`. Both the shell and the prompt
//! read them.
//!
//! Only spelling changes here: gdb's slashes and two-word commands become options and names of verbs. A gdb command
//! without a counterpart stays unchanged, and `travel/familiar.rs` suggests the nearest verb.

mod assignment;
mod format;
mod frames;
mod info;
mod layout;
mod minus;
mod numbers;
mod options;
mod places;
#[cfg(test)]
mod tests;
mod threads;

use assignment::{assignment, with_one_value};
use format::{formatted, without_format};
use frames::{a_frame, backtrace, is_of_backtrace};
use info::about;
pub use info::{info_subjects, subject, subject_names, subjects};
use layout::without_layout;
pub use minus::{is_negative, is_offset};
use numbers::numbered;
use options::Apart;
use places::with_whole_places;
pub use threads::applied_at;
use threads::{applied, threads};

/// Commands that are one or two words here.
const COMMANDS: [(&str, &str); 27] = [
    ("br", "break"),
    ("cont", "continue"),
    ("d", "break remove"),
    ("del", "break remove"),
    ("delete", "break remove"),
    ("disable", "break disable"),
    ("disas", "disassemble"),
    ("enable", "break enable"),
    ("f", "frame"),
    ("fin", "finish"),
    ("generate-core-file", "gcore"),
    ("hb", "break"),
    ("hbreak", "break"),
    ("inspect", "print"),
    ("ni", "next --instruction"),
    ("nexti", "next --instruction"),
    ("reverse-nexti", "next-back --instruction"),
    ("reverse-stepi", "step-back --instruction"),
    ("rni", "next-back --instruction"),
    ("rsi", "step-back --instruction"),
    ("si", "step --instruction"),
    ("stepi", "step --instruction"),
    ("taas", "backtrace --all"),
    ("tb", "break --once"),
    ("tbreak", "break --once"),
    ("thbreak", "break --once"),
    ("u", "until"),
];

/// Returns the words of a line in our spelling; our own words stay. Options may stand around what is spelled otherwise.
pub fn ours(words: Vec<String>) -> Vec<String> {
    let first = words.first().map(String::as_str).unwrap_or_default();
    let verb = first.split('/').next().unwrap_or_default();
    let name = COMMANDS.iter().find(|(theirs, _)| *theirs == verb);
    let name = name.map_or(verb, |(_, ours)| ours.split(' ').next().unwrap_or(verb));
    let apart = Apart::of(&words, name);
    let spelled = spelled(apart.plain.clone());
    match spelled == apart.plain {
        true => words,
        false => apart.around(spelled),
    }
}

/// Returns the verb whose help these words request: `tbreak`, `info locals`.
pub fn verb_of(words: Vec<String>) -> Vec<String> {
    let is_whole_command = matches!(words.as_slice(), [info] if info == "info");
    match is_whole_command {
        true => words,
        false => ours(words).into_iter().take(1).collect(),
    }
}

/// Does what [`ours`] does, for words without options around them.
fn spelled(words: Vec<String>) -> Vec<String> {
    let (words, format) = without_format(without_layout(words));
    let words = with_whole_places(words);
    let Some(verb) = words.first().map(String::as_str) else {
        return words;
    };
    if let Some(format) = format {
        return formatted(&words, &format);
    }
    let rest = &words[1..];
    match verb {
        "info" | "inf" | "i" => about(rest).unwrap_or(words),
        "bt" | "backtrace" => backtrace(&words),
        // gdb's is a backtrace; ours takes no number.
        "where" if rest.first().is_some_and(|word| is_of_backtrace(word)) => {
            backtrace(&put("backtrace", rest))
        }
        "thread" | "thr" => threads(rest).unwrap_or(words),
        "thread-apply" => applied(rest),
        "taas" if !rest.is_empty() => {
            let all = ["apply", "all"].map(str::to_owned);
            threads(&[all.as_slice(), rest].concat()).unwrap_or(words)
        }
        "print" | "p" | "inspect" if rest.is_empty() => put("print", &["$".to_owned()]),
        "up" | "down" if rest.len() == 1 && is_offset(&rest[0]) => {
            let other = if verb == "up" { "down" } else { "up" };
            put(other, &[rest[0].trim_start_matches('-').to_owned()])
        }
        "list" | "l" if rest == ["-"] => vec!["source".to_owned(), "--previous".to_owned()],
        "list" | "l" if rest.len() > 1 && is_range(rest) => {
            vec!["source".to_owned(), rest.concat()]
        }
        "disassemble" | "disas" if rest.len() == 2 && rest[0].ends_with(',') => {
            vec!["disassemble".to_owned(), rest.concat()]
        }
        "step" | "s" | "next" | "n" | "continue" | "cont" | "c" | "finish" | "fin"
            if rest.first().is_some_and(|word| word == "back") =>
        {
            put(backwards(verb), &rest[1..])
        }
        "frame" | "f" => put("frame", &a_frame(rest)),
        // gdb's is about a value; without one, it is what the program has printed.
        "output" if rest.first().is_some_and(|word| !word.starts_with('-')) => put("print", rest),
        "watch" => put(verb, behind_location(rest)),
        "rwatch" => with_option("watch", behind_location(rest), "--read"),
        "awatch" => with_option("watch", behind_location(rest), "--access"),
        "set" => assignment(rest)
            .or_else(|| with_one_value(rest))
            .unwrap_or(words),
        "save"
            if rest
                .first()
                .is_some_and(|what| "breakpoints".starts_with(what.as_str())) =>
        {
            put("save-breakpoints", &rest[1..])
        }
        "d" | "del" | "delete" | "enable" | "disable" | "undisplay" => numbered(verb, rest),
        _ => put(verb, rest),
    }
}

/// Returns whether the words are one range of lines: `10, 20`. An option that `list` does not have is none.
fn is_range(words: &[String]) -> bool {
    words.iter().any(|word| word.contains(',')) && !words.iter().any(|word| word.starts_with("--"))
}

/// Returns the name of `VERB back`.
fn backwards(verb: &str) -> &'static str {
    match verb {
        "step" | "s" => "step-back",
        "next" | "n" => "next-back",
        "finish" | "fin" => "reverse-finish",
        _ => "reverse-continue",
    }
}

/// Returns the words behind `-l` or `-location`: what is watched is an address anyway.
fn behind_location(words: &[String]) -> &[String] {
    match words.first().map(String::as_str) {
        Some("-l" | "-location") => &words[1..],
        _ => words,
    }
}

/// Replaces a command's name by our words.
fn put(verb: &str, rest: &[String]) -> Vec<String> {
    let known = COMMANDS.iter().find(|(theirs, _)| *theirs == verb);
    let ours = known.map_or(verb, |(_, ours)| *ours);
    let ours = ours.split(' ').map(str::to_owned);
    ours.chain(rest.iter().cloned()).collect()
}

fn with_option(verb: &str, rest: &[String], option: &str) -> Vec<String> {
    let verb = std::iter::once(verb.to_owned());
    let option = std::iter::once(option.to_owned());
    verb.chain(rest.iter().cloned()).chain(option).collect()
}
