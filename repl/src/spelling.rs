//! gdb's spelling, translated to ours: `x/4xw &a`, `info locals`, `tbreak f`, `bt 5`. Both the shell and the prompt
//! read them.
//!
//! Only spelling changes here: gdb's slashes and two-word commands become options and names of verbs. A gdb command
//! without a counterpart stays unchanged, and `travel/familiar.rs` suggests the nearest verb.

mod layout;
mod options;
mod places;

use std::fmt::Write;
use std::ops::RangeInclusive;

use layout::without_layout;
use options::Apart;
use places::with_whole_places;

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

/// The same for words without options around them.
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
        "d" | "del" | "delete" if rest.first().is_some_and(|what| what == "display") => {
            match rest.len() {
                1 => put("undisplay", &["--all".to_owned()]),
                _ => put("undisplay", &numbers(&rest[1..])),
            }
        }
        "d" | "del" | "delete" | "enable" | "disable"
            if rest.first().is_some_and(|what| what == "breakpoints") =>
        {
            let rest = rest[1..].to_vec();
            ours([vec![verb.to_owned()], rest].concat())
        }
        "d" | "del" | "delete" | "enable" | "disable"
            if rest.is_empty() || rest == ["all".to_owned()] =>
        {
            put(verb, &["--all".to_owned()])
        }
        "d" | "del" | "delete" | "enable" | "disable" | "undisplay" => put(verb, &numbers(rest)),
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

/// Most numbers that a range stands for.
const LONGEST_RANGE: u32 = 1_000;

/// Writes each range as its numbers: `2-4` as `2 3 4`.
fn numbers(words: &[String]) -> Vec<String> {
    let each = words.iter().map(|word| match range(word) {
        Some(range) => range.map(|number| number.to_string()).collect(),
        None => vec![word.clone()],
    });
    each.collect::<Vec<_>>().concat()
}

fn range(word: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = word.split_once('-')?;
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let len = last.checked_sub(first)?;
    (len < LONGEST_RANGE).then_some(first..=last)
}

/// Replaces a command's name by our words.
fn put(verb: &str, rest: &[String]) -> Vec<String> {
    let known = COMMANDS.iter().find(|(theirs, _)| *theirs == verb);
    let ours = known.map_or(verb, |(_, ours)| *ours);
    let ours = ours.split(' ').map(str::to_owned);
    ours.chain(rest.iter().cloned()).collect()
}

/// Takes the letters after a slash from the words: `x/4xw`, `p /x`.
fn without_format(mut words: Vec<String>) -> (Vec<String>, Option<String>) {
    let is_one = |verb: &str| {
        matches!(
            verb,
            "x" | "p"
                | "print"
                | "inspect"
                | "output"
                | "call"
                | "display"
                | "disassemble"
                | "disas"
                | "ptype"
                | "whatis"
        )
    };
    let is_format = |verb: &str, text: &str| {
        // Only `x` has a negative count: what lies before the address.
        let letters = text.strip_prefix('-').filter(|_| verb == "x");
        let letters = letters.unwrap_or(text);
        !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let Some(first) = words.first() else {
        return (words, None);
    };
    if let Some((verb, format)) = first.split_once('/')
        && is_one(verb)
        && is_format(verb, format)
    {
        let (verb, format) = (verb.to_owned(), format.to_owned());
        words[0] = verb;
        return (words, Some(format));
    }
    let second = words.get(1).and_then(|word| word.strip_prefix('/'));
    let Some(format) = second.filter(|format| is_one(first) && is_format(first, format)) else {
        return (words, None);
    };
    let format = format.to_owned();
    words.remove(1);
    (words, Some(format))
}

fn formatted(words: &[String], format: &str) -> Vec<String> {
    let verb = match words[0].as_str() {
        "output" | "inspect" | "p" => "print",
        "call" => "eval",
        "disas" => "disassemble",
        verb => verb,
    };
    let slashed = format!("/{format}");
    // Alone it would look like an option.
    let negative = format!("--format={format}");
    let options: Vec<&str> = match verb {
        // Its format is shown with its value at each stop.
        "display" => vec![&slashed],
        "disassemble" if format.contains(['s', 'm']) => vec!["--source"],
        "disassemble" => vec![],
        "ptype" if format.contains('o') => vec!["--offsets"],
        "ptype" | "whatis" => vec![],
        "x" if format.starts_with('-') => vec![&negative],
        "x" => vec!["--format", format],
        // Values without a format here are shown according to their type, as in gdb.
        _ if format == "s" => vec!["--format", "natural"],
        _ => vec!["--format", format],
    };
    // gdb shows the last value again.
    let last = (verb == "print" && words.len() == 1).then_some("$");
    let options = options.into_iter().chain(last).map(str::to_owned);
    let first = std::iter::once(verb.to_owned());
    first
        .chain(options)
        .chain(words[1..].iter().cloned())
        .collect()
}

/// The words for `info SUBJECT ..`. Options may precede the subject.
fn about(words: &[String]) -> Option<Vec<String>> {
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

/// What names a frame: `level 1`, `function main`, `1`.
fn a_frame(words: &[String]) -> Vec<String> {
    match words {
        [level, rest @ ..] if level == "level" && !rest.is_empty() => rest.to_vec(),
        [function, rest @ ..] if function == "function" && !rest.is_empty() => {
            put("--function", rest)
        }
        _ => words.to_vec(),
    }
}

/// Returns how many words options take at the beginning.
fn options_len(words: &[String]) -> usize {
    let mut len = 0;
    while let Some(word) = words.get(len).filter(|word| word.starts_with("--")) {
        let takes_value = matches!(word.as_str(), "--session" | "--program" | "--color");
        len += 1 + usize::from(takes_value);
    }
    len.min(words.len())
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

/// Returns the verb whose help these words request: `tbreak`, `info locals`.
pub fn verb_of(words: Vec<String>) -> Vec<String> {
    let is_whole_command = matches!(words.as_slice(), [info] if info == "info");
    match is_whole_command {
        true => words,
        false => ours(words).into_iter().take(1).collect(),
    }
}

/// `bt 5`, `bt -5`, `bt full`, `bt full 5`.
fn backtrace(words: &[String]) -> Vec<String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let word = |word: &String| match (word.as_str(), word.strip_prefix('-')) {
        ("full" | "-full", _) => vec!["--locals".to_owned()],
        (_, Some(number)) if !number.is_empty() && is_number(number) => {
            vec!["--outermost".to_owned(), number.to_owned()]
        }
        (number, _) if is_number(number) => vec!["--limit".to_owned(), number.to_owned()],
        _ => vec![word.clone()],
    };
    let follows_option = |at: usize| words[at].starts_with("--") && words[at] != "--all";
    let mut out = vec![words[0].clone()];
    for (at, text) in words.iter().enumerate().skip(1) {
        match follows_option(at - 1) {
            true => out.push(text.clone()),
            false => out.extend(word(text)),
        }
    }
    out
}

/// Says whether a word after `where` is one of gdb's, which is a backtrace: `5`, `-5`, `full`.
fn is_of_backtrace(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number || digits == "full"
}

/// `thread apply all bt`, `thread apply 1 2 p x`.
fn threads(words: &[String]) -> Option<Vec<String>> {
    let text: Vec<&str> = words.iter().map(String::as_str).collect();
    match text.as_slice() {
        ["apply", "all", "bt" | "backtrace" | "where", ..] => {
            let mut out = backtrace(&words[2..]);
            out[0] = "backtrace".to_owned();
            out.insert(1, "--all".to_owned());
            Some(out)
        }
        ["apply", ..] => Some(applied(&words[1..])),
        _ => None,
    }
}

/// The threads, and a verb with its words.
fn applied(words: &[String]) -> Vec<String> {
    let (threads, verb) = words.split_at(applied_at(words));
    let mut out = put("thread-apply", threads);
    out.extend(match verb.first().map(String::as_str) {
        Some("where") => put("backtrace", &verb[1..]),
        _ => ours(verb.to_vec()),
    });
    out
}

/// Returns the index of the verb behind the options and threads of `thread apply`: `all`, or numbers.
pub fn applied_at(words: &[String]) -> usize {
    let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
    let options = options_len(words);
    let threads = words[options..].iter();
    let threads = threads.take_while(|word| *word == "all" || is_number(word));
    options + threads.count()
}

fn with_option(verb: &str, rest: &[String], option: &str) -> Vec<String> {
    let verb = std::iter::once(verb.to_owned());
    let option = std::iter::once(option.to_owned());
    verb.chain(rest.iter().cloned()).chain(option).collect()
}

/// `set var x = 3`, `set x = 3`, `set x += 3`, `set var x++`; `None` for `set x 3`.
fn assignment(words: &[String]) -> Option<Vec<String>> {
    let is_variable = matches!(words.first()?.as_str(), "var" | "variable");
    let words = if is_variable { &words[1..] } else { words };
    let text = words.join(" ");
    // They are no assignments here. The evaluator says what to write.
    let is_step = text.ends_with("++") || text.ends_with("--");
    if is_step && (is_variable || words.len() == 1) {
        return Some(vec!["eval".to_owned(), text]);
    }
    let (name, operator, value) = assigned(&text)?;
    // The value of `set x 'a = b'` is one word.
    let is_apart = is_variable
        || words[0].contains('=')
        || words.get(1).is_some_and(|word| word.starts_with(operator));
    if is_apart && operator == "=" && is_kept(name) {
        return Some(vec!["set".to_owned(), name.to_owned(), value.to_owned()]);
    }
    is_apart.then(|| vec!["eval".to_owned(), text])
}

/// Splits an assignment into its target, its operator and its value.
fn assigned(text: &str) -> Option<(&str, &str, &str)> {
    const COMPOUND: [&str; 10] = ["<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"];
    let at = text.find('=')?;
    let (before, value) = (&text[..at], &text[at + 1..]);
    let name = COMPOUND.iter().find_map(|sign| before.strip_suffix(sign));
    let name = name.unwrap_or(before);
    let operator = &text[name.len()..=at];
    let is_compared = value.starts_with('=') || name.trim_end().ends_with(['=', '!', '<', '>']);
    let is_assignment = !is_compared && !name.trim().is_empty();
    is_assignment.then(|| (name.trim(), operator, value.trim()))
}

/// `set print pretty on`: what follows the target is one value.
fn with_one_value(words: &[String]) -> Option<Vec<String>> {
    let has_options = words.iter().any(|word| word.starts_with("--"));
    let (target, value) = words.split_first()?;
    (value.len() > 1 && !has_options)
        .then(|| vec!["set".to_owned(), target.clone(), value.join(" ")])
}

/// Returns whether a target is a convenience variable, which needs no program.
fn is_kept(target: &str) -> bool {
    server::inspect::kept_name(target).is_some()
}

/// Returns whether a word that follows a verb with an expression is a negative operand: `-7/2`, `-x`, `-(a + b)`.
pub fn is_negative(word: &str) -> bool {
    let Some(text) = word.strip_prefix('-') else {
        return false;
    };
    let begins = |c: char| c.is_ascii_alphanumeric() || "_($*.".contains(c);
    // `-h` asks for help.
    text.starts_with(begins) && text != "h"
}

/// Returns whether a word that follows a verb with a location is one before the current line: `-2`.
pub fn is_offset(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
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

    fn of(line: &str) -> String {
        ours(line.split(' ').map(str::to_owned).collect()).join(" ")
    }

    #[test]
    fn what_fingers_know_is_understood() {
        for (theirs, here) in [
            ("x/4xw &a", "x --format 4xw &a"),
            ("x /2i $pc", "x --format 2i $pc"),
            ("x $sp", "x $sp"),
            ("p/x a + 1", "print --format x a + 1"),
            ("print /t a", "print --format t a"),
            ("p/s name", "print --format natural name"),
            ("output 10", "print 10"),
            ("output --tail 10", "output --tail 10"),
            ("output", "output"),
            ("p a / b", "p a / b"),
            ("call/x f(1)", "eval --format x f(1)"),
            ("info locals", "locals"),
            ("i r rax", "registers rax"),
            ("info handle 14", "info-signals 14"),
            ("info watchpoints", "watch list"),
            ("info functions -q -n add", "info-functions add"),
            ("info locals -q", "locals"),
            ("p", "print $"),
            ("p/x", "print --format x $"),
            ("p -pretty -- *n", "p *n"),
            ("print -elements 4 -pretty on -- a", "print a"),
            ("p/x -array -- a", "print --format x a"),
            ("p -array", "p -array"),
            ("whatis/x a", "whatis a"),
            ("u", "until"),
            ("until 12", "until 12"),
            ("up -1", "down 1"),
            ("down -2", "up 2"),
            ("up 2", "up 2"),
            ("taas p x", "thread-apply all p x"),
            ("taas bt 2", "backtrace --all --limit 2"),
            ("taas", "backtrace --all"),
            ("delete breakpoints 2-3", "break remove 2 3"),
            ("delete breakpoints", "break remove --all"),
            ("disable breakpoints 2", "break disable 2"),
            ("delete display 1-2", "undisplay 1 2"),
            ("delete display", "undisplay --all"),
            ("i b", "info-breakpoints"),
            ("info address total", "info-address total"),
            ("info scope settle", "info-scope settle"),
            ("info proc", "info-proc"),
            ("info source", "info-source"),
            ("info sh", "info-shared"),
            ("info line 36", "info-line 36"),
            ("info fun ^parse", "info-functions ^parse"),
            ("info var", "info-variables"),
            ("info app", "info app"),
            ("info --session 1 locals", "locals --session 1"),
            ("info --json line 3", "info-line --json 3"),
            ("info --json app", "info --json app"),
            ("info --session", "info --session"),
            ("delete", "break remove --all"),
            ("list 10, 12 --json", "source 10,12 --json"),
            ("list --json 10,12", "list --json 10,12"),
            ("list --session 1 10,12", "list --session 1 10,12"),
            ("list 10,12 --session 1", "list 10,12 --session 1"),
            ("list --context 2 10, 12", "source --context 2 10,12"),
            ("list 10, 12 --context=2", "source 10,12 --context=2"),
            ("list --json -", "source --json --previous"),
            (
                "thread --json --session 1 apply all bt",
                "backtrace --json --session 1 --all",
            ),
            ("thread apply all p x --type", "thread-apply all p x --type"),
            ("set --session 1 var x = 3", "eval --session 1 x = 3"),
            ("set var x = 3 --session 1", "eval x = 3 --session 1"),
            ("set print pretty on --json", "set print pretty on --json"),
            (
                "save --session 1 breakpoints f",
                "save-breakpoints --session 1 f",
            ),
            ("step --session 1 back", "step-back --session 1"),
            ("n --json back 2", "next-back --json 2"),
            ("continue --session 1 back", "reverse-continue --session 1"),
            ("finish back", "reverse-finish"),
            (
                "frame --session 1 function main",
                "frame --session 1 --function main",
            ),
            ("x --session 1 /4xw &a", "x --session 1 --format 4xw &a"),
            ("delete --session 1 2-3", "break --session 1 remove 2 3"),
            ("delete --all", "break remove --all"),
            ("p --json", "print --json $"),
            ("step back 3", "step-back 3"),
            ("delete all", "break remove --all"),
            ("delete 2", "break remove 2"),
            ("delete 2-4 7", "break remove 2 3 4 7"),
            ("disable 1-2", "break disable 1 2"),
            ("undisplay 1-2", "undisplay 1 2"),
            ("delete 4-2", "break remove 4-2"),
            ("delete 1-4294967295", "break remove 1-4294967295"),
            ("watch -l p->n", "watch p->n"),
            ("awatch -location p->n", "watch p->n --access"),
            ("x/-2xw &a", "x --format=-2xw &a"),
            ("x /-3i $pc", "x --format=-3i $pc"),
            ("p /-2x a", "p /-2x a"),
            ("info signals", "info-signals"),
            ("i", "i"),
            ("tbreak main", "break --once main"),
            ("br f if i == 3", "break f if i == 3"),
            ("set $n = a + 1", "set $n a + 1"),
            ("set var $n = 1", "set $n 1"),
            ("set $rax = 1", "eval $rax = 1"),
            ("set var x += 1", "eval x += 1"),
            ("set x <<= 1", "eval x <<= 1"),
            ("set x-=1", "eval x-=1"),
            ("set var x++", "eval x++"),
            ("set x--", "eval x--"),
            ("set x a<=b", "set x a<=b"),
            ("set var 3", "set var 3"),
            ("list -", "source --previous"),
            ("bt 5", "bt --limit 5"),
            ("bt full 3", "bt --locals --limit 3"),
            ("bt -5", "bt --outermost 5"),
            ("bt full -1", "bt --locals --outermost 1"),
            ("p/f x", "print --format f x"),
            ("p/z x", "print --format z x"),
            ("display/i $pc", "display /i $pc"),
            ("display /x n", "display /x n"),
            ("display n", "display n"),
            ("bt --limit 5", "bt --limit 5"),
            ("bt --thread 5 3", "bt --thread 5 --limit 3"),
            ("thread apply all bt 2", "backtrace --all --limit 2"),
            ("thread apply all p x", "thread-apply all p x"),
            (
                "thread apply 7 8 p/x n",
                "thread-apply 7 8 print --format x n",
            ),
            ("thread apply all info locals", "thread-apply all locals"),
            ("thread apply 7 where", "thread-apply 7 backtrace"),
            ("thread 5", "thread 5"),
            ("si 3", "step --instruction 3"),
            ("ni", "next --instruction"),
            ("reverse-stepi 3", "step-back --instruction 3"),
            ("rsi", "step-back --instruction"),
            ("reverse-nexti", "next-back --instruction"),
            ("rni 2", "next-back --instruction 2"),
            ("list 10,20", "list 10,20"),
            ("list 10, 20", "source 10,20"),
            ("rwatch x", "watch x --read"),
            ("d 2", "break remove 2"),
            ("d", "break remove --all"),
            ("disable 2", "break disable 2"),
            ("set var x = 3", "eval x = 3"),
            ("set x = 3", "eval x = 3"),
            ("set $rax=5", "eval $rax=5"),
            ("set x 3", "set x 3"),
            ("set x a==b", "set x a==b"),
            ("disas /s main", "disassemble --source main"),
            ("disas $pc, +32", "disassemble $pc,+32"),
            ("f 2", "frame 2"),
            ("frame function main", "frame --function main"),
            ("f level 1", "frame 1"),
            ("info frame", "info-frame"),
            ("i f 2", "info-frame 2"),
            ("info frame level 1", "info-frame 1"),
            ("info frame function main", "info-frame --function main"),
            ("where", "where"),
            ("where 3", "backtrace --limit 3"),
            ("where -2", "backtrace --outermost 2"),
            ("where full", "backtrace --locals"),
            ("where --full", "where --full"),
        ] {
            assert_eq!(of(theirs), here, "{theirs}");
        }
        assert!(ours(Vec::new()).is_empty());
    }

    #[test]
    fn what_follows_the_target_of_set_is_one_value() {
        let of = |line: &str| ours(line.split(' ').map(str::to_owned).collect());
        assert_eq!(of("set print pretty on"), ["set", "print", "pretty on"]);
        assert_eq!(of("set x a + 1"), ["set", "x", "a + 1"]);
        assert_eq!(of("set x 3 --json"), ["set", "x", "3", "--json"]);
    }

    #[test]
    fn help_is_about_the_verb_here() {
        let of = |line: &str| {
            let words = line.split(' ').map(str::to_owned).collect();
            verb_of(words).join(" ")
        };
        assert_eq!(of("tbreak"), "break");
        assert_eq!(of("info locals"), "locals");
        assert_eq!(of("delete"), "break");
        assert_eq!(of("info"), "info");
        assert_eq!(of("record"), "record");
    }

    #[test]
    fn a_minus_before_an_operand_is_no_option() {
        for text in ["-7/2", "-x", "-(a)", "-*p", "-$rax", "-.5"] {
            assert!(is_negative(text), "{text}");
        }
        for text in ["--json", "-", "-h", "x"] {
            assert!(!is_negative(text), "{text}");
        }
    }
}
