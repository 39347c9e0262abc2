//! Hints in the words of the tools: commands and options in a hint become tools and parameters.
//!
//! A model may have no shell. Only hints are translated: a message or a value may quote the program.

use serde_json::json;
use server::past::SECOND_RUN;
use server::protocol::{Failure, Notice};

/// Returns the phrases of hints about the command line, and their counterparts here.
fn phrases() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = include_str!("words.txt").lines();
    let rows = rows.filter(|row| !row.starts_with('#'));
    rows.filter_map(|row| row.strip_suffix('|')?.split_once('|'))
}

/// Writes a hint in the words of the tools.
pub fn of_tools(hint: &str) -> String {
    let mut text = hint.to_owned();
    for (command, tool) in phrases() {
        if text.contains(command) {
            text = text.replace(command, tool);
        }
    }
    events_in_tools(&text)
}

/// Writes the hints in the reasons of a text's unknown values in the words of the tools. The values themselves stay as they are.
pub fn in_values(text: &str) -> String {
    let mut parts = text.split(UNKNOWN);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (reason, rest) = part.split_at(part.find('>').unwrap_or(part.len()));
        told += UNKNOWN;
        told += &of_tools(reason);
        told += rest;
    }
    told
}

/// What stands before the reason why a value is unknown.
const UNKNOWN: &str = "<unknown: ";

/// Writes `goto 61` as a call of a tool.
fn events_in_tools(hint: &str) -> String {
    let mut parts = hint.split("goto ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (seq, rest) = part.split_at(digits);
        match seq {
            "" => text += &format!("goto {part}"),
            _ => text += &format!(r#"debug_goto {{"to": {seq}}}{rest}"#),
        }
    }
    text
}

/// What the message of a verb that a recording refuses says behind the verb's name.
const NEEDS_A_PROGRAM: &str = " needs a program that runs, and this is a recording";

/// Writes the hint of a failure in the words of the tools, and its message if that names a verb.
pub fn failure(mut failure: Failure) -> Failure {
    failure.hint = failure.hint.as_deref().map(with_second_run);
    if failure.message.ends_with(NEEDS_A_PROGRAM) {
        failure.message = format!("this tool{NEEDS_A_PROGRAM}");
    }
    failure
}

/// Writes the hint of a notice in the words of the tools.
pub fn notice(mut notice: Notice) -> Notice {
    notice.hint = notice.hint.as_deref().map(of_tools);
    notice
}

/// Returns the call of a tool for a command that would show more about a value in a second run: a model may have no
/// shell.
pub fn second_run(command: &str, expression: &str) -> Option<String> {
    let in_tools = of_tools(command);
    if command.contains("--memory") && in_tools != command {
        return Some(in_tools);
    }
    let goes_there = command.split_once(", then: goto ");
    if let Some((seq, then)) = goes_there.and_then(|(_, then)| then.split_once(", and next ")) {
        let step = r#"debug_continue {"action": "step-over"}"#;
        return Some(format!(r#"debug_goto {{"to": {seq}}}, and {step} {then}"#));
    }
    let place = command.split_once("--log-writes ").map(|(_, place)| place);
    let asked = match place.filter(|place| place.starts_with("0x")) {
        Some(address) => json!({ "noAslr": true, "logWrites": [address] }),
        None if command.contains("--full") => {
            let asked = json!({ "full": true });
            let then = full_answers(command, expression);
            return Some(format!("debug_launch with {asked}, then {then}"));
        }
        None if command.contains("--no-aslr") => {
            let asked = json!({ "noAslr": true });
            return Some(format!(
                "debug_launch with {asked}, then ask this again there"
            ));
        }
        None if place.is_some() => {
            let place = place.and_then(unquoted).unwrap_or(expression);
            json!({ "logWrites": [place] })
        }
        None if command.contains("--watch") => json!({ "watch": [expression] }),
        None => return None,
    };
    Some(format!("debug_launch with {asked}"))
}

/// Writes a hint that may end with the command of a second run in the words of the tools.
fn with_second_run(hint: &str) -> String {
    let asked = hint.split_once(SECOND_RUN);
    let call = asked.and_then(|(before, command)| {
        let call = second_run(command, "the same expression")?;
        Some(format!("{}{SECOND_RUN}{call}", of_tools(before)))
    });
    call.unwrap_or_else(|| of_tools(hint))
}

/// Returns the text in quotes at the beginning of a part of a command; `None` if it has quotes in it.
fn unquoted(part: &str) -> Option<&str> {
    let (text, rest) = part.strip_prefix('\'')?.split_once('\'')?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(text)
}

/// What to ask a recording of every instruction, as the command says it.
fn full_answers(command: &str, expression: &str) -> String {
    let lines = "next through the lines of ";
    match command.split_once(lines) {
        Some((_, function)) => format!(
            r#"in that recording debug_goto to a call of {function}, and debug_continue {{"action": "step-over"}} through its lines"#
        ),
        None => format!("debug_history with lastWrite of {expression} in that recording"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use server::protocol::NoticeKind;

    use super::*;

    #[test]
    fn each_row_is_a_phrase_and_its_counterpart() {
        let rows = include_str!("words.txt").lines();
        let rows = rows.filter(|row| !row.starts_with('#'));
        assert_eq!(phrases().count(), rows.count());
        assert!(phrases().all(|(phrase, tool)| !phrase.is_empty() && !tool.contains('|')));
    }

    #[test]
    fn a_refused_verb_is_a_tool() {
        let message = "await needs a program that runs, and this is a recording";
        let refused = failure(Failure::bad_request(message));
        assert_eq!(
            refused.message,
            "this tool needs a program that runs, and this is a recording"
        );
    }

    #[test]
    fn a_second_run_in_a_hint_is_a_call_of_a_tool() {
        let hint = format!("{SECOND_RUN}hindsight rerun app --log-writes 'heap[3]'");
        let told = failure(Failure::bad_request("the pointer is null").hint(hint));
        let wanted = format!(r#"{SECOND_RUN}debug_launch with {{"logWrites":["heap[3]"]}}"#);
        assert_eq!(told.hint, Some(wanted));
    }

    #[test]
    fn hints_name_tools_and_parameters() {
        for (hint, wanted) in [
            (
                "record it: hindsight record --full -- PROGRAM",
                r#"record it: debug_launch {"full": true}"#,
            ),
            (
                "stop it with: hindsight pause; or wait for a stop with: hindsight await",
                r#"stop it with: debug_continue {"action": "pause"}; or wait for a stop with: debug_wait"#,
            ),
            (
                "its last event: goto last; to the program as it is now: goto live",
                r#"its last event: debug_goto {"to": "last"}; to the program as it is now: debug_goto {"to": "live"}"#,
            ),
            (
                "(shortened: print -- text, or --full for all)",
                "(shortened: debug_read of text with whole)",
            ),
            (
                "(14 more are optimized out: --full lists them)",
                "(14 more are optimized out)",
            ),
            (
                "go back with: step back",
                r#"go back with: debug_goto {"back": "step"}"#,
            ),
            (
                "go to the end of its last call up to here: goto 61, finish, step-back; then ask again",
                r#"go to the end of its last call up to here: debug_goto {"to": 61}, debug_continue {"action": "step-out"}, debug_goto {"back": "step"}; then ask again"#,
            ),
            (
                "it is not always in memory, so see it line by line: goto 61, and at each next: print sum",
                r#"it is not always in memory, so see it line by line: debug_goto {"to": 61}, and after each debug_continue {"action": "step-over"} debug_read of sum"#,
            ),
            (
                "see it line by line: record --full, then break acc, continue, and at each next: print sum",
                r#"see it line by line: debug_launch with full, then debug_breakpoint with function acc, debug_continue, and after each debug_continue {"action": "step-over"} debug_read of sum"#,
            ),
            (
                "check the name; or, if it is in a library that is loaded later: --pending",
                "check the name; in a library that is loaded later it is not found",
            ),
            (
                "an earlier object may have been at that address; -f 'module:libc.so*' records them",
                r#"an earlier object may have been at that address; debug_launch {"memory": true} records them"#,
            ),
            (
                "it has a value only during a call of main: stop in one, for example by break main",
                "it has a value only during a call of main: stop in one, for example by debug_breakpoint with function main",
            ),
            (
                "eval calls functions; everything else only looks at memory",
                "debug_write with call calls functions; everything else only looks at memory",
            ),
            (
                "end that first: full off",
                r#"end that first: debug_full {"action": "off"}"#,
            ),
            (
                "list them with: break list",
                "list them with: debug_breakpoint",
            ),
            ("list them with: watch", "list them with: debug_breakpoint"),
            (
                "stop it first: pause",
                r#"stop it first: debug_continue {"action": "pause"}"#,
            ),
            (
                "(2 threads run: pause stops them)",
                r#"(2 threads run: debug_continue {"action": "pause"} stops them)"#,
            ),
            (
                "name a variable, or memory with a type: watch *(int *)0x404010",
                "name a variable, or memory with a type: *(int *)0x404010",
            ),
            ("did you mean \"total\"?", "did you mean \"total\"?"),
        ] {
            assert_eq!(of_tools(hint), wanted);
            assert_eq!(
                of_tools(wanted),
                wanted,
                "no translation is translated again"
            );
        }
    }

    #[test]
    fn a_warning_hints_at_tools_and_keeps_its_text() {
        let text = "-f 'hindsight pause' matches no function".to_owned();
        for (hint, wanted) in [
            (
                r#"`hindsight sql REC "SELECT name FROM functions"` of a recording without -f lists names"#,
                r#"debug_sql {"sql": "SELECT name FROM functions"} lists names if all functions were recorded"#,
            ),
            (
                "record fewer functions with -f or -x, limit the size with --max-size, or delete recordings with hindsight rm",
                "record fewer functions: debug_launch with functions or exclude; or have recordings deleted",
            ),
        ] {
            let told = notice(Notice {
                kind: NoticeKind::Warning,
                text: text.clone(),
                hint: Some(hint.to_owned()),
                may_leave: false,
            });
            assert_eq!(told.text, text);
            assert_eq!(told.hint.as_deref(), Some(wanted));
        }
    }

    #[test]
    fn only_the_reasons_of_unknown_values_are_translated() {
        let text = "s = \"goto 61\", n = <unknown: gone; --watch or --snapshot every=N shows it later>, t = \"--watch\"";
        let told = "s = \"goto 61\", n = <unknown: gone; debug_launch with watch shows it later>, t = \"--watch\"";
        assert_eq!(in_values(text), told);
    }

    #[test]
    fn options_become_calls_of_tools() {
        for (option, call) in [
            (
                "hindsight rerun app --log-writes 'a'",
                Some(r#"debug_launch with {"logWrites":["a"]}"#),
            ),
            (
                "hindsight rerun app --log-writes 'main::a.b'",
                Some(r#"debug_launch with {"logWrites":["main::a.b"]}"#),
            ),
            (
                "record with --watch 'a'",
                Some(r#"debug_launch with {"watch":["a"]}"#),
            ),
            (
                "hindsight rerun app --log-writes 0x55f0:4",
                Some(r#"debug_launch with {"logWrites":["0x55f0:4"],"noAslr":true}"#),
            ),
            (
                "record with --no-aslr, and ask again there: --log-writes takes the address",
                Some(r#"debug_launch with {"noAslr":true}, then ask this again there"#),
            ),
            (
                "hindsight rerun app --full -o app-full; hindsight last-write app-full 'a'",
                Some(
                    r#"debug_launch with {"full":true}, then debug_history with lastWrite of a in that recording"#,
                ),
            ),
            (
                "hindsight rerun app --full, then in that recording: next through the lines of tune",
                Some(
                    r#"debug_launch with {"full":true}, then in that recording debug_goto to a call of tune, and debug_continue {"action": "step-over"} through its lines"#,
                ),
            ),
            (
                "hindsight repl app, then: goto 7538, and next through the lines of tune",
                Some(
                    r#"debug_goto {"to": 7538}, and debug_continue {"action": "step-over"} through the lines of tune"#,
                ),
            ),
            (
                "hindsight record --full --memory PROGRAM",
                Some(r#"debug_launch {"full": true, "memory": true}"#),
            ),
            ("record again", None),
        ] {
            assert_eq!(second_run(option, "a").as_deref(), call, "{option}");
        }
    }

    /// The text literals in statements that make hints.
    fn hints(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        for call in [".hint(", ".with_hint(", "Text::hint("] {
            for (at, _) in source.match_indices(call) {
                let mut literal: Option<String> = None;
                let mut chars = source[at..].chars();
                while let Some(char) = chars.next() {
                    match (char, &mut literal) {
                        (';', None) => break,
                        ('"', None) => literal = Some(String::new()),
                        ('"', Some(_)) => found.extend(literal.take()),
                        ('\\', Some(text)) => text.extend(chars.next()),
                        (other, Some(text)) => text.push(other),
                        (_, None) => {}
                    }
                }
            }
        }
        found
    }

    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(std::fs::read_to_string(&path).expect("a source is text"));
            }
        }
    }

    /// A new hint that names a command or an option needs a row in `words.txt`.
    #[test]
    fn no_hint_of_the_verbs_keeps_words_of_the_command_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut all = Vec::new();
        for folder in ["server/src", "replay/src", "expr/src", "recorder/src/live"] {
            sources(&root.join(folder), &mut all);
        }
        let all: Vec<String> = all.iter().flat_map(|source| hints(source)).collect();
        assert!(all.len() > 60, "{}", all.len());
        for hint in all {
            let told = of_tools(&hint);
            let is_of_shell = told.contains("in a shell");
            assert!(
                is_of_shell || !told.contains("hindsight ") && !told.contains("--"),
                "{hint}: {told}"
            );
        }
    }
}
