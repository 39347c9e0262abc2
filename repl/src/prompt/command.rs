//! Commands of the prompt that are not SQL: `\d`, `\timing`, `\format`, `\rows`, `\x`, help and quit.

use clap::ValueEnum;

use super::complete::COMMANDS;
use crate::ask::Records;
use crate::error::Error;
use crate::format::Format;
use crate::suggest;

/// A line at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Nothing,
    Quit,
    Help,
    /// `\d`: the tables.
    Tables,
    /// `\d TABLE`: its columns.
    Columns(&'a str),
    /// `\timing`: `None` toggles it.
    Timing(Option<bool>),
    /// `\format`: `None` shows the current one.
    Format(Option<Format>),
    /// `\rows`: `None` shows the current limit, 0 means all.
    Rows(Option<usize>),
    /// `\x`: `None` toggles it.
    Records(Option<Records>),
    /// `\refresh`: show what a live recording has recorded since.
    Refresh,
    /// The SQL as written, including white space, so that errors name the right line.
    Sql(&'a str),
}

/// Words that are commands. No SQL of one word is similar to them.
const WORDS: [&str; 3] = ["help", "quit", "exit"];

/// What `help` shows.
pub const HELP: &str = "\
Type SQL; it ends with ; or an empty line. Tab completes tables, columns, SQL
and, inside quotes, the names of recorded functions.

  \\d                the tables, and the functions that give one
  \\d TABLE          its columns; \\d FUNCTION those of its table
  \\format [FORMAT]  table, csv, json or jsonl
  \\rows [N]         show at most N rows of a table, 0 for all
  \\x [on|off|auto]  show one column per line
  \\timing [on|off]  show how long each answer took
  \\refresh          see what a live recording recorded meanwhile
  help, \\?          this text
  quit, \\q, Ctrl-D  leave
  Ctrl-C            stop the question

Examples:
  select function, count(*) from calls group by function order by 2 desc;
  select start_seq, dur_ns, args from calls where function = 'parse';
  select * from gaps;
";

/// The first words of statements, including those that are refused.
const BEGINNINGS: &[&str] = &[
    "alter",
    "analyze",
    "begin",
    "call",
    "commit",
    "copy",
    "create",
    "deallocate",
    "delete",
    "desc",
    "describe",
    "drop",
    "execute",
    "explain",
    "from",
    "grant",
    "insert",
    "load",
    "merge",
    "prepare",
    "replace",
    "reset",
    "revoke",
    "rollback",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "update",
    "use",
    "values",
    "with",
];

/// Returns whether `text` is a line that runs without a `;`.
pub fn stands_alone(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with(['\\', '.']) || word(text).is_some()
}

/// Returns whether `text` does not begin like a statement, so that further lines cannot complete it.
pub fn begins_wrong(text: &str) -> bool {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let first = text[..end].to_lowercase();
    !first.is_empty() && !BEGINNINGS.contains(&first.as_str())
}

/// Parses the commands that are words, as in other programs.
fn word(text: &str) -> Option<Line<'static>> {
    let text = text.trim_end_matches(';').trim_end().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["help" | "?"] => Some(Line::Help),
        ["quit" | "exit"] => Some(Line::Quit),
        ["show", "tables"] => Some(Line::Tables),
        _ => None,
    }
}

/// Parses a complete line.
///
/// # Errors
/// When the line begins with `\` but is not a command; the error names the nearest one.
pub fn parse(text: &str) -> Result<Line<'_>, Error> {
    let whole = text;
    let text = text.trim();
    if let Some(line) = word(text) {
        return Ok(line);
    }
    if text.is_empty() {
        return Ok(Line::Nothing);
    }
    if !text.starts_with(['\\', '.']) {
        return match WORDS.iter().find(|word| suggest::is_slip(text, word)) {
            Some(word) => Err(Error::usage(
                format!("there is no command {text}"),
                Some(format!("did you mean {word}?")),
            )),
            None => Ok(Line::Sql(whole)),
        };
    }
    let text = text.trim_end_matches(';').trim_end();
    let (command, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let argument = argument.trim();
    match (command, argument) {
        ("\\q" | "\\quit" | "\\exit" | ".quit" | ".exit", "") => Ok(Line::Quit),
        ("\\?" | "\\h" | "\\help" | ".help", "") => Ok(Line::Help),
        ("\\refresh", "") => Ok(Line::Refresh),
        ("\\d" | "\\dt" | ".tables" | ".schema", "") => Ok(Line::Tables),
        ("\\d" | ".schema", table) => Ok(Line::Columns(table)),
        ("\\timing", argument) => switch(command, argument).map(Line::Timing),
        ("\\format", "") => Ok(Line::Format(None)),
        ("\\format", name) => format(name).map(|format| Line::Format(Some(format))),
        ("\\rows", "") => Ok(Line::Rows(None)),
        ("\\rows", count) => match count.replace([',', '_'], "").parse() {
            Ok(count) => Ok(Line::Rows(Some(count))),
            Err(_) => Err(Error::usage(
                format!("\\rows takes a number, not \"{count}\""),
                None,
            )),
        },
        ("\\x", "auto") => Ok(Line::Records(Some(Records::Auto))),
        ("\\x", argument) => switch(command, argument)
            .map(|on| Line::Records(on.map(|on| if on { Records::On } else { Records::Off }))),
        _ => Err(unknown(command, argument)),
    }
}

fn switch(command: &str, argument: &str) -> Result<Option<bool>, Error> {
    match argument {
        "" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => Err(Error::usage(
            format!("{command} takes on or off, not \"{other}\""),
            None,
        )),
    }
}

fn format(name: &str) -> Result<Format, Error> {
    Format::from_str(name, true).map_err(|_| {
        let near =
            suggest::nearest(name, Format::NAMES).map(|near| format!("did you mean {near}?"));
        let help = near.unwrap_or_else(|| format!("the formats are {}", Format::NAMES.join(", ")));
        Error::usage(format!("there is no format \"{name}\""), Some(help))
    })
}

fn unknown(command: &str, argument: &str) -> Error {
    if COMMANDS.contains(&command) {
        return Error::usage(
            format!("{command} takes nothing after it, not \"{argument}\""),
            None,
        );
    }
    let help = match suggest::nearest(&command.replacen('.', "\\", 1), COMMANDS) {
        Some(near) => format!("did you mean {near}? \"help\" lists the commands"),
        None => "\"help\" lists the commands".to_owned(),
    };
    Error::usage(format!("there is no command {command}"), Some(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let cases = [
            ("", Line::Nothing),
            ("  quit ; ", Line::Quit),
            ("HELP", Line::Help),
            ("\\?", Line::Help),
            ("\\d", Line::Tables),
            ("\\d calls;", Line::Columns("calls")),
            ("\\timing", Line::Timing(None)),
            ("\\timing off", Line::Timing(Some(false))),
            ("\\format JSON", Line::Format(Some(Format::Json))),
            ("\\rows 10_000", Line::Rows(Some(10_000))),
            ("\\x auto", Line::Records(Some(Records::Auto))),
            ("\\x on", Line::Records(Some(Records::On))),
            ("Show  Tables;", Line::Tables),
            (".schema calls", Line::Columns("calls")),
            (".quit", Line::Quit),
            ("\nselect 1;", Line::Sql("\nselect 1;")),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest_word() {
        let help = |text: &str| parse(text).unwrap_err().help();
        assert_eq!(
            help("\\timng").as_deref(),
            Some("did you mean \\timing? \"help\" lists the commands")
        );
        assert_eq!(help("\\format jsn").as_deref(), Some("did you mean json?"));
        assert_eq!(help("helo").as_deref(), Some("did you mean help?"));
        assert_eq!(help("qiut").as_deref(), Some("did you mean quit?"));
        assert_eq!(
            parse("\\q now").unwrap_err().to_string(),
            "\\q takes nothing after it, not \"now\""
        );
        assert_eq!(
            parse("\\rows many").unwrap_err().to_string(),
            "\\rows takes a number, not \"many\""
        );
    }
}
