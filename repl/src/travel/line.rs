//! Splits a line into words, with quotes and the alternative spellings of verbs.
//!
//! Quotes work as in a shell, so that a command for the shell can be typed here. Verbs that take an expression are an
//! exception: quotes belong to the expression, except single quotes around all of it.

use server::verbs::{Description, Does, Needs, Takes, find};

use crate::spelling;

/// Verbs that take a condition in SQL, which has quoted texts.
const CONDITIONS: [&str; 2] = ["continue-where", "reverse-continue-where"];

/// The verb whose text stays as it is written, with its spaces and quotes.
const VERBATIM: &str = "echo";

/// Verbs that step through the differences of two recordings.
const DIFFERENCES: [&str; 2] = ["next-difference", "previous-difference"];

/// The first words of SQL.
const SQL: [&str; 3] = ["select", "with", "explain"];

/// Returns whether a line is SQL.
pub fn is_sql(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphanumeric()).next();
    first.is_some_and(|first| SQL.iter().any(|word| first.eq_ignore_ascii_case(word)))
}

/// Returns what an empty line does after a line: the same again, or what follows it. `None` if the line changes
/// something, or is not a verb.
pub fn again(words: &[String], text: &str) -> Option<String> {
    let verb = words.first()?;
    match find(verb).map(|verb| verb.name) {
        // Without an address, `memory` continues.
        Some("x") => {
            let format = words.iter().skip(1).take_while(|word| *word == "--format");
            let kept = 1 + 2 * format.count();
            Some(words[..kept.min(words.len())].join(" "))
        }
        Some("source") => Some(match words.iter().any(|word| word == "--previous") {
            true => "list --previous".to_owned(),
            false => "list --next".to_owned(),
        }),
        Some(_) if find(verb).is_some_and(|verb| verb.does == Does::Look) => Some(text.to_owned()),
        _ => is_motion(verb).then(|| text.to_owned()),
    }
}

/// Returns whether a verb moves on from the current position, so that repeating it is useful.
fn is_motion(verb: &str) -> bool {
    let moves_on = |verb: &Description| {
        verb.does == Does::Move
            && verb.takes == Takes::Others
            && verb.needs != Needs::RunningProgram
    };
    CONDITIONS.contains(&verb) || DIFFERENCES.contains(&verb) || find(verb).is_some_and(moves_on)
}

/// Returns the number of words up to the end of an expression; 0 if the verb takes none. After the expression of
/// `watch` come options with texts.
fn expression_end(words: &[String]) -> usize {
    let takes = |verb: &Description| verb.takes == Takes::Expression;
    let verb = words.first().and_then(|verb| find(verb));
    let Some(verb) = verb.filter(|verb| takes(verb)) else {
        return 0;
    };
    let is_option = |word: &String| verb.name == "watch" && word.starts_with("--");
    words.iter().position(is_option).unwrap_or(words.len())
}

/// Splits pasted text into lines that run one after the other. SQL may span lines, up to one that ends with `;`.
pub fn pasted(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let ends = rest.match_indices('\n').map(|(at, _)| at);
        let mut ends = ends.chain([rest.len()]);
        let is_whole =
            |at: &usize| !is_sql(rest.trim_start()) || rest[..*at].trim_end().ends_with(';');
        let end = ends.find(is_whole).unwrap_or(rest.len());
        lines.push(&rest[..end]);
        rest = rest[end..].strip_prefix('\n').unwrap_or_default();
    }
    lines
}

/// Splits a line into words and keeps the quotes.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(said) = verbatim(text) {
        words.push(VERBATIM.to_owned());
        // The space says that it is no option.
        words.extend((!said.is_empty()).then(|| format!(" {said}")));
        return words;
    }
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = word_end(rest);
        words.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    words
}

/// Returns the text of a line that is to be echoed.
fn verbatim(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix(VERBATIM)?;
    let is_whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
    is_whole.then(|| rest.trim_start())
}

/// Returns the end of the first word: white space outside quotes. An unclosed quote is an ordinary character.
fn word_end(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find(|c: char| c.is_whitespace() || c == '\'' || c == '"') {
        let at = from + at;
        let quote = text.as_bytes()[at];
        if quote != b'\'' && quote != b'"' {
            return at;
        }
        let closed = text[at + 1..].find(char::from(quote));
        from = closed.map_or(at + 1, |len| at + len + 2);
    }
    text.len()
}

/// Removes the quotes that a shell would remove.
pub fn unquoted(mut words: Vec<String>) -> Vec<String> {
    let verb = words.first().map(String::as_str).unwrap_or_default();
    if verb == VERBATIM || CONDITIONS.contains(&verb) {
        return words;
    }
    if verb == "thread-apply" {
        let verb = words.split_off(1 + spelling::applied_at(&words[1..]));
        words.extend(unquoted(verb));
        return words;
    }
    let end = expression_end(&words);
    let condition = condition_of_break(&words);
    for (index, word) in words.iter_mut().enumerate().skip(1) {
        let inner = match index < end || condition.is_some_and(|at| index > at) {
            false => within(word, '\'').or_else(|| within(word, '"')),
            // 'x' is a character literal.
            true if index + 1 == end || condition.is_some_and(|at| index == at + 1) => {
                within(word, '\'').filter(|inner| !is_letter(inner))
            }
            true => None,
        };
        if let Some(inner) = inner {
            *word = inner.to_owned();
        }
    }
    words
}

/// The position of `if` in `break LOCATION if CONDITION`. The condition is an expression and keeps its quotes.
fn condition_of_break(words: &[String]) -> Option<usize> {
    let verb = find(words.first()?)?;
    if verb.takes != Takes::Location {
        return None;
    }
    words.iter().position(|word| word == "if")
}

fn within(word: &str, quote: char) -> Option<&str> {
    let inner = word.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(quote)).then_some(inner)
}

fn is_letter(text: &str) -> bool {
    text.chars().count() <= 1 || text.starts_with('\\')
}

/// Replaces an alternative spelling of a verb by its name.
pub fn normal(words: Vec<String>) -> Vec<String> {
    let words = spelling::ours(words);
    let text: Vec<&str> = words.iter().map(String::as_str).collect();
    let (name, used): (&[&str], usize) = match text.as_slice() {
        ["next" | "n", "difference" | "diff", ..] => (&["next-difference"], 2),
        ["previous" | "prev", "difference" | "diff", ..] => (&["previous-difference"], 2),
        ["continue" | "c", "where", ..] => (&["continue-where"], 2),
        ["reverse-continue" | "rc", "where", ..] => (&["reverse-continue-where"], 2),
        ["back", "step", ..] => (&["step-back"], 2),
        ["back", "next", ..] => (&["next-back"], 2),
        ["back", ..] => (&["step-back"], 1),
        ["who", "wrote", ..] => (&["last-write"], 2),
        ["delete"] => (&["break", "remove", "--all"], 1),
        ["delete", ..] => (&["break", "remove"], 1),
        ["unwatch"] => (&["watch", "remove", "--all"], 1),
        ["unwatch", ..] => (&["watch", "remove"], 1),
        _ => return words,
    };
    let name = name.iter().map(|&word| word.to_owned());
    name.chain(words.iter().skip(used).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        unquoted(split(text))
    }

    #[test]
    fn verbs_are_known_by_all_their_names() {
        for (written, known) in [
            ("step back 3", "step-back 3"),
            ("s back", "step-back"),
            ("next back", "next-back"),
            ("next difference", "next-difference"),
            ("prev diff", "previous-difference"),
            ("continue where dur_ns > 5", "continue-where dur_ns > 5"),
            ("c back", "reverse-continue"),
            (
                "c back where dur_ns > 5",
                "reverse-continue-where dur_ns > 5",
            ),
            ("b parse", "b parse"),
            ("delete 3", "break remove 3"),
            ("delete", "break remove --all"),
            ("unwatch 2", "watch remove 2"),
            ("who wrote order.total", "last-write order.total"),
            ("print x", "print x"),
        ] {
            assert_eq!(normal(split(written)).join(" "), known);
        }
    }

    #[test]
    fn an_empty_line_goes_on() {
        let after = |text: &str| again(&normal(words(text)), text).unwrap_or_default();
        for (line, next) in [
            ("x/4xw &table", "x --format 4xw"),
            ("x &table + 4", "x"),
            ("list", "list --next"),
            ("list 10,20", "list --next"),
            ("list -", "list --previous"),
            ("bt 3", "bt 3"),
            ("next", "next"),
            ("continue where dur_ns > 5", "continue where dur_ns > 5"),
            ("print x", "print x"),
            ("break main", ""),
            ("set x 3", ""),
            ("frob", ""),
        ] {
            assert_eq!(after(line), next, "{line}");
        }
    }

    #[test]
    fn pasted_lines_are_taken_apart_and_sql_is_not() {
        for (text, expected) in [
            ("goto 5", &["goto 5"][..]),
            ("goto 5\nwhere\n", &["goto 5", "where"]),
            ("goto 5\n\nwhere", &["goto 5", "", "where"]),
            (
                "step\nselect 1,\n 2\n;\nwhere",
                &["step", "select 1,\n 2\n;", "where"],
            ),
            ("select 1\nfrom calls", &["select 1\nfrom calls"]),
            ("", &[]),
        ] {
            assert_eq!(pasted(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sql_is_told_by_its_first_word() {
        for text in [
            "select 1",
            "WITH x AS (select 1) select * from x",
            "explain select 1",
            "select*from calls",
        ] {
            assert!(is_sql(text), "{text}");
        }
        for text in ["selection", "print select", "goto 5", "withdraw"] {
            assert!(!is_sql(text), "{text}");
        }
    }

    #[test]
    fn quotes_are_those_of_a_shell_where_no_expression_stands() {
        for (text, expected) in [
            (
                "break a.c:3 --condition 'i > 3 && s == \"a b\"'",
                &["break", "a.c:3", "--condition", "i > 3 && s == \"a b\""][..],
            ),
            (
                "break f if s == \"a b\"",
                &["break", "f", "if", "s", "==", "\"a b\""],
            ),
            ("break f if 'i > 3'", &["break", "f", "if", "i > 3"]),
            ("logpoint f \"n = {n}\"", &["logpoint", "f", "n = {n}"]),
            ("note it's done", &["note", "it's", "done"]),
            ("note \"two  words\"", &["note", "two  words"]),
            ("print ''", &["print", "''"]),
            ("echo  it's  \"so\"\\n", &["echo", " it's  \"so\"\\n"]),
            (
                "thread-apply all print name == \"a  b\"",
                &["thread-apply", "all", "print", "name", "==", "\"a  b\""],
            ),
            ("echo --- 'a'", &["echo", " --- 'a'"]),
            ("echo", &["echo"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn quotes_of_an_expression_stay() {
        for (text, expected) in [
            (
                "print name == \"wing  nut\"",
                &["print", "name", "==", "\"wing  nut\""][..],
            ),
            ("print 'x'", &["print", "'x'"]),
            ("print '\\n'", &["print", "'\\n'"]),
            (
                "print --format hex 'orders[0] + 1'",
                &["print", "--format", "hex", "orders[0] + 1"],
            ),
            ("set name \"wing nut\"", &["set", "name", "\"wing nut\""]),
            (
                "watch name == \"a b\" --condition 'i > 3'",
                &["watch", "name", "==", "\"a b\"", "--condition", "i > 3"],
            ),
            ("set name '\"wing nut\"'", &["set", "name", "\"wing nut\""]),
            (
                "p stock[\"bolt\"].counts[2]",
                &["p", "stock[\"bolt\"].counts[2]"],
            ),
            ("p c == 'x' + 1", &["p", "c", "==", "'x'", "+", "1"]),
            (
                "continue-where function = 'two words'",
                &["continue-where", "function", "=", "'two words'"],
            ),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }
}
