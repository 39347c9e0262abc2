//! The text of `help`: an overview of the verbs from their descriptions, and the words that only the prompt knows.

use std::fmt::Write;

use server::verbs::{ALL, Description, Does, Needs};

/// Other spellings of verbs.
const WORDS: &str = "\
Written otherwise
  step back, next back, finish back, continue back   backwards
  continue where CONDITION     to the next matching call: dur_ns > 1000000
  delete N, unwatch N          break remove N, watch remove N
  who wrote EXPRESSION         last-write EXPRESSION
  compare RECORDING            compares this recording with another one
  next difference, previous difference, other VERB
  SELECT ...                   SQL over everything recorded so far
";

const OTHERS: &str = "\
Others
  help VERB, alias NAME = VERB ..., unalias NAME, quit
  commands N ... end
";

const UNKNOWN: &str = "\n\
Unknown values print as <unknown: ...>; stale values name the event at which they were seen.
";

/// Returns an overview of all verbs, for a live program or for a recorded moment. `written` are the verbs of the
/// command line.
pub fn all(live: bool, written: &[String]) -> String {
    let is_there = |verb: &&Description| {
        let needs_a_program = matches!(
            verb.needs,
            Needs::Control
                | Needs::Program
                | Needs::RunningProgram
                | Needs::StoppedProgram
                | Needs::Daemon
        );
        (live || !needs_a_program) && written.contains(&written_name(verb))
    };
    let mut text = String::new();
    for (heading, does) in [
        ("Moves", Does::Move),
        ("Looks", Does::Look),
        ("Changes", Does::Change),
    ] {
        text += heading;
        text.push('\n');
        let verbs = ALL.iter().filter(is_there);
        for verb in verbs.filter(|verb| verb.does == does) {
            let first = verb.doc.lines().next().unwrap_or_default();
            // Writing to a String cannot fail.
            _ = writeln!(text, "  {:<18} {first}", written_name(verb));
        }
    }
    text += WORDS;
    text += OTHERS;
    if !live {
        text += UNKNOWN;
    }
    text
}

/// Breaks lines between words, where they are longer than so many columns. What follows stands below the second column of
/// a line that has one.
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        let second = line[own..].find("  ").map(|gap| {
            let rest = &line[own + gap..];
            own + gap + rest.len() - rest.trim_start().len()
        });
        let indent = second.unwrap_or(own).min(columns / 2);
        let (mut rest, mut before) = (line, 0);
        while before + rest.chars().count() > columns {
            let room = columns.saturating_sub(before);
            let least = if before == 0 { indent } else { 0 };
            let end = rest
                .char_indices()
                .nth(room + 1)
                .map_or(rest.len(), |(at, _)| at);
            let space = rest[..end].rfind(' ').filter(|at| *at > least);
            // A word that is longer than a line stays whole.
            let Some(space) = space.or_else(|| rest.find(' ').filter(|at| *at > least)) else {
                break;
            };
            out += rest[..space].trim_end();
            out.push('\n');
            out += &" ".repeat(indent);
            (rest, before) = (rest[space..].trim_start(), indent);
        }
        out += rest;
        out.push('\n');
    }
    out
}

fn written_name(verb: &Description) -> String {
    verb.name.replace('_', "-")
}

/// Verbs of the prompt itself.
const OWN: [(&[&str], &str); 7] = [
    (
        &["alias", "unalias"],
        "Give a name to a verb with some of its words

  alias NAME = VERB ...   alias px = print --format hex
  alias, alias NAME       all aliases; one of them
  unalias NAME            forget it

A prompt keeps its aliases in ~/.config/hindsight/aliases; those of a script end with
the script. Words after the name are added to its meaning.
",
    ),
    (
        &["continue-where", "reverse-continue-where"],
        "Go to the next call that matches a condition, or to the previous one

  continue where CONDITION
  reverse-continue where CONDITION

The condition is one of SQL over the columns of calls, or of events:
  continue where dur_ns > 1000000
  continue where kind = 'stdout'
",
    ),
    (
        &["compare", "next-difference", "previous-difference", "other"],
        "Compare this recording, A, with another one of the program, B, side by side

  compare RECORDING      what differs, first the function that most likely made it
  compare, compare --off show that again; end the comparison
  next difference        go to the next difference, in both; previous difference
  goto PLACE             goes there in A, and in B to what belongs to it
  other VERB ...         the verb in B: other where, other print total

hindsight.toml in the working directory lists what to ignore, as for hindsight compare.
",
    ),
    (
        &["help", "?"],
        "Show all verbs, or what one of them takes: help VERB\n",
    ),
    (
        &["quit", "exit", "q"],
        "Leave. A program that was started here is ended and its recording closed;
one that was started elsewhere or attached to goes on under the daemon.

  quit --keep   let a program that was started here go on too
",
    ),
    (
        &["select", "with", "explain"],
        "SQL over everything recorded: SELECT * FROM calls ORDER BY dur_ns DESC LIMIT 10
The tables are those of: hindsight sql RECORDING, \\d
",
    ),
    (
        &["goto-live"],
        "Return from the past to the program as it is now\n",
    ),
];

/// Returns the help of a verb of the prompt itself.
pub fn of(verb: &str) -> Option<&'static str> {
    let verb = verb.to_lowercase();
    let found = OWN.iter().find(|(names, _)| names.contains(&&*verb));
    found.map(|(_, text)| *text)
}

/// Returns whether a verb is one of the prompt itself.
pub fn is_own(verb: &str) -> bool {
    verb != "goto-live" && of(verb).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_broken() {
        let text =
            "Moves\n  step               Continue to the next line\n  averylongwordthatexceeds x\n";
        let wrapped = wrapped(text, 32);
        assert_eq!(
            wrapped,
            "Moves\n  step               Continue to\n                the next line\n  averylongwordthatexceeds x\n"
        );
        assert_eq!(super::wrapped(text, 80), text);
    }

    #[test]
    fn the_overview_fits_narrow_terminals() {
        let written: Vec<String> = ALL.iter().map(written_name).collect();
        let text = all(true, &written);
        for columns in [40, 60, 80] {
            let narrow = wrapped(&text, columns);
            let widest = narrow.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{narrow}");
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&narrow), words(&text));
        }
    }
}
