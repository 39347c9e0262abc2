//! Commands of gdb that have another name here, or none: what to write instead. `spelling.rs` handles those that differ
//! only in spelling.

use std::path::Path;

use crate::error::Error;

/// Commands of gdb by their names or usual abbreviations, and their names here.
const COMMANDS: [(&str, &str); 35] = [
    ("checkpoint", "note TEXT, and later goto"),
    ("clear", "break list, then break remove N"),
    ("core", "open CORE"),
    ("core-file", "open CORE"),
    ("disconnect", "detach"),
    ("dprintf", "logpoint LOCATION \"x={x}\""),
    ("dump", "memory read ADDRESS --count N"),
    ("exec-file", "start PROGRAM"),
    (
        "faas",
        "backtrace --locals, or frame N and then the command",
    ),
    ("file", "start PROGRAM"),
    (
        "find",
        "memory read ADDRESS --count N, which shows the bytes",
    ),
    ("ftrace", "logpoint LOCATION \"x={x}\""),
    ("inferior", "status; --session N asks another session"),
    ("init-if-undefined", "set $NAME VALUE"),
    ("interrupt", "pause"),
    ("k", "stop"),
    ("macro", "print EXPRESSION; macros are not known"),
    (
        "r",
        "continue, or restart to begin again; in a recording, goto first, then continue",
    ),
    ("record", "full on, and full off"),
    ("restore", "memory write ADDRESS BYTES"),
    (
        "run",
        "continue, or restart to begin again; in a recording, goto first, then continue",
    ),
    (
        "skip",
        "finish, out of what was entered, or advance LOCATION, behind it",
    ),
    ("starti", "start --stop-on-entry PROGRAM"),
    ("strace", "logpoint LOCATION \"x={x}\""),
    ("target", "attach PID, start PROGRAM or open CORE"),
    ("tfaas", "backtrace --all --locals"),
    ("tp", "logpoint LOCATION \"x={x}\""),
    ("tracepoint", "logpoint LOCATION \"x={x}\""),
    ("tstatus", "logpoint list"),
    ("tstart", "logpoint LOCATION \"x={x}\""),
    ("explore", "print EXPRESSION, and ptype EXPRESSION"),
    ("add-inferior", "start PROGRAM, in a session of its own"),
    ("clone-inferior", "start PROGRAM, in a session of its own"),
    ("append", "memory read ADDRESS --count N"),
    (
        "compile",
        "eval EXPRESSION, which calls functions of the program",
    ),
];

/// Commands of gdb for which there is no verb, and what does the same.
const OTHERWISE: [(&[&str], &str); 13] = [
    (
        &["show"],
        "settings of gdb are not needed here: help VERB tells the options of a verb, status what runs",
    ),
    (
        &["define", "document"],
        "alias NAME = VERB ... names a verb; hindsight repl --script FILE runs lines of a file",
    ),
    (
        &["python", "py", "pi", "guile"],
        "a Python package drives sessions from outside: docs/python.md",
    ),
    (
        &["shell", "make", "edit", "pipe", "|"],
        "every verb is a command of the shell, too: hindsight backtrace | head",
    ),
    (
        &["symbol-file", "add-symbol-file", "load"],
        "hindsight symbols shows which modules have debug information, and fetches what is missing",
    ),
    (
        &["directory", "dir"],
        "sources are found where they were compiled; hindsight pack keeps them in a recording",
    ),
    (
        &["cd", "pwd"],
        "info proc shows the program's folder; to change it, start the program in another one",
    ),
    (
        &["search", "forward-search", "reverse-search", "fo", "rev"],
        "list F shows a function, and info functions REGEX finds one",
    ),
    (
        &["tui", "layout", "focus", "refresh", "winheight", "wh"],
        "where shows source and variables; display EXPRESSION shows a value at every stop",
    ),
    (
        &["signal", "queue-signal"],
        "continue passes on the signal that stopped the program; kill in a shell sends one",
    ),
    (
        &["unset", "path"],
        "the program has the environment of the shell that starts it; --stdin FILE is its input",
    ),
    (
        &["tty"],
        "start PROGRAM < FILE gives the program its input; output shows what it has printed",
    ),
    (
        &["apropos", "complete"],
        "help lists the verbs, help VERB describes one, and Tab completes",
    ),
];

/// Commands of gdb that are two words, of which the first alone has another meaning, and what does the same.
const TWO_WORDS: [(&str, &str); 11] = [
    (
        "record delete",
        "full off ends the recording of instructions",
    ),
    (
        "record function-call-history",
        "calls lists the recorded calls around here",
    ),
    ("record goto", "goto first, goto last, or goto EVENT"),
    (
        "record instruction-history",
        "step-back --instruction goes back by one, disassemble shows the code",
    ),
    (
        "record save",
        "what is recorded is on the disk already; status names its folder",
    ),
    (
        "show args",
        "info proc shows the program's command line; restart keeps its arguments",
    ),
    (
        "show convenience",
        "print $NAME shows a variable that set has made",
    ),
    (
        "show environment",
        "in a shell: xargs -0 -n1 < /proc/PID/environ",
    ),
    ("show user", "alias lists the aliases"),
    (
        "show values",
        "print $1 shows the first value again, print $ the last",
    ),
    ("show version", "in a shell: hindsight --version"),
];

/// Commands of gdb that begin with one of our verbs, in our spelling, and what does the same.
const PHRASES: [(&str, &str); 18] = [
    (
        "frame address",
        "info frame N shows the address of a frame; frame N selects one",
    ),
    (
        "frame apply",
        "bt full shows all frames; for one: frame N, and then the command",
    ),
    ("info auxv", "in a shell: od -t d8 /proc/PID/auxv"),
    (
        "info checkpoints",
        "notes lists the moments that note has marked",
    ),
    (
        "info float",
        "print $st0 to $st7 and $fctrl, or registers --vectors",
    ),
    (
        "info macro",
        "macros are not known: print what it stands for",
    ),
    (
        "info macros",
        "macros are not known: print what they stand for",
    ),
    ("info os", "in a shell: ps, lsof and ss"),
    (
        "info record",
        "calls lists the recorded calls around here; status names the recording of a live session",
    ),
    (
        "info set",
        "settings of gdb are not needed here: help VERB tells the options of a verb",
    ),
    (
        "info skip",
        "nothing is skipped: finish leaves a function, advance LOCATION runs to a place",
    ),
    (
        "info sources",
        "info functions REGEX shows functions with their files; list FILE:1 shows a file",
    ),
    (
        "info tracepoints",
        "info breakpoints lists logpoints, which do the same",
    ),
    (
        "info vtbl",
        "print *OBJECT shows it with its _vptr, and info symbol ADDRESS the function",
    ),
    (
        "info-proc map",
        "info sharedlibrary lists the modules; all mappings are in /proc/PID/maps",
    ),
    (
        "info-proc mappings",
        "info sharedlibrary lists the modules; all mappings are in /proc/PID/maps",
    ),
    ("thread find", "threads lists all threads with their names"),
    (
        "thread name",
        "threads lists all threads with the names that the program gives them",
    ),
];

/// Returns the name here of the gdb command that a line begins with.
fn ours(words: &[String]) -> Option<&'static str> {
    let first = without_format(words)?;
    let found = COMMANDS.iter().find(|(command, _)| *command == first);
    found.map(|(_, ours)| *ours)
}

/// Returns what does the same as the gdb command that a line begins with, if no verb does.
fn otherwise(words: &[String]) -> Option<&'static str> {
    let first = without_format(words)?;
    let is_shell = first.starts_with('!');
    let first = if is_shell { "shell" } else { first };
    let found = OTHERWISE.iter().find(|(names, _)| names.contains(&first));
    found.map(|(_, instead)| *instead)
}

fn of_two_words(words: &[String]) -> Option<&'static str> {
    let phrase = words.get(..2)?.join(" ");
    let found = TWO_WORDS.iter().find(|(command, _)| *command == phrase);
    found.map(|(_, instead)| *instead)
}

fn without_format(words: &[String]) -> Option<&str> {
    words.first()?.split('/').next()
}

/// Returns a hint for a line at the prompt that begins with no verb.
pub fn hint(words: &[String]) -> Option<String> {
    if let Some(instead) = of_two_words(words) {
        return Some(instead.to_owned());
    }
    let ours = ours(words).map(|ours| format!("here that is: {ours}; help lists the verbs"));
    ours.or_else(|| otherwise(words).map(str::to_owned))
}

/// Returns the same for the shell, where no program runs yet.
pub fn shell_hint(words: &[String]) -> Option<String> {
    if let Some(instead) = of_two_words(words) {
        return Some(instead.to_owned());
    }
    let ours = match words.first()?.as_str() {
        "run" | "r" => Some("start PROGRAM, or restart to begin again"),
        _ => ours(words),
    };
    let ours = ours.map(|ours| format!("here that is: hindsight {ours}"));
    ours.or_else(|| otherwise(words).map(str::to_owned))
}

/// Refuses a line in our spelling that is a command of gdb's, although it begins with a verb of ours.
pub fn refusal(words: &[String]) -> Option<Error> {
    if let [source, file] = words
        && source == "source"
        // A function may have the name of a file without an ending.
        && Path::new(file).extension().is_some()
        && Path::new(file).is_file()
    {
        return Some(Error::usage(
            format!("source shows source code, and {file} is a file"),
            Some(format!("to run its lines: hindsight repl --script {file}")),
        ));
    }
    if let [restart, number] = words
        && restart == "restart"
        && number.parse::<u64>().is_ok()
    {
        return Some(Error::usage(
            "restart runs the program again; there are no checkpoints",
            Some("mark a moment with note TEXT, and return to it with goto @TEXT".to_owned()),
        ));
    }
    let line = words.join(" ");
    let begins = |command: &str| {
        line.strip_prefix(command)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let (command, instead) = PHRASES.iter().find(|(command, _)| begins(command))?;
    Some(Error::usage(
        format!("there is no \"{}\"", command.replace("info-", "info ")),
        Some((*instead).to_owned()),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{commands, words::names};
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_of_gdb_are_known() {
        let of = |line: &str| ours(&words(line));
        assert_eq!(of("k"), Some("stop"));
        assert_eq!(of("run"), of("r"));
        assert_eq!(of("dprintf f"), Some("logpoint LOCATION \"x={x}\""));
        assert_eq!(of("running"), None);
        assert_eq!(of("frobnicate"), None);
        let told = |line: &str| hint(&words(line)).unwrap_or_default();
        assert_eq!(
            told("clear f"),
            "here that is: break list, then break remove N; help lists the verbs"
        );
        assert!(told("show width").starts_with("settings of gdb are not needed"));
        assert!(told("show args").starts_with("info proc shows"));
        assert!(told("record goto begin").starts_with("goto first"));
        assert!(told("record").starts_with("here that is: full on"));
        assert!(told("!ls -l").contains("a command of the shell"));
        assert_eq!(told("frobnicate"), "");
        let told = |line: &str| shell_hint(&words(line)).unwrap_or_default();
        assert_eq!(
            told("run"),
            "here that is: hindsight start PROGRAM, or restart to begin again"
        );
        assert_eq!(told("k"), "here that is: hindsight stop");
        assert!(told("define f").starts_with("alias NAME"));
    }

    #[test]
    fn phrases_of_gdb_are_refused_with_the_way() {
        for (line, what) in [
            ("thread name worker", "there is no \"thread name\""),
            ("frame apply all p x", "there is no \"frame apply\""),
            ("info-proc mappings", "there is no \"info proc mappings\""),
            ("info macro X", "there is no \"info macro\""),
            ("frame address 0x1", "there is no \"frame address\""),
            ("info record", "there is no \"info record\""),
            (
                "restart 1",
                "restart runs the program again; there are no checkpoints",
            ),
        ] {
            let refused = refusal(&words(line)).map(|error| error.to_string());
            assert_eq!(refused.as_deref(), Some(what));
        }
        for line in [
            "thread 4711",
            "frame 1",
            "info-proc",
            "info app",
            "source f",
        ] {
            assert!(refusal(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn what_is_proposed_exists_and_what_is_not_ours_is_proposed_for() {
        let verbs = names(&commands());
        let first = |text: &str| text.split([' ', ',', ';']).next().unwrap().to_owned();
        for (theirs, ours) in COMMANDS {
            assert!(!verbs.contains(&first(theirs)), "{theirs} is a verb here");
            assert!(verbs.contains(&first(ours)), "{} is no verb", first(ours));
        }
        for theirs in OTHERWISE
            .iter()
            .flat_map(|(names, _)| names.iter().copied())
        {
            assert!(!verbs.contains(&first(theirs)), "{theirs} is a verb here");
            assert!(ours(&words(theirs)).is_none(), "{theirs} is there twice");
        }
    }
}
