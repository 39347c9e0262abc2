//! Completion in the shell. The shell asks this program for candidates as the user types, so that recordings, functions and
//! breakpoints are up to date. It starts nothing, and an error means no candidates.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::ValueHint;
use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use query::Options;
use serde::de::DeserializeOwned;
use serde_json::Value;
use server::client::{Client, Wait};
use server::paths::Paths;
use server::verbs::{NameKind, Names, NamesArgs, NamesReply, Verb};
use store::Reader;
use store::format::RECORDING_SUFFIX;
use store::recording::{Recording, RecordingState};

use super::Cli;
use crate::ask::Asker;
use crate::{prompt, spelling};

/// The variable by which the script in the shell asks for candidates. It names the shell.
const VARIABLE: &str = "COMPLETE";
/// How long a running daemon may take for its part. The shell waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// The maximum number of candidates.
const MOST: usize = 1000;
/// Words that `break` and `logpoint` take before locations or numbers.
const PROBE_WORDS: [&str; 5] = ["add", "list", "remove", "enable", "disable"];

/// Answers the shell and ends the program, if the shell asks for candidates.
pub fn answer() {
    CompleteEnv::with_factory(|| with_spellings(with_completers(Cli::whole())))
        .var(VARIABLE)
        .bin("hindsight")
        .complete();
}

/// Returns the script that makes `shell` ask this program; `None` if that shell is unknown.
pub fn script(shell: &str) -> Option<Vec<u8>> {
    let shells = Shells::builtins();
    let shell = shells.completer(shell)?;
    let mut script = Vec::new();
    // Writing to memory cannot fail.
    _ = shell.write_registration(VARIABLE, "hindsight", "hindsight", "hindsight", &mut script);
    Some(script)
}

/// Adds gdb's words, which become ours only when a line is run, to what can be completed. Only their candidates count.
fn with_spellings(command: Command) -> Command {
    let word = |name: &'static str, completer: fn(&OsStr) -> Vec<CompletionCandidate>| {
        let arg = Arg::new("words").num_args(0..);
        let arg = arg.add(ArgValueCompleter::new(completer));
        Command::new(name).hide(true).arg(arg)
    };
    let of_probes = ["delete", "del", "d", "disable", "enable"].map(|name| word(name, probes));
    let of_places = ["tbreak", "tb", "hbreak", "thbreak"].map(|name| word(name, locations));
    let command = command.subcommands(of_probes).subcommands(of_places);
    command.mut_subcommand("info", |info| {
        info.mut_args(|arg| match arg.is_positional() {
            true => arg.add(ArgValueCompleter::new(subjects_and_recordings)),
            false => arg,
        })
    })
}

/// Returns what `info` takes: gdb's subjects, and recordings.
fn subjects_and_recordings(current: &OsStr) -> Vec<CompletionCandidate> {
    let subjects = spelling::info_subjects().map(str::to_owned).collect();
    let mut found = beginning_with(current, subjects);
    found.extend(recordings(current));
    found
}

fn with_completers(mut command: Command) -> Command {
    let is_of_functions = matches!(command.get_name(), "rbreak" | "info-functions");
    let is_of_sql = command.get_name() == "sql";
    command = command.mut_args(|arg| match arg.get_id().as_str() {
        "pattern" if is_of_functions => arg.add(ArgValueCompleter::new(functions)),
        "words" if is_of_sql => arg.add(ArgValueCompleter::new(recordings_and_sql)),
        _ => with_completer(arg),
    });
    let names = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned());
    for name in names.collect::<Vec<_>>() {
        command = command.mut_subcommand(name, with_completers);
    }
    command
}

/// Chooses the candidates for a value by its name.
fn with_completer(arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(|names| names.first());
    let value = value.map(|name| name.to_string()).unwrap_or_default();
    let is_of_thread = arg.get_id() == "thread";
    match value.as_str() {
        "RECORDING" | "A" | "B" | "SET" | "RUN" => arg.add(ArgValueCompleter::new(recordings)),
        "RECORDING|PROGRAM" => arg.add(ArgValueCompleter::new(recordings_and_programs)),
        "PROGRAM" => arg.value_hint(ValueHint::ExecutablePath),
        "FILE" => arg.value_hint(ValueHint::FilePath),
        "DIR" | "FOLDER" => arg.value_hint(ValueHint::DirPath),
        _ if value.starts_with("[add] LOCATION") => {
            arg.add(ArgValueCompleter::new(locations_and_probes))
        }
        _ if value.contains("LOCATION") => arg.add(ArgValueCompleter::new(locations)),
        "FUNCTION" => arg.add(ArgValueCompleter::new(recorded_functions)),
        "EXPRESSION" | "TARGET" | "EXPRESSION|TYPE" => arg.add(ArgValueCompleter::new(variables)),
        // Of a breakpoint, or of a thread.
        "ID" if is_of_thread => arg.add(ArgValueCompleter::new(threads)),
        "ID" => arg.add(ArgValueCompleter::new(probes)),
        "PATTERN" => arg.add(ArgValueCompleter::new(functions)),
        _ => arg,
    }
}

/// Returns the recordings whose name begins with `current`, without their suffix, and folders that may lead to
/// others.
fn recordings(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else {
        return Vec::new();
    };
    let (folder, start) = text.rsplit_once('/').map_or(("", text), |(_, start)| {
        (&text[..text.len() - start.len()], start)
    });
    let Ok(entries) = std::fs::read_dir(if folder.is_empty() { "." } else { folder }) else {
        return Vec::new();
    };
    let mut found: Vec<CompletionCandidate> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            name.starts_with(start) && (!name.starts_with('.') || start.starts_with('.'))
        })
        .map(|name| offered(folder, &name))
        .collect();
    found.sort();
    found
}

fn offered(folder: &str, name: &str) -> CompletionCandidate {
    match name.strip_suffix(RECORDING_SUFFIX) {
        Some(stem) => CompletionCandidate::new(format!("{folder}{stem}")),
        None if store::recording::resolve(Path::new(&format!("{folder}{name}"))).is_ok() => {
            CompletionCandidate::new(format!("{folder}{name}"))
        }
        None => CompletionCandidate::new(format!("{folder}{name}/")),
    }
}

/// Returns the functions of the recording that the line names before: `report app <Tab>`.
fn recorded_functions(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().collect();
    let names = recording_of(&words).and_then(|name| functions_of(Path::new(name)));
    beginning_with(current, names.unwrap_or_default())
}

/// Returns the functions of the recording that the line names before, or of the current session.
fn functions(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().collect();
    let of_recording = recording_of(&words).and_then(|name| functions_of(Path::new(name)));
    beginning_with(
        current,
        of_recording.unwrap_or_else(|| names(NameKind::Functions)),
    )
}

/// Returns recordings, and what completes a statement of SQL that has begun.
fn recordings_and_sql(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = unquoted(&current.to_string_lossy());
    if !prompt::Words::has_begun(&text) {
        return recordings(current);
    }
    let words: Vec<String> = std::env::args().collect();
    // Only names in quotes need the recording.
    let recording = recording_of(&words).filter(|_| text.contains('\''));
    let names = recording.and_then(|name| functions_of(Path::new(name)));
    let offer =
        prompt::Words::of_recording(names.unwrap_or_default()).complete(&text, text.len(), &[]);
    let whole = |word: String| CompletionCandidate::new(format!("{}{word}", &text[..offer.start]));
    offer.words.into_iter().take(MOST).map(whole).collect()
}

/// Finds the recording in the line that the shell completes: it is after `--`.
fn recording_of(words: &[String]) -> Option<&String> {
    let line = words.iter().skip_while(|word| *word != "--").skip(1);
    let is_verb = |word: &&String| matches!(word.as_str(), "report" | "rerun" | "sql");
    let mut behind = line.skip_while(|word| !is_verb(word)).skip(1);
    behind.find(|word| !word.starts_with('-'))
}

fn functions_of(name: &Path) -> Option<Vec<String>> {
    let path = crate::recording::locate(name).ok()?;
    // Without the bar of other openings: a shell that completes a line has no room for one. What is not closed may take long.
    let recording = Recording::open(&path).ok()?;
    if recording.state() != RecordingState::Closed {
        return None;
    }
    let reader = Reader::open(&path, &store::temp_dir()).ok()?;
    let mut asker = Asker::new(Arc::new(reader), Options::default(), false).ok()?;
    let names = asker.texts("select distinct function from calls").ok()?;
    Some(names.into_iter().flatten().flatten().collect())
}

fn recordings_and_programs(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = recordings(current);
    found.extend(PathCompleter::file().complete(current));
    found
}

fn locations(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = names(NameKind::Functions);
    names.extend(
        self::names(NameKind::Files)
            .into_iter()
            .map(|file| file + ":"),
    );
    beginning_with(current, names)
}

fn locations_and_probes(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = beginning_with(current, PROBE_WORDS.map(str::to_owned).to_vec());
    found.extend(probes(current));
    found.extend(locations(current));
    found
}

fn variables(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = names(NameKind::Locals);
    names.extend(self::names(NameKind::Globals));
    beginning_with(current, names)
}

/// Returns the numbers of what stops or logs.
fn probes(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning_with(current, names(NameKind::Breakpoints))
}

fn threads(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning_with(current, names(NameKind::Threads))
}

fn names(of: NameKind) -> Vec<String> {
    let args = serde_json::to_value(NamesArgs {
        of,
        expression: None,
    })
    .unwrap_or_default();
    ask::<NamesReply>(Names::NAME, args)
        .map(|reply| reply.names)
        .unwrap_or_default()
}

/// Returns the names that begin with `current`. Shells quote spaces and other characters in them as they insert them.
fn beginning_with(current: &OsStr, mut names: Vec<String>) -> Vec<CompletionCandidate> {
    let start = unquoted(&current.to_string_lossy());
    names.retain(|name| name.starts_with(&start) && !name.contains(char::is_control));
    names.sort();
    names.dedup();
    names.truncate(MOST);
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns what a word means as far as it is typed: zsh and fish pass it with its quotes.
fn unquoted(word: &str) -> String {
    let word = word.strip_prefix(['\'', '"']).unwrap_or(word);
    word.replace('\\', "")
}

/// Asks a running daemon about the session that a verb would be about; `None` if there is none.
fn ask<Reply: DeserializeOwned>(verb: &str, args: Value) -> Option<Reply> {
    let mut client = Client::connect(&Paths::of_environment()).ok()?;
    let session = std::env::var(crate::commands::live::SESSION_VARIABLE).ok();
    let wait = Wait {
        patience: Some(PATIENCE),
        notify: &mut |_| {},
    };
    let reply = client
        .ask(
            verb,
            args,
            session.and_then(|number| number.parse().ok()),
            wait,
        )
        .ok()?;
    serde_json::from_value(reply).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_offered_by_name_and_folders_to_go_on() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["app.hindsight", "apple", "box.hindsight", ".hidden"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let start = format!("{}/", folder.path().display());
        let offered = |typed: &str| -> Vec<String> {
            let typed = format!("{start}{typed}");
            let found = recordings(OsStr::new(&typed));
            let texts = found
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned());
            texts.map(|text| text.replacen(&start, "", 1)).collect()
        };
        assert_eq!(offered("app"), ["app", "apple/"]);
        assert_eq!(offered(""), ["app", "apple/", "box"]);
        assert_eq!(offered(".h"), [".hidden/"]);
        assert!(offered("none/").is_empty());
    }

    #[test]
    fn statements_are_completed_as_at_the_prompt() {
        let offered = |typed: &str| -> Vec<String> {
            let found = recordings_and_sql(OsStr::new(typed));
            let texts = found.iter().map(CompletionCandidate::get_value);
            texts
                .map(|text| text.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            offered("\"select * from backtr"),
            ["select * from backtrace("]
        );
        assert_eq!(
            offered("select dep from calls where dur"),
            ["select dep from calls where dur_ns"]
        );
        assert!(offered("no such recording").is_empty());
    }

    #[test]
    fn a_report_is_about_the_recording_before() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            recording_of(&words).cloned()
        };
        assert_eq!(
            of("hindsight -- hindsight report app ma").as_deref(),
            Some("app")
        );
        assert_eq!(
            of("hindsight -- hindsight report --raw app").as_deref(),
            Some("app")
        );
        assert_eq!(
            of("hindsight -- hindsight rerun app -f ma").as_deref(),
            Some("app")
        );
        assert_eq!(
            of("hindsight -- hindsight sql app select").as_deref(),
            Some("app")
        );
        assert_eq!(of("hindsight -- hindsight report"), None);
        assert_eq!(of("hindsight report app"), None);
    }

    #[test]
    fn names_with_spaces_are_offered_whole() {
        let all = ["operator new(unsigned long)", "<A as B>::f", "open", "a\nb"];
        let offered = |typed: &str| -> Vec<String> {
            let names = all.map(str::to_owned).to_vec();
            let found = beginning_with(OsStr::new(typed), names).into_iter();
            found
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(offered("op"), ["open", "operator new(unsigned long)"]);
        for typed in ["operator n", "'operator n", "\"operator n", "operator\\ n"] {
            assert_eq!(offered(typed), ["operator new(unsigned long)"], "{typed}");
        }
        assert_eq!(offered("\\<A"), ["<A as B>::f"]);
        assert!(offered("a").is_empty());
    }

    #[test]
    fn subjects_of_info_are_offered() {
        let found = subjects_and_recordings(OsStr::new("lo"));
        let texts: Vec<_> = found.iter().map(CompletionCandidate::get_value).collect();
        assert_eq!(texts, ["locals"]);
        with_spellings(with_completers(Cli::whole())).debug_assert();
    }

    #[test]
    fn scripts_exist_for_each_shell_and_name_the_program() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let script = String::from_utf8(script(shell).unwrap()).unwrap();
            assert!(script.contains("hindsight"), "{shell}");
        }
        assert!(script("tcsh").is_none());
    }
}
