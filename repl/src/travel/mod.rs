//! The prompt: reads lines, finds out what each is, and has it done; about a recording, or a live session and its past.
//!
//! The verbs are the very commands of the command line: while a recording or the past is looked at, they are asked of it and
//! not of the daemon, so that arguments and output are the same. `verbs` has those that only the past has.

mod aliases;
mod editor;
mod familiar;
mod help;
mod line;
mod present;
mod script;
mod show;
mod verbs;
mod words;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser};
use query::Options;
use server::past::Past;
use server::session::StateWord;
use server::verbs::LocalsArgs;

use crate::ask::{Asker, Interrupts, Records, View, show as show_answer};
use crate::cli::with_negative_numbers;
use crate::commands::live::{self, Common, Live, Patience, attended, recorded};
use crate::error::Error;
use crate::exit;
use crate::format::Format;
use crate::prompt::lines::Input;
use crate::render::{Terminal, escaped};
use crate::report::report;
use crate::suggest;

pub use aliases::Aliases;
use editor::Editor;
pub use present::Present;
pub use script::Source;
use verbs::{Need, Verb};

/// Rows of an answer that are shown at a terminal.
const ROWS: usize = 1000;
/// Global variables of a module that Tab offers.
const MAX_GLOBALS: usize = 20_000;

/// A line, once it is known not to be SQL.
#[derive(Debug, Parser)]
#[command(
    no_binary_name = true,
    name = "hindsight",
    disable_help_subcommand = true
)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

/// Why one of a session's two parts is there.
const SOMETHING: &str = "who looks at no recording looks at a live session";

/// Whether to read another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    GoOn,
    Quit,
}

/// What is looked at, and how.
pub struct Session {
    /// A recording, or the past of a live session; `None` while its program is looked at as it is now.
    past: Option<Rc<Past>>,
    /// The live session, if there is one.
    present: Option<Present>,
    /// Opened by the first question.
    asker: Option<Asker>,
    terminal: Terminal,
    json: bool,
    aliases: Aliases,
    /// Somebody types the lines.
    is_typed: bool,
    /// A program that was started here is to go on.
    keep: bool,
    /// The last line that moved: an empty one does the same again.
    last_motion: String,
}

impl Session {
    /// Opens the recording in the folder `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path, terminal: &Terminal, json: bool) -> Result<Session, Error> {
        let past = Past::open(path, &Options::default().temp_dir);
        let past = Rc::new(past.map_err(recorded::failed)?);
        recorded::look_at(&past);
        Ok(Session {
            past: Some(past),
            ..Session::empty(Aliases::load()?, terminal, json)
        })
    }

    /// Looks at a live session.
    pub fn live(present: Present, aliases: Aliases, terminal: &Terminal, json: bool) -> Session {
        Session {
            present: Some(present),
            ..Session::empty(aliases, terminal, json)
        }
    }

    fn empty(aliases: Aliases, terminal: &Terminal, json: bool) -> Session {
        Session {
            past: None,
            present: None,
            asker: None,
            terminal: terminal.clone(),
            json,
            aliases,
            is_typed: false,
            keep: false,
            last_motion: String::new(),
        }
    }

    /// Leaves: a live program that was started here ends.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn leave(&mut self) -> Result<(), Error> {
        match &mut self.present {
            Some(present) => present.leave(self.keep),
            None => Ok(()),
        }
    }

    /// Says whether a program is looked at as it is now.
    fn is_live(&self) -> bool {
        self.past.is_none()
    }

    /// Runs a line. Returns the exit code that its command would have.
    fn run(&mut self, text: &str) -> Result<(Flow, u8), Error> {
        let text = self.with_meaning(text.trim());
        if text.is_empty() || text.starts_with('#') {
            return Ok((Flow::GoOn, exit::DONE));
        }
        if line::is_sql(&text) {
            self.sql(&text)?;
            return Ok((Flow::GoOn, exit::DONE));
        }
        let words = line::normal(line::split(&text), self.is_live());
        let words = line::unquoted(words);
        if line::is_motion(&words[0]) {
            self.last_motion.clone_from(&text);
        }
        let rest = || words.get(1).map(String::as_str);
        let code = match words[0].as_str() {
            "quit" | "exit" | "q" => return self.quit(&words[1..]),
            "help" | "?" => self.help(&words[1..])?,
            "alias" => self.alias(text["alias".len()..].trim())?,
            "unalias" => self.unalias(rest())?,
            "continue-where" | "reverse-continue-where" => self.run_to_where(&words)?,
            "goto" if self.present.is_some() && words[1..] == ["live"] => self.return_to_now()?,
            _ => self.verb(words)?,
        };
        Ok((Flow::GoOn, code))
    }

    /// Puts what an alias stands for in its place.
    fn with_meaning(&self, text: &str) -> String {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (first, rest) = text.split_at(end);
        match self.aliases.meaning(first) {
            Some(meaning) => format!("{meaning}{rest}"),
            None => text.to_owned(),
        }
    }

    fn quit(&mut self, words: &[String]) -> Result<(Flow, u8), Error> {
        match words {
            [] => {}
            [word] if word == "--keep" => self.keep = true,
            [word, ..] => {
                let help = "write: quit, or quit --keep to let the program go on".to_owned();
                return Err(Error::usage(
                    format!("quit does not take \"{word}\""),
                    Some(help),
                ));
            }
        }
        Ok((Flow::Quit, exit::DONE))
    }

    fn verb(&mut self, mut words: Vec<String>) -> Result<u8, Error> {
        if !words::names(&Line::command()).contains(&words[0]) {
            return Err(self.unknown(&words));
        }
        if self.json {
            words.insert(1, "--json".to_owned());
        }
        let words = words.into_iter().map(OsString::from).collect();
        let matches = Line::command()
            .term_width(Terminal::size().0.min(100))
            .try_get_matches_from(with_negative_numbers(words, 0));
        let matches = match matches {
            Ok(matches) => matches,
            // --help is asked for, not a mistake.
            Err(error) if !error.use_stderr() => {
                recorded::write(&error.to_string())?;
                return Ok(exit::DONE);
            }
            Err(error) => return Err(wrong(&error)),
        };
        let line = Line::from_arg_matches(&matches).map_err(|error| wrong(&error))?;
        self.run_verb(&line.verb)
    }

    fn run_verb(&mut self, verb: &Verb) -> Result<u8, Error> {
        let terminal = self.terminal.clone();
        let Some(past) = self.past.clone() else {
            return self.run_live(verb);
        };
        match verb {
            // It is about the daemon, whatever is looked at.
            Verb::Live(live) if matches!(**live, Live::Status(_)) && self.present.is_some() => {
                recorded::look_away();
                let ran = live.run(&terminal);
                recorded::look_at(&past);
                ran
            }
            verb if self.is_typed => {
                live::watched(past.interrupt(), || verb.run(&past, &terminal))?
            }
            verb => verb.run(&past, &terminal),
        }
    }

    /// Runs a verb where the program is looked at as it is now.
    fn run_live(&mut self, verb: &Verb) -> Result<u8, Error> {
        let terminal = self.terminal.clone();
        let present = self.present.as_mut().expect(SOMETHING);
        if let (Need::Now, Verb::Live(live)) = (verb.need(), verb) {
            let ran = live.run(&terminal);
            if let Some(begun) = attended::take_begun() {
                present.follow(begun);
                self.asker = None;
            }
            return ran;
        }
        let past = present.past()?;
        recorded::look_at(&past);
        let ran = live::watched(past.interrupt(), || verb.run(&past, &terminal))?;
        match (verb.need(), &ran) {
            (Need::Past, Ok(exit::DONE)) => self.past = Some(past),
            _ => recorded::look_away(),
        }
        ran
    }

    /// Looks at the program as it is now again, and shows where it stands.
    fn return_to_now(&mut self) -> Result<u8, Error> {
        self.past = None;
        recorded::look_away();
        let report = self.present.as_mut().map(Present::report);
        let report = report.transpose()?.flatten();
        match report {
            Some(report) if report.status == StateWord::Stopped => {
                self.verb(vec!["await".to_owned()])
            }
            Some(report) => {
                let number = report.session.to_string();
                self.verb(["status", "--session", &number].map(str::to_owned).into())
            }
            None => self.verb(vec!["status".to_owned()]),
        }
    }

    fn help(&self, words: &[String]) -> Result<u8, Error> {
        let in_the_past = self.past.is_some() && self.present.is_some();
        let text = match words {
            [] => help::all(self.is_live(), in_the_past),
            [verb, ..] => {
                let name = line::normal(words.to_vec(), self.is_live()).remove(0);
                let mut command = Line::command();
                let own = help::of(&name).or_else(|| help::of(verb));
                match (own, self.aliases.meaning(verb)) {
                    (Some(text), _) => text.to_owned(),
                    (None, Some(meaning)) => format!("{verb} = {meaning}\n"),
                    (None, None) => match command.find_subcommand_mut(&name) {
                        Some(found) => format!("{}\n", found.render_long_help()),
                        None => return Err(self.unknown(words)),
                    },
                }
            }
        };
        recorded::write(&text)?;
        Ok(exit::DONE)
    }

    fn alias(&mut self, text: &str) -> Result<u8, Error> {
        let end = text.find(|c: char| c == '=' || c.is_whitespace());
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let rest = rest.trim_start();
        let meaning = rest.strip_prefix('=').unwrap_or(rest).trim();
        match (name, rest) {
            ("", "") => recorded::write(&self.aliases.list(None)?)?,
            (name, "") => recorded::write(&self.aliases.list(Some(name))?)?,
            _ => self.aliases.set(name, meaning, self.is_typed)?,
        }
        Ok(exit::DONE)
    }

    fn unalias(&mut self, name: Option<&str>) -> Result<u8, Error> {
        let Some(name) = name else {
            return Err(Error::usage(
                "unalias takes the name of an alias",
                Some("alias lists them".to_owned()),
            ));
        };
        self.aliases.remove(name, self.is_typed)?;
        Ok(exit::DONE)
    }

    /// Goes to the nearest call in a direction of which a condition in SQL is true, or to the nearest event if it is one over the
    /// columns of events.
    fn run_to_where(&mut self, words: &[String]) -> Result<u8, Error> {
        let is_back = words[0].starts_with("reverse");
        if words.len() == 1 {
            return Err(Error::usage(
                "continue where takes a condition",
                Some("write: continue where dur_ns > 1000000".to_owned()),
            ));
        }
        if self.is_live() && !is_back {
            return Err(Error::usage(
                "continue where goes through what is recorded, and the program stands at its end",
                Some("go back: continue back where CONDITION; or stop the program where it is true: break LOCATION --condition EXPRESSION".to_owned()),
            ));
        }
        let past = match (&self.past, &mut self.present) {
            (Some(past), _) => Rc::clone(past),
            (None, Some(present)) => present.past()?,
            (None, None) => unreachable!("{SOMETHING}"),
        };
        let here = past.position().seq;
        let condition = words[1..].join(" ");
        let (best, side) = match is_back {
            false => ("min", ">"),
            true => ("max", "<"),
        };
        let asker = self.asker()?;
        let mut nearest = |table: &str, seq: &str| {
            let sql = format!(
                "SELECT {best}({seq}) FROM {table} WHERE ({condition}) AND {seq} {side} {here}"
            );
            let rows = asker.texts(&sql)?;
            Ok::<_, Error>(rows.first().and_then(|row| row.first().cloned()).flatten())
        };
        let (found, nothing) = match nearest("calls", "start_seq") {
            Ok(found) => (found, format!("call with start_seq {side} {here}")),
            // What is wrong in both ways is told of calls.
            Err(error) => match nearest("events", "seq") {
                Ok(found) => (found, format!("event with seq {side} {here}")),
                Err(_) => return Err(error),
            },
        };
        let Some(seq) = found else {
            return Err(Error::usage(
                format!("no {nothing} fulfils: {condition}"),
                Some(
                    "the condition is one over the columns of calls or of events: \\d calls or \\d events in hindsight sql"
                        .to_owned(),
                ),
            ));
        };
        self.verb(vec!["goto".to_owned(), seq])
    }

    fn sql(&mut self, text: &str) -> Result<(), Error> {
        let view = View {
            format: if self.json {
                Format::Json
            } else {
                Format::Table
            },
            rows: self.terminal.stdout.then_some(ROWS),
            records: Records::Auto,
            timing: false,
            terminal: self.terminal.clone(),
        };
        let text = text.trim_end_matches(';');
        show_answer(self.asker()?, text, &view)
    }

    /// Returns who answers SQL. Of a live session, everything recorded up to now is seen.
    fn asker(&mut self) -> Result<&mut Asker, Error> {
        // At a live prompt Ctrl-C is taken over anyway.
        let interruptible = self.terminal.interactive || self.present.is_some();
        let reader = match &mut self.present {
            Some(present) => present.reader()?,
            None => {
                let past = self.past.as_ref().expect(SOMETHING);
                Arc::clone(past.timeline().reader())
            }
        };
        match &mut self.asker {
            Some(asker) => asker.look_at(reader)?,
            None => self.asker = Some(Asker::new(reader, Options::default(), interruptible)?),
        }
        Ok(self.asker.as_mut().expect("it was made"))
    }

    /// What stands before a line: whether live or recorded, and where one is.
    fn prompt(&mut self) -> String {
        let Some(past) = &self.past else {
            let present = self.present.as_mut().map(Present::prompt);
            return present.unwrap_or_else(|| "> ".to_owned());
        };
        let position = past.position();
        let timeline = past.timeline();
        let call = timeline
            .innermost(position.tid, position.seq)
            .ok()
            .flatten();
        let function = call.map(|call| timeline.name(&call)).unwrap_or_default();
        let kind = match self.present {
            Some(_) => "past",
            None => "recorded",
        };
        prompt(kind, Some(position.seq), position.tid, &function)
    }

    /// Returns what Tab offers.
    fn words(&mut self) -> words::Words {
        let opened = match (&self.past, &mut self.present) {
            (Some(past), _) => Some(Rc::clone(past)),
            // Without a past there are no functions to offer yet.
            (None, Some(present)) => present.past().ok(),
            (None, None) => None,
        };
        let mut verbs = words::written(&Line::command());
        verbs.extend(self.aliases.names().map(str::to_owned));
        let terminal = self.terminal.clone();
        let locals = move || variables(&terminal);
        let (past, known) = (opened.clone(), OnceCell::new());
        let globals = move || {
            let names = |past: &Rc<Past>| past.timeline().global_names(MAX_GLOBALS);
            let list = || past.as_ref().map(names).unwrap_or_default();
            Vec::clone(known.get_or_init(list))
        };
        let past = opened.clone();
        let notes = move || {
            let notes = past.as_ref().and_then(|past| past.timeline().notes().ok());
            let notes = notes.into_iter().flatten();
            notes.map(|note| note.text.clone()).collect()
        };
        let timeline = opened.as_deref().map(Past::timeline);
        let variables: [words::Variables; 3] =
            [Box::new(locals), Box::new(globals), Box::new(notes)];
        words::Words::of(verbs, timeline, variables)
    }

    /// Makes the error for a line that begins with no verb.
    fn unknown(&self, words: &[String]) -> Error {
        let verb = &words[0];
        let mut names = words::written(&Line::command());
        names.extend(self.aliases.names().map(str::to_owned));
        let near = suggest::nearest(verb, names.iter().map(String::as_str));
        Error::usage(
            format!("there is no verb \"{verb}\""),
            Some(match (familiar::ours(words), near) {
                (Some(ours), _) => format!("here that is: {ours}; help lists the verbs"),
                (None, Some(near)) => format!("did you mean {near}? help lists the verbs"),
                (None, None) => {
                    "help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN".to_owned()
                }
            }),
        )
    }

    fn greeting(&self) -> String {
        match (&self.present, &self.past) {
            (Some(present), _) if present.is_ours() => {
                "help lists the verbs; Ctrl-C stops the program; quit ends it, quit --keep lets it go on"
                    .to_owned()
            }
            (Some(_), _) => {
                "help lists the verbs; Ctrl-C stops the program; quit leaves the session as it is"
                    .to_owned()
            }
            (None, Some(past)) => {
                let timeline = past.timeline();
                format!(
                    "{} events of {}; help lists the verbs, quit leaves",
                    timeline.events(),
                    timeline.recording().manifest().argv.join(" ")
                )
            }
            (None, None) => String::new(),
        }
    }

    /// What a person should know before looking at a recording: which modules are missing here.
    fn warnings(&self) -> Vec<String> {
        let past = self.past.iter();
        let absent = past.flat_map(|past| past.timeline().modules().all_absent());
        absent
            .map(|absent| escaped(&absent.why).into_owned())
            .collect()
    }
}

/// Writes a prompt: `live 31 t4711 parse> `.
fn prompt(kind: &str, seq: Option<u64>, tid: u32, function: &str) -> String {
    let function = function.split(['(', '<']).next().unwrap_or_default();
    let space = if function.is_empty() { "" } else { " " };
    let seq = seq.map(|seq| format!(" {seq}")).unwrap_or_default();
    format!("{kind}{seq} t{tid}{space}{function}> ")
}

/// Returns the variables where one looks; none where the program runs.
fn variables(terminal: &Terminal) -> Vec<String> {
    let reply = live::fetch::<server::verbs::Locals>(
        &Common::default(),
        terminal,
        &LocalsArgs::default(),
        Patience::Answer,
        false,
    );
    let variables = reply.map(|reply| reply.variables).unwrap_or_default();
    variables
        .into_iter()
        .map(|variable| variable.name)
        .collect()
}

fn is_verb(word: &str) -> bool {
    help::is_own(word)
        || words::written(&Line::command())
            .iter()
            .any(|verb| verb == word)
}

/// Reads lines from the terminal until the user leaves.
///
/// # Errors
/// When the terminal cannot be used. Wrong lines are told to the user, who goes on.
pub fn interactive(session: &mut Session) -> Result<u8, Error> {
    session.is_typed = true;
    // From here on Ctrl-C ends what is waited for, and never the prompt.
    Interrupts::catch()?;
    println!("{}", session.greeting());
    for line in session.warnings() {
        println!("note: {line}");
    }
    let words = session.words();
    let mut editor = Editor::open(words, session.terminal.stdout_colour)?;
    loop {
        if let Some(present) = &mut session.present {
            present.show_output();
        }
        let text = match editor.read(&session.prompt())? {
            Input::Line(text) => text,
            Input::Dropped => continue,
            Input::End => return Ok(exit::DONE),
        };
        let text = match text.trim().is_empty() {
            true => session.last_motion.clone(),
            false => text,
        };
        for line in line::pasted(&text) {
            match session.run(line) {
                Ok((Flow::GoOn, _)) => {}
                Ok((Flow::Quit, _)) => return Ok(exit::DONE),
                Err(error) => {
                    report(&error, &session.terminal);
                    break;
                }
            }
        }
    }
}

/// Makes an error of clap's: its first line, without its prefix, and what to do.
fn wrong(error: &clap::Error) -> Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let mut usage = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Usage: "));
    Error::usage(message, usage.next().map(|usage| format!("write: {usage}")))
}
