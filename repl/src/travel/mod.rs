//! The prompt of `hindsight repl`: reads lines, classifies and runs them, for a recording or for a live session and its
//! past.
//!
//! The verbs are the commands of the command line and use the same link: to the daemon, or to the recording that the
//! prompt has opened in this process.

mod aliases;
mod at_stops;
mod comparing;
pub mod familiar;
mod hangup;
mod help;
pub mod line;
mod present;
mod questions;
mod script;
mod sides;
mod words;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::rc::Rc;

use clap::{CommandFactory, FromArgMatches, Parser};
use rustyline::{CompletionType, Config};
use server::session::StateWord;
use server::verbs::{Does, NameKind, Names, NamesArgs, Needs, PositionReply, When, find};

use crate::ask::{Asker, Interrupts, open_past};
use crate::cli::with_negative_numbers;
use crate::commands::live::{self, Common, Link, Patience};
use crate::error::Error;
use crate::exit;
use crate::output;
use crate::prompt::editor::Assistant;
use crate::prompt::lines::{Input, Lines};
use crate::render::{Terminal, escaped};
use crate::report::answer;
use crate::spelling;
use crate::suggest;

pub use aliases::Aliases;
use comparing::{Comparing, Way};
use hangup::Hangup;
pub use present::Present;
pub use script::ScriptInput;

/// The file of the history, next to that of the SQL prompt.
const HISTORY: &str = "travel_history";

/// A line, once it is known not to be SQL.
#[derive(Debug, Parser)]
#[command(
    no_binary_name = true,
    name = "hindsight",
    disable_help_subcommand = true
)]
struct Line {
    #[command(subcommand)]
    verb: live::Live,
}

/// Makes the command line of a line: all verbs, each from its own description.
fn commands() -> clap::Command {
    live::described(Line::command().subcommands(live::commands(true)))
}

/// Whether to read another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    GoOn,
    Quit,
}

/// The target of a prompt and its settings.
pub struct Session {
    link: Rc<Link>,
    /// The session of the daemon, if the prompt is about one.
    present: Option<Present>,
    /// Opened by the first query.
    asker: Option<Asker>,
    /// The recording that this one is compared with.
    comparing: Option<Comparing>,
    json: bool,
    aliases: Aliases,
    /// A user types the lines.
    is_typed: bool,
    /// Keep a program that was started here.
    keep: bool,
    /// What an empty line does: repeat or continue the last line that inspected or moved.
    again: String,
    /// The lines of a breakpoint that are being entered.
    entered: Option<at_stops::Entered>,
    /// The lines of a breakpoint are running.
    is_at_stop: bool,
}

impl Session {
    /// Opens the recording in the folder `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path, terminal: &Terminal, json: bool) -> Result<Session, Error> {
        let past = open_past(path)?;
        let link = Rc::new(Link::of_prompt(terminal));
        link.look_at(past);
        Ok(Session::new(link, None, Aliases::load()?, json))
    }

    /// Makes the prompt of a session of the daemon.
    pub fn live(present: Present, link: Rc<Link>, aliases: Aliases, json: bool) -> Session {
        Session::new(link, Some(present), aliases, json)
    }

    fn new(link: Rc<Link>, present: Option<Present>, aliases: Aliases, json: bool) -> Session {
        Session {
            link,
            present,
            asker: None,
            comparing: None,
            json,
            aliases,
            is_typed: false,
            keep: false,
            again: String::new(),
            entered: None,
            is_at_stop: false,
        }
    }

    /// Leaves the prompt: ends a live program that was started here.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn leave(&mut self) -> Result<(), Error> {
        match &self.present {
            Some(present) => present.leave(self.keep),
            None => Ok(()),
        }
    }

    /// Returns the session whose program was started here, and ends when the user leaves.
    fn ends_with_prompt(&self) -> Option<u32> {
        let present = self.present.as_ref().filter(|_| !self.keep)?;
        present.started_here()
    }

    fn terminal(&self) -> &Terminal {
        self.link.terminal()
    }

    /// Returns whether the prompt is at the current state of a program.
    fn is_live(&self) -> bool {
        let Some(present) = self.present.as_ref().filter(|_| self.link.past().is_none()) else {
            return false;
        };
        match present.report() {
            Ok(Some(report)) => report.past.is_none(),
            _ => true,
        }
    }

    /// Returns the current position; `None` if the session no longer exists.
    fn position(&self) -> Result<Option<PositionReply>, Error> {
        match &self.present {
            Some(present) if self.link.past().is_none() => present.position(),
            _ => {
                let common = Common::default();
                let nothing = server::verbs::Nothing {};
                live::fetch::<server::verbs::Position>(
                    &common,
                    &self.link,
                    &nothing,
                    Patience::Answer,
                )
                .map(Some)
            }
        }
    }

    /// Runs a line. Returns the exit code that its command would have.
    fn run(&mut self, text: &str) -> Result<(Flow, u8), Error> {
        if self.enter(text.trim())? {
            return Ok((Flow::GoOn, exit::DONE));
        }
        let text = self.with_meaning(text.trim());
        if text.is_empty() || text.starts_with('#') {
            return Ok((Flow::GoOn, exit::DONE));
        }
        if line::is_sql(&text) {
            self.sql(&text)?;
            return Ok((Flow::GoOn, exit::DONE));
        }
        let words = line::normal(line::split(&text));
        let words = line::unquoted(words);
        if let Some(again) = line::again(&words, &text) {
            self.again = again;
        }
        let rest = || words.get(1).map(String::as_str);
        let code = match words[0].as_str() {
            "quit" | "exit" | "q" => return self.quit(&words[1..]),
            "help" | "?" => self.help(&words[1..])?,
            "alias" => self.alias(text["alias".len()..].trim())?,
            "unalias" => self.unalias(rest())?,
            "continue-where" | "reverse-continue-where" => self.run_to_where(&words)?,
            "commands" => self.commands(words)?,
            "compare" => self.compare(&words[1..])?,
            "next-difference" => self.difference(Way::Next, &words[1..])?,
            "previous-difference" => self.difference(Way::Previous, &words[1..])?,
            "other" => self.other(text["other".len()..].trim())?,
            "goto" => match self.verb(words)? {
                exit::DONE if self.is_comparing() => self.follow()?,
                code => code,
            },
            _ => self.verb(words)?,
        };
        match code {
            exit::DONE => Ok((Flow::GoOn, self.run_at_stop()?)),
            code => Ok((Flow::GoOn, code)),
        }
    }

    /// Replaces an alias by its meaning.
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
                let help = "write: quit, or quit --keep to keep the program running".to_owned();
                return Err(Error::usage(
                    format!("quit does not take \"{word}\""),
                    Some(help),
                ));
            }
        }
        Ok((Flow::Quit, exit::DONE))
    }

    fn verb(&mut self, mut words: Vec<String>) -> Result<u8, Error> {
        if let [info] = words.as_slice()
            && is_info(info)
        {
            live::write(&spelling::subjects())?;
            return Ok(exit::DONE);
        }
        if let Some(refusal) = familiar::refusal(&words) {
            return Err(refusal);
        }
        let command = commands();
        if !words::names(&command).contains(&words[0]) {
            return Err(self.unknown(&words));
        }
        if self.json {
            words.insert(1, "--json".to_owned());
        }
        let words = words.into_iter().map(OsString::from).collect();
        let matches = command
            .term_width(Terminal::size().0.min(100))
            .try_get_matches_from(with_negative_numbers(words, 0));
        let matches = match matches {
            Ok(matches) => matches,
            // --help is a request, not a mistake.
            Err(error) if !error.use_stderr() => {
                live::write(&error.to_string())?;
                return Ok(exit::DONE);
            }
            Err(error) => return Err(Error::of_words(&error)),
        };
        let is_opened = self.open_what_was_recorded(&matches)?;
        let ran = self.run_verb(&matches);
        let name = matches.subcommand_name().and_then(find);
        let has_moved = name.is_some_and(|verb| verb.does == Does::Move);
        if is_opened && !(has_moved && matches!(ran, Ok(exit::DONE))) {
            self.link.look_away();
        }
        if let (Some(begun), Some(present)) = (self.link.take_begun(), &mut self.present) {
            present.follow(begun);
            self.asker = None;
        }
        ran
    }

    fn run_verb(&self, matches: &clap::ArgMatches) -> Result<u8, Error> {
        if let Some((name, words)) = matches.subcommand()
            && let Some(ran) = live::run_generic(name, words, &self.link)
        {
            return ran;
        }
        let line = Line::from_arg_matches(matches).map_err(|error| Error::of_words(&error))?;
        line.verb.run(&self.link)
    }

    /// Opens the recording of a session that has ended, for a verb that needs a recording. `goto live` then returns to
    /// the state without a session.
    fn open_what_was_recorded(&self, matches: &clap::ArgMatches) -> Result<bool, Error> {
        let (Some(present), Some((name, words))) = (&self.present, matches.subcommand()) else {
            return Ok(false);
        };
        let needs = find(name).map(|verb| verb.needs);
        if needs != Some(Needs::Recording) {
            return Ok(false);
        }
        let is_back = name == "goto"
            && words
                .get_many::<String>("to")
                .is_some_and(|mut to| to.next().is_some_and(|to| to == "live"));
        match (self.link.past().is_some(), is_back) {
            (true, true) => self.link.look_away(),
            (false, false) if present.report()?.is_none() => {
                self.link.look_at(present.what_was_recorded()?);
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn help(&self, words: &[String]) -> Result<u8, Error> {
        let is_live = self.is_live();
        let text = match words {
            [] => help::all(is_live, &words::written(&commands())),
            [info] if is_info(info) => spelling::subjects(),
            [verb, ..] => {
                let name = line::normal(words.to_vec()).remove(0);
                let mut command = commands();
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
        let columns = match std::io::stdout().is_terminal() {
            true => Terminal::size().0,
            false => usize::MAX,
        };
        live::write(&help::wrapped(&text, columns))?;
        Ok(exit::DONE)
    }

    fn alias(&mut self, text: &str) -> Result<u8, Error> {
        let end = text.find(|c: char| c == '=' || c.is_whitespace());
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let rest = rest.trim_start();
        let meaning = rest.strip_prefix('=').unwrap_or(rest).trim();
        match (name, rest) {
            ("", "") => live::write(&self.aliases.list(None)?)?,
            (name, "") => live::write(&self.aliases.list(Some(name))?)?,
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

    /// The prompt's text: live or recorded, and the current position.
    fn prompt(&self) -> String {
        let position = match self.position() {
            Ok(Some(position)) => position,
            Ok(None) => return "no session> ".to_owned(),
            Err(error) => {
                tracing::debug!(%error, "the prompt does not know where it is");
                return "live> ".to_owned();
            }
        };
        let kind = match (position.when, position.status) {
            (When::Now, StateWord::Running) => return "live running> ".to_owned(),
            (When::Now, StateWord::Ended) => return "live ended> ".to_owned(),
            (When::Now, _) => "live",
            (When::Past, _) => "past",
            (When::Recorded, _) if self.is_comparing() => "comparing",
            (When::Recorded, _) => "recorded",
        };
        match position.thread {
            None => format!("{kind}> "),
            Some(tid) => {
                let function = position.function.unwrap_or_default();
                let moment = position.seq.map(|seq| match position.steps {
                    Some(steps) => format!("{seq}+{steps}"),
                    None => seq.to_string(),
                });
                prompt(kind, moment.as_deref(), tid, &function)
            }
        }
    }

    /// Returns the completions of Tab.
    fn words(&self) -> words::Words {
        let mut verbs = words::written(&commands());
        verbs.extend(self.aliases.names().map(str::to_owned));
        let ask = |of| {
            let link = Rc::clone(&self.link);
            move || named(&link, of, None)
        };
        let members = Rc::clone(&self.link);
        let (globals, known) = (ask(NameKind::Globals), OnceCell::new());
        let globals = move || Vec::clone(known.get_or_init(&globals));
        words::Words::of(
            verbs,
            // Without a past there are no functions to offer yet.
            named(&self.link, NameKind::Functions, None),
            named(&self.link, NameKind::Files, None),
            [
                Box::new(ask(NameKind::Locals)),
                Box::new(globals),
                Box::new(ask(NameKind::Notes)),
                Box::new(ask(NameKind::Breakpoints)),
                Box::new(ask(NameKind::Threads)),
            ],
            Box::new(move |of| named(&members, NameKind::Members, Some(of))),
        )
    }

    /// Makes the error for a line that does not begin with a verb.
    fn unknown(&self, words: &[String]) -> Error {
        let verb = &words[0];
        if let (true, Some(subject)) = (is_info(verb), words.get(1)) {
            return Error::usage(
                format!("info does not know \"{subject}\""),
                Some(format!("info takes: {}", spelling::subject_names())),
            );
        }
        let mut names = words::written(&commands());
        names.extend(self.aliases.names().map(str::to_owned));
        let near = suggest::nearest(verb, names.iter().map(String::as_str));
        Error::usage(
            format!("there is no verb \"{verb}\""),
            Some(match (familiar::hint(words), near) {
                (Some(hint), _) => hint,
                (None, Some(near)) => format!("did you mean {near}? help lists the verbs"),
                (None, None) => {
                    "help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN".to_owned()
                }
            }),
        )
    }

    fn greeting(&self) -> String {
        match (&self.present, self.link.past()) {
            (Some(present), _) if present.is_ours() => {
                "help lists the verbs; Ctrl-C stops the program; quit ends it, quit --keep keeps it running"
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

    /// Returns warnings about a recording: the modules that are missing here, and what a core file lacks.
    fn warnings(&self) -> Vec<String> {
        let Some(past) = self.link.past() else {
            return Vec::new();
        };
        let timeline = past.timeline();
        let warnings: Vec<String> = match timeline.is_core() {
            // What cannot be read is told where it is needed.
            true => replay::remarks(timeline).unwrap_or_default(),
            false => {
                let absent = timeline.modules().all_absent().into_iter();
                absent.map(|absent| absent.why).collect()
            }
        };
        let plain = warnings.iter().map(|text| escaped(text).into_owned());
        plain.collect()
    }
}

/// Formats a prompt: `live 31 t4711 parse> `.
fn prompt(kind: &str, moment: Option<&str>, tid: u32, function: &str) -> String {
    let function = function.split(['(', '<']).next().unwrap_or_default();
    let space = if function.is_empty() { "" } else { " " };
    let moment = moment.map(|at| format!(" {at}")).unwrap_or_default();
    format!("{kind}{moment} t{tid}{space}{function}> ")
}

/// Returns the names of a kind; empty if they are not known.
fn named(link: &Link, of: NameKind, expression: Option<&str>) -> Vec<String> {
    let expression = expression.map(str::to_owned);
    let (common, args) = (Common::default(), NamesArgs { of, expression });
    let reply = live::fetch::<Names>(&common, link, &args, Patience::Answer);
    reply.map(|reply| reply.names).unwrap_or_default()
}

/// Returns whether a word is gdb's `info`.
fn is_info(word: &str) -> bool {
    matches!(word, "info" | "inf" | "i")
}

fn is_verb(word: &str) -> bool {
    help::is_own(word) || words::written(&commands()).iter().any(|verb| verb == word)
}

/// Reads lines from the terminal until the user leaves. An error in a line is reported and does not end the prompt.
///
/// # Errors
/// When the terminal cannot be used.
pub fn interactive(session: &mut Session) -> Result<u8, Error> {
    session.is_typed = true;
    session.link.types();
    // From here on Ctrl-C ends a wait, never the prompt.
    Interrupts::catch()?;
    output::line(session.greeting())?;
    for line in session.warnings() {
        output::line(format_args!("note: {line}"))?;
    }
    let words = session.words();
    let assistant = Assistant::new(words, session.terminal().stdout_colour);
    let builder = Config::builder().completion_type(CompletionType::List);
    let mut editor = Lines::open(builder, HISTORY, assistant)?;
    let hangup = Hangup::watch()?;
    loop {
        hangup.ends(session.ends_with_prompt());
        if let Some(present) = &session.present {
            present.show_output();
        }
        let is_entering = session.is_entering();
        let prompt = match is_entering {
            true => at_stops::PROMPT.to_owned(),
            false => session.prompt(),
        };
        let text = match editor.read(&prompt)? {
            Input::Line(text) => text,
            Input::Dropped => {
                session.drop_entered()?;
                continue;
            }
            Input::End if is_entering => at_stops::END.to_owned(),
            Input::End => return Ok(exit::DONE),
        };
        let text = match text.trim().is_empty() && !is_entering {
            true => session.again.clone(),
            false => text,
        };
        for line in line::pasted(&text) {
            let ran = session.run(line);
            hangup.ends(session.ends_with_prompt());
            match ran {
                Ok((Flow::GoOn, _)) => {}
                Ok((Flow::Quit, _)) => return Ok(exit::DONE),
                Err(error) => {
                    answer(&error, session.terminal());
                    break;
                }
            }
        }
    }
}
