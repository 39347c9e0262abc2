//! The command line: its commands, and `--help` and `--version` of the program.

mod at_stop;
mod complete;
mod groups;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use server::verbs::{Does, Form, Needs, find};

use crate::ask::open_past;
use crate::commands::live::Link;
use crate::commands::{
    check, compare, completions, daemon, export, guard, info, live, ls, man, mcp, overview, pack,
    processes, record, repl, report, rerun, rm, runs, setup, sql, symbols, test,
};
use crate::error::Error;
use crate::exit;
use crate::recording::{self, locate};
use crate::render::{ColourChoice, Terminal};
use crate::report::{Json, as_json, is_json};
use crate::sets;
use crate::spelling;
use crate::suggest;
use crate::travel::familiar;

pub use complete::{answer as complete, script as completion_script};

const ABOUT: &str = "Records a program while it runs, then answers SQL over everything it did";

const EXAMPLES: &str = "\
Examples:
  hindsight record ./app        run it and write app.hindsight
  hindsight overview app        how it ended, what failed, where the time went
  hindsight report app          what was slow: every function's own time, callers, a flame graph
  hindsight info app            what was recorded
  hindsight sql app             a prompt: SQL, Tab completes, \\d lists the tables
  hindsight sql app \"select * from calls order by dur_ns desc limit 10\"
  hindsight sql app \"select * from calls\" -o calls.parquet
  hindsight repl app            go through it: goto, step back, print, backtrace
  hindsight start --break parse ./app   control it live: next, step, where, print
  hindsight sql 'runs/*' \"select run, count(*) from calls group by run\"   many at once
  hindsight compare good bad    where two recordings differ
  hindsight check app           verify every checksum and rule
";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "hindsight",
    about = ABOUT,
    version,
    after_help = format!("{EXAMPLES}\n{}", exit::HELP),
    disable_help_subcommand = false,
    subcommand_required = true,
    arg_required_else_help = true,
)]
pub struct Cli {
    /// When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t = ColourChoice::Auto,
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: ColourChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(record::Args),
    Rerun(rerun::Args),
    Overview(overview::Args),
    Report(report::Args),
    Compare(compare::Args),
    Sql(sql::Args),
    Repl(Box<repl::Args>),
    Info(info::Args),
    Ls(ls::Args),
    Rm(rm::Args),
    Runs(runs::Args),
    Export(export::Args),
    Check(check::Args),
    Pack(pack::Args),
    Processes(processes::Args),
    Symbols(symbols::Args),
    Test(test::Args),
    Mcp(mcp::Args),
    Setup(setup::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Guard(guard::Args),
    #[command(hide = true)]
    Daemon(daemon::Args),
    #[command(flatten)]
    Live(live::Live),
}

/// The maximum width of help, even on a wider terminal.
const HELP_COLUMNS: usize = 100;

impl Cli {
    /// Makes the command line with all verbs, each from its own description.
    pub fn whole() -> clap::Command {
        live::described(Cli::command().subcommands(live::commands(false)))
    }

    /// Runs the command line and returns the exit code. Ends the program if the command line is wrong or asks for help.
    ///
    /// # Errors
    /// When the command fails.
    pub fn run_args(terminal: &mut Terminal) -> Result<u8, Error> {
        let columns = if terminal.stdout {
            Terminal::size().0.min(HELP_COLUMNS)
        } else {
            HELP_COLUMNS
        };
        let words: Vec<OsString> = std::env::args_os().collect();
        let verb = verb_index(&words);
        let words = as_ours(words, verb);
        let mut words = with_negative_numbers(words, verb);
        if asks_json(&words, verb) {
            as_json(stream_of(words.get(verb).and_then(|word| word.to_str())));
        }
        let recording = take_recording(&mut words, verb).inspect_err(|_| {
            if let Some(choice) = colour_before(&words, verb) {
                terminal.choose_colour(choice);
            }
        })?;
        let verb_words: Vec<String> = words
            .iter()
            .skip(verb)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let names_recording = verb_words.first().is_some_and(|verb| verb == "info")
            && verb_words
                .get(1)
                .is_some_and(|name| is_recorded(Path::new(name)));
        if let Some(refusal) = familiar::refusal(&verb_words).filter(|_| !names_recording) {
            return Err(refusal);
        }
        let program = Cli::whole().term_width(columns);
        let help = groups::template(&program, columns);
        let parsed = program.help_template(help).try_get_matches_from(words);
        let matches = match parsed {
            Ok(matches) => matches,
            Err(error)
                if error.kind() == ErrorKind::InvalidSubcommand
                    && let Some(hint) = familiar::shell_hint(&verb_words) =>
            {
                return Err(Error::usage(
                    format!("there is no command \"{}\"", verb_words[0]),
                    Some(hint),
                ));
            }
            Err(error)
                if error.kind() == ErrorKind::InvalidSubcommand
                    && let Some(unknown) = unknown_command(&verb_words) =>
            {
                return Err(unknown);
            }
            Err(error) if error.use_stderr() && is_json() => return Err(Error::of_words(&error)),
            Err(error) => suggest::without_far(error).exit(),
        };
        if json_flag(&matches) {
            as_json(stream_of(matches.subcommand_name()));
        }
        if let Some(choice) = matches.get_one::<ColourChoice>("color") {
            terminal.choose_colour(*choice);
        }
        let link = Link::of_command(terminal);
        if let Some(path) = recording {
            look_at(&link, &path)?;
        }
        if let Some((name, words)) = matches.subcommand()
            && let Some(ran) = live::run_generic(name, words, &link)
        {
            return match ran {
                Ok(exit::DONE) => at_stop::run(&link),
                other => other,
            };
        }
        let cli = match Cli::from_arg_matches(&matches) {
            Ok(cli) => cli,
            Err(error) if is_json() => return Err(Error::of_words(&error)),
            Err(error) => error.exit(),
        };
        cli.run(terminal)
    }

    /// Runs the command and returns the exit code.
    ///
    /// # Errors
    /// When the command fails.
    fn run(self, terminal: &Terminal) -> Result<u8, Error> {
        match self.command {
            Command::Record(args) => record::run(args, terminal),
            Command::Overview(args) => overview::run(&args, terminal),
            Command::Report(args) => report::run(&args, terminal),
            Command::Compare(args) => compare::run(&args, terminal),
            Command::Rerun(args) => rerun::run(&args, terminal),
            Command::Sql(args) => sql::run(args, terminal),
            Command::Repl(args) => repl::run(*args, terminal),
            Command::Info(args) => info::run(&args, terminal),
            Command::Ls(args) => ls::run(&args, terminal),
            Command::Rm(args) => rm::run(&args, terminal),
            Command::Runs(args) => runs::run(args, terminal),
            Command::Export(args) => export::run(&args, terminal),
            Command::Check(args) => check::run(&args, terminal),
            Command::Test(args) => test::run(args),
            Command::Processes(args) => processes::run(&args, terminal),
            Command::Symbols(args) => symbols::run(&args, terminal),
            Command::Pack(args) => pack::run(&args, terminal),
            Command::Mcp(args) => mcp::run(&args),
            Command::Setup(args) => setup::run(&args, terminal),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
            Command::Guard(args) => guard::run(&args),
            Command::Daemon(args) => daemon::run(&args),
            Command::Live(verb) => verb.run(&Link::of_command(terminal)),
        }
    }
}

/// Makes the error for a line whose first word is no command; `None` if it is one.
fn unknown_command(words: &[String]) -> Option<Error> {
    let first = words.first().filter(|first| *first != "help")?;
    let program = Cli::whole();
    if program.find_subcommand(first).is_some() {
        return None;
    }
    let shown = program.get_subcommands().filter(|one| !one.is_hide_set());
    let near = suggest::nearest(first, shown.map(clap::Command::get_name));
    let meant = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    Some(Error::usage(
        format!("there is no command \"{first}\""),
        Some(format!("{meant}hindsight help lists the commands")),
    ))
}

/// Commands whose words may be those of a program to run.
const WITH_PROGRAMS: [&str; 7] = [
    "record", "rerun", "test", "repl", "start", "restart", "guard",
];

/// Returns where a command writes JSON.
fn stream_of(command: Option<&str>) -> Json {
    match command {
        Some("record" | "rerun" | "test") => Json::Stderr,
        _ => Json::Stdout,
    }
}

/// Returns whether the words request JSON, even if they are wrong.
fn asks_json(words: &[OsString], verb: usize) -> bool {
    let name = words.get(verb).and_then(|word| word.to_str());
    let mut own = words.iter().take_while(|word| *word != "--");
    if name.is_some_and(|name| !WITH_PROGRAMS.contains(&name)) {
        return own.any(|word| is_json_option(word));
    }
    // Behind the program its own words follow. A word behind an option may be the option's value.
    let mut was_option = false;
    let before_program = own.skip(verb + 1).take_while(|word| {
        let is_option = word.to_string_lossy().starts_with('-');
        let is_own = is_option || was_option;
        was_option = is_option && !is_json_option(word);
        is_own
    });
    name.is_some() && before_program.into_iter().any(|word| is_json_option(word))
}

/// Returns whether a word is the option `--json`. A value, which it does not take, changes nothing about what is wanted.
fn is_json_option(word: &OsStr) -> bool {
    word == "--json" || word.to_string_lossy().starts_with("--json=")
}

/// Returns whether the command or one below it has `--json`.
fn json_flag(matches: &clap::ArgMatches) -> bool {
    let has =
        |matches: &clap::ArgMatches| matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
    let below = matches.subcommand().map(|(_, below)| json_flag(below));
    has(matches) || below.unwrap_or(false)
}

/// Returns the index of the verb: the first word after the program's own option.
fn verb_index(words: &[OsString]) -> usize {
    match words.get(1).and_then(|word| word.to_str()) {
        Some("--color") => 3,
        Some(word) if word.starts_with("--color=") => 2,
        _ => 1,
    }
}

/// Returns the choice of colour before the verb.
fn colour_before(words: &[OsString], verb: usize) -> Option<ColourChoice> {
    let last = words.get(verb.checked_sub(1)?)?.to_str()?;
    let choice = last.strip_prefix("--color=").unwrap_or(last);
    ColourChoice::from_str(choice, false).ok()
}

/// Replaces gdb's words by ours, from the verb on, which is word number `verb`. `info NAME` refers to a recording, or a set of
/// them, if there is one of that name.
fn as_ours(words: Vec<OsString>, verb: usize) -> Vec<OsString> {
    let text = words
        .iter()
        .skip(verb)
        .map(|word| word.to_str().map(str::to_owned));
    let Some(text) = text.collect::<Option<Vec<String>>>() else {
        return words;
    };
    let verb_word = text.first().map(String::as_str);
    if verb_word == Some("help") && text.len() > 1 {
        let help = words[verb].clone();
        let about = match text[1].as_str() {
            "--help" | "-h" => vec!["help".to_owned()],
            _ => spelling::verb_of(text[1..].to_vec()),
        };
        let about = about.into_iter().map(OsString::from);
        return words
            .into_iter()
            .take(verb)
            .chain([help])
            .chain(about)
            .collect();
    }
    if matches!(verb_word, Some("info" | "i" | "inf"))
        && spelling::subject(&text[1..]).is_none_or(|name| is_recorded(Path::new(name)))
    {
        return words;
    }
    let ours = spelling::ours(text).into_iter().map(OsString::from);
    words.into_iter().take(verb).chain(ours).collect()
}

/// Returns whether a word names a recording, or a set of them.
fn is_recorded(name: &Path) -> bool {
    locate(name).is_ok() || sets::named(name).is_some()
}

/// Distinguishes expressions that begin with a minus, such as `-7/2`, from options by a leading space. `verb` is the
/// index of the verb.
pub fn with_negative_numbers(mut words: Vec<OsString>, verb: usize) -> Vec<OsString> {
    const VERBS: [&str; 7] = ["print", "p", "eval", "call", "display", "set", "return"];
    const OF_PLACES: [&str; 9] = [
        "break", "b", "logpoint", "until", "advance", "jump", "list", "l", "source",
    ];
    let is_in = |verbs: &[&str], word: &OsString| verbs.iter().any(|verb| word == verb);
    let Some(first) = words.get(verb) else {
        return words;
    };
    let is_negative = match (is_in(&VERBS, first), is_in(&OF_PLACES, first)) {
        (true, _) => spelling::is_negative,
        (_, true) => spelling::is_offset,
        _ => return words,
    };
    for word in &mut words[verb + 1..] {
        if word.to_str().is_some_and(is_negative) {
            let mut apart = OsString::from(" ");
            apart.push(&*word);
            *word = apart;
        }
    }
    words
}

/// Takes the recording out of the words if a verb that inspects recordings names one before its own words: `why app 17`.
/// Otherwise the verb is about a session. The verb is word number `at`, from 0.
///
/// # Errors
/// The word before a number or an address can only be a recording, and there is none.
fn take_recording(words: &mut Vec<OsString>, at: usize) -> Result<Option<PathBuf>, Error> {
    let verb = words.get(at).and_then(|word| word.to_str()).and_then(find);
    let is_about_one = verb.is_some_and(|verb| {
        verb.needs == Needs::Recording && verb.does == Does::Look && verb.words.is_some()
    });
    let (true, Some(verb), Some(word)) = (is_about_one, verb, words.get(at + 1)) else {
        return Ok(None);
    };
    let text = word.to_string_lossy();
    let own = verb.words.unwrap_or_default();
    let takes_operand = own
        .iter()
        .any(|word| matches!(word.form, Form::Rest | Form::Expression));
    let next = words.get(at + 2).map(|next| next.to_string_lossy());
    if text.starts_with('-') || takes_operand && next.is_none() {
        return Ok(None);
    }
    let is_second = |next: &str| are_no_expression(&text, next);
    let found = match locate(Path::new(word)) {
        Ok(path) => path,
        Err(error) if next.is_some_and(|next| takes_operand && is_second(&next)) => {
            return Err(error);
        }
        Err(_) => return Ok(None),
    };
    recording::complete(&found)?;
    words.remove(at + 1);
    Ok(Some(found))
}

/// Returns whether two words are no beginning of one expression: a number or a name follows a name.
fn are_no_expression(first: &str, next: &str) -> bool {
    const BEFORE_A_NAME: [&str; 9] = [
        "sizeof", "struct", "class", "union", "enum", "const", "unsigned", "signed", "long",
    ];
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_name = first.chars().all(|c| is_of_word(c) || "-.".contains(c));
    next.starts_with(|c: char| c.is_ascii_digit())
        || is_name && next.starts_with(is_of_word) && !BEFORE_A_NAME.contains(&first)
}

/// Opens a recording in this process: at the signal that ended the program, or at its end.
fn look_at(link: &Link, path: &Path) -> Result<(), Error> {
    let past = open_past(path)?;
    past.go_to_end().map_err(server::Error::from)?;
    link.look_at(past);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_before_a_name_is_a_recording() {
        assert!(are_no_expression("nope", "pool[2].v"));
        assert!(are_no_expression("nope", "12"));
        for (first, next) in [("sizeof", "int"), ("a", "+"), ("*p", "q"), ("a[1]", "b")] {
            assert!(!are_no_expression(first, next), "{first} {next}");
        }
    }

    #[test]
    fn expressions_may_begin_with_a_negative_number() {
        let line = ["hindsight", "print", "-7/2", "--json"].map(OsString::from);
        let words = with_negative_numbers(line.into(), 1);
        assert_eq!(words, ["hindsight", "print", " -7/2", "--json"]);
        assert!(Cli::whole().try_get_matches_from(words).is_ok());
        let line = ["hindsight", "next", "-7/2"].map(OsString::from);
        assert_eq!(with_negative_numbers(line.clone().into(), 1), line);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::whole().debug_assert();
    }

    #[test]
    fn verbs_are_read_as_people_write_them() {
        for line in [
            "start ./app -- --port 80",
            "start --break main --break a.c:3 --stop-on-entry -o rec -f p* -x q* ./app -- -v",
            "attach 4711 --json",
            "b a.c:3 --condition i>3 --hit-count 5",
            "breakpoint add --function ns::*",
            "break remove --all",
            "logpoint a.c:3 n={n}",
            "watch counter --access",
            "catch throw std::runtime_error",
            "c --thread --timeout 3",
            "n 3",
            "s -i",
            "out",
            "until a.c:9 --session 2",
            "await --timeout 0.5",
            "context --context 10",
            "bt --locals --limit 5",
            "frame 2",
            "up",
            "p *ptr --format hex --type",
            "print -- -1",
            "display p->len + 1",
            "display",
            "undisplay 1 2",
            "undisplay --all",
            "start --display counter --break main ./app",
            "set x -3",
            "memory read &x --count 32",
            "registers rax rsp",
            "l a.c:3 --context 20",
            "disassemble --count 20 --source",
            "output --tail 50",
        ] {
            let words = std::iter::once("hindsight").chain(line.split(' '));
            if let Err(error) = Cli::whole().try_get_matches_from(words) {
                panic!("{line}: {error}");
            }
        }
        let words = ["hindsight", "p", "*ptr", "--format", "x"];
        let read = Cli::whole().try_get_matches_from(words).unwrap();
        let (name, words) = read.subcommand().unwrap();
        assert_eq!(name, "print");
        assert_eq!(words.get_one::<String>("expression").unwrap(), "*ptr");
        assert_eq!(words.get_one::<String>("format").unwrap(), "x");
        for line in [
            "continue now",
            "output --tail 5 --follow",
            "watch x --read --access",
            "print",
        ] {
            let words = std::iter::once("hindsight").chain(line.split(' '));
            assert!(Cli::whole().try_get_matches_from(words).is_err(), "{line}");
        }
    }

    /// All texts of the help of a command and of those below it.
    fn texts(command: &clap::Command, found: &mut Vec<String>) {
        let own = [
            command.get_about(),
            command.get_long_about(),
            command.get_before_help(),
            command.get_after_help(),
            command.get_after_long_help(),
        ];
        found.extend(own.into_iter().flatten().map(ToString::to_string));
        for arg in command.get_arguments() {
            let own = [arg.get_help(), arg.get_long_help()];
            found.extend(own.into_iter().flatten().map(ToString::to_string));
        }
        for below in command.get_subcommands() {
            texts(below, found);
        }
    }

    /// A sentence that a source wraps is wrapped again by the terminal, after a few words. Indented lines are examples.
    #[test]
    fn no_sentence_of_the_help_is_wrapped_already() {
        const LONG: usize = 85;
        let mut found = Vec::new();
        texts(&Cli::whole(), &mut found);
        assert!(found.len() > 500, "{}", found.len());
        for text in &found {
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let is_wrapped = pair[0].len() >= LONG && pair.iter().all(|line| is_prose(line));
                assert!(!is_wrapped, "{text}");
            }
            assert!(!text.contains("\\\\"), "it shows two backslashes: {text}");
        }
    }

    #[test]
    fn help_explains_itself() {
        for word in ["--help", "-h"] {
            let words = ["hindsight", "help", word].map(OsString::from).to_vec();
            let ours = as_ours(words, 1);
            assert_eq!(ours, ["hindsight", "help", "help"], "{word}");
        }
    }
}
