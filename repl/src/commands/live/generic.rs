//! Verbs that define their own form, from which their command lines and the text of their replies are made.

use std::any::Any;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use serde_json::{Map, Value};
use server::os_text::OsText;
use server::protocol::{Code, Failure};
use server::session::{MotionReport, StopReport};
use server::verbs::{
    ALL, Command, CommandVisitor, Commands, CommandsArgs, Description, Does, Form, LinesOf, Needs,
    Piece, Style, Text, ThreadApply, ThreadApplyArgs, Verb, WaitsFor, Word, find, visit_command,
};

use super::apply;
use super::ask::{Common, Patience, answer, fetch};
use super::{Link, Origin};
use crate::duration;
use crate::error::Error;
use crate::recording;
use crate::render::{Align, Column, Layout, Paint, Table, Terminal, escaped};

/// The names and aliases of verbs as command lines write them, in the order of [`ALL`].
static WRITTEN: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(|| {
    let written = |name: &&str| name.replace('_', "-");
    let names = |verb: &Description| {
        let aliases = verb.aliases.iter().map(written).collect();
        (written(&verb.name), aliases)
    };
    ALL.iter().map(names).collect()
});

/// Makes the commands of all verbs that define their form.
pub fn commands(at_prompt: bool) -> impl Iterator<Item = clap::Command> {
    let verbs = ALL.iter().zip(WRITTEN.iter());
    verbs.filter_map(move |(verb, (name, aliases))| {
        let words = verb.words?;
        let aliases = aliases.iter().map(String::as_str);
        let command = clap::Command::new(name.as_str()).visible_aliases(aliases);
        let command = command.args(words.iter().map(argument));
        let command = Common::augment_args(command);
        Some(match at_prompt {
            false => command,
            // The session of a prompt is fixed.
            true => command
                .mut_arg("session", |arg| arg.hide(true))
                .mut_arg("json", |arg| arg.help("Print the reply as JSON")),
        })
    })
}

/// Adds the description of each verb to its help.
pub fn described(mut command: clap::Command) -> clap::Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    for name in names {
        let Some(verb) = find(&name) else { continue };
        let first = verb.doc.lines().next().unwrap_or_default();
        command = command.mut_subcommand(name, |command| {
            let command = command.about(first);
            match verb.doc == first {
                true => command,
                false => command.long_about(verb.doc),
            }
        });
    }
    command
}

fn argument(word: &'static Word) -> Arg {
    let arg = Arg::new(word.field)
        .help(word.help)
        .conflicts_with_all(word.against);
    let value = |arg: Arg| arg.value_name(word.value);
    let operand = || value(arg.clone()).required(!word.is_optional);
    let list = || operand().num_args(1..).action(ArgAction::Append);
    let name = word.long();
    let option = || value(arg.clone()).long(name);
    match word.form {
        Form::Rest | Form::Words => list(),
        Form::Operand => list().allow_negative_numbers(true),
        Form::Expression => list().allow_hyphen_values(true),
        Form::Numbers => list().value_parser(value_parser!(u32)),
        Form::Path => operand().value_parser(value_parser!(OsString)),
        Form::Number => value(arg).value_parser(value_parser!(u32)),
        Form::NumberOperand => operand().value_parser(value_parser!(u32)),
        Form::Text => operand().allow_negative_numbers(true),
        Form::TextOption(letter) => option().short(letter),
        Form::NumberOption => option().value_parser(value_parser!(u64)),
        Form::SecondsOption => option().value_parser(duration::seconds),
        Form::Choice(choices) => {
            let choice = |(name, others): &(&'static str, &'static [&'static str])| {
                PossibleValue::new(*name).aliases(others.iter().copied())
            };
            let default = choices.first().map(|(name, _)| *name);
            let choices: Vec<PossibleValue> = choices.iter().map(choice).collect();
            option().default_value(default).value_parser(choices)
        }
        Form::Flag(letter) => arg.long(name).short(letter).action(ArgAction::SetTrue),
    }
}

/// Runs the verb called `name`, if it defines its own form. Returns the exit code.
///
/// # Errors
/// When the verb fails.
pub fn run(name: &str, matches: &ArgMatches, link: &Link) -> Option<Result<u8, Error>> {
    let verb = find(name)?;
    let (common, args) = read(verb, matches)?;
    if verb.name == ThreadApply::NAME {
        let words = matches.get_many::<String>("words").into_iter().flatten();
        return Some(apply::run(common, words.cloned().collect(), link));
    }
    let run = Run {
        common,
        args,
        link,
        threads: None,
    };
    visit_command(verb.name, run)
}

/// Runs a verb that looks for these threads, or for all if there are none. `outer` is what was written before the verb.
///
/// # Errors
/// When the verb fails.
pub fn run_for(
    threads: &[i32],
    outer: Common,
    (name, matches): (&str, &ArgMatches),
    link: &Link,
) -> Option<Result<u8, Error>> {
    let verb = find(name)?;
    let (own, args) = read(verb, matches)?;
    let run = Run {
        common: Common {
            json: own.json || outer.json,
            session: own.session.or(outer.session),
        },
        args,
        link,
        threads: Some(threads),
    };
    visit_command(verb.name, run)
}

/// Reads the words of a verb that defines its own form as fields of its arguments.
fn read(verb: &Description, matches: &ArgMatches) -> Option<(Common, Map<String, Value>)> {
    let words = verb.words?;
    let mut common = match Common::from_arg_matches(matches) {
        Ok(common) => common,
        Err(error) => error.exit(),
    };
    let mut args = Map::new();
    for word in words {
        if let Some(value) = value(word, matches) {
            args.insert(word.field.to_owned(), value);
        }
    }
    if let Some(word) = words.iter().find(|word| word.form == Form::Expression) {
        let texts = matches.get_many::<String>(word.field).into_iter().flatten();
        let mut texts: Vec<String> = texts.cloned().collect();
        take_options(words, &mut texts, &mut args, &mut common);
        if !texts.is_empty() {
            args.insert(word.field.to_owned(), texts.join(" ").into());
        }
    }
    Some((common, args))
}

/// Takes the options that follow an expression. In no expression is `--` before a name.
fn take_options(
    words: &[Word],
    texts: &mut Vec<String>,
    args: &mut Map<String, Value>,
    common: &mut Common,
) {
    let option = |text: &str| {
        let name = text.strip_prefix("--")?;
        words.iter().find(|word| word.long() == name)
    };
    let flag = |text: &str| option(text).filter(|word| matches!(word.form, Form::Flag(_)));
    loop {
        let (field, value, taken) = match texts.as_slice() {
            [_, .., last] if last == "--json" => {
                common.json = true;
                texts.pop();
                continue;
            }
            [_, .., name, number]
                if name == "--session"
                    && let Ok(number) = number.parse() =>
            {
                common.session = Some(number);
                texts.truncate(texts.len() - 2);
                continue;
            }
            [_, .., last] if let Some(word) = flag(last) => (word.field, true.into(), 1),
            [_, .., name, number]
                if let Some(word) = option(name)
                    && word.form == Form::NumberOption
                    && let Ok(number) = number.parse::<u64>() =>
            {
                (word.field, number.into(), 2)
            }
            _ => return,
        };
        args.insert(field.to_owned(), value);
        texts.truncate(texts.len() - taken);
    }
}

fn value(word: &Word, matches: &ArgMatches) -> Option<Value> {
    let texts = || -> Option<Vec<String>> {
        Some(matches.get_many::<String>(word.field)?.cloned().collect())
    };
    let one = || matches.get_one::<String>(word.field).cloned();
    match word.form {
        Form::Rest => Some(texts()?.join(" ").into()),
        Form::Operand => Some(texts()?.join(" ").trim_start().into()),
        // With the options that may follow it.
        Form::Expression => None,
        Form::Words => Some(texts().unwrap_or_default().into()),
        Form::Numbers => {
            let numbers = matches.get_many::<u32>(word.field).into_iter().flatten();
            Some(numbers.copied().collect())
        }
        Form::Path => {
            let path = matches.get_one::<OsString>(word.field)?;
            let text: OsText = path.as_os_str().into();
            serde_json::to_value(text).ok()
        }
        Form::Text | Form::TextOption(_) => one().map(Value::from),
        Form::Choice(choices) => {
            let written = one()?;
            let is_meant = |(name, others): &&(&str, &[&str])| {
                *name == written || others.contains(&written.as_str())
            };
            choices
                .iter()
                .find(is_meant)
                .map(|(name, _)| Value::from(*name))
        }
        Form::Number | Form::NumberOperand => {
            matches.get_one::<u32>(word.field).copied().map(Value::from)
        }
        Form::NumberOption => matches.get_one::<u64>(word.field).copied().map(Value::from),
        Form::SecondsOption => matches.get_one::<f64>(word.field).copied().map(Value::from),
        Form::Flag(_) => Some(matches.get_flag(word.field).into()),
    }
}

/// A verb with its arguments.
struct Run<'a> {
    common: Common,
    args: Map<String, Value>,
    link: &'a Link,
    /// For these threads, not for the selected one; for all if there are none.
    threads: Option<&'a [i32]>,
}

impl CommandVisitor for Run<'_> {
    type Output = Result<u8, Error>;

    fn visit<V: Command>(self) -> Self::Output {
        let Run {
            common,
            args,
            link,
            threads,
        } = self;
        if let Some(threads) = threads {
            return for_threads::<V>(&common, args, threads, link);
        }
        let is_waiting = |word: &Word| word.form == Form::SecondsOption;
        let timeout = V::WORDS.iter().find(|word| is_waiting(word));
        let timeout = timeout.map(|word| args.get(word.field).and_then(Value::as_f64));
        let patience = match (timeout, V::NEEDS, V::WAITS_FOR) {
            (Some(timeout), _, _) => Patience::Stop(timeout),
            (None, _, WaitsFor::Stop) => Patience::Stop(None),
            (None, _, WaitsFor::Start) => Patience::Start(None),
            // A verb that begins a session without a program opens a recording.
            (None, Needs::Recording, _) => Patience::Search,
            (None, Needs::Daemon, _) if V::DOES == Does::Change => Patience::Search,
            (None, _, _) => Patience::Answer,
        };
        let expression = match V::NEEDS == Needs::Recording && V::DOES == Does::Look {
            true => expression(V::WORDS, &args),
            false => None,
        };
        let args = V::read(args).map_err(|wrong| Error::usage(wrong.message, wrong.hint))?;
        let reply = fetch::<V>(&common, link, &args, patience);
        let reply = reply.map_err(|error| match &expression {
            Some(word) if !link.is_prompt() && link.past().is_none() => {
                taken_as_expression(error, V::NAME, word)
            }
            _ => error,
        });
        if let Some(report) = reply.as_ref().ok().and_then(V::begun) {
            link.begun(report, Origin::Found);
        }
        if let Some(moved) = reply.as_ref().ok().and_then(|reply| as_motion(reply)) {
            link.turned(moved);
        }
        let lines = match &reply {
            Ok(reply) if !common.json => lines_at_stop(reply, &common, link)?,
            _ => Vec::new(),
        };
        let is_silent = lines.first().is_some_and(|line| line == SILENT);
        if !lines.is_empty() {
            let lines = lines.into_iter().filter(|line| line != SILENT).collect();
            link.stopped_with(lines);
        }
        answer::<V>(&common, reply, |reply| match is_silent {
            true => String::new(),
            false => written(&V::text(reply, &args), link.terminal()),
        })
    }
}

/// Runs a verb for several threads.
fn for_threads<V: Command>(
    common: &Common,
    args: Map<String, Value>,
    threads: &[i32],
    link: &Link,
) -> Result<u8, Error> {
    let args = V::read(args).map_err(|wrong| Error::usage(wrong.message, wrong.hint))?;
    let asked = ThreadApplyArgs {
        threads: threads.to_owned(),
        command: V::NAME.to_owned(),
        args: serde_json::to_value(&args).expect("arguments are JSON"),
    };
    let reply = fetch::<ThreadApply>(common, link, &asked, Patience::Answer);
    answer::<ThreadApply>(common, reply, |reply| {
        written(&apply::text::<V>(reply, &args), link.terminal())
    })
}

/// The expression, if it is a single word.
fn expression(words: &[Word], args: &Map<String, Value>) -> Option<String> {
    let word = words.iter().find(|word| word.form == Form::Expression)?;
    let text = args.get(word.field)?.as_str()?;
    let is_word = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    text.chars().all(is_word).then(|| text.to_owned())
}

/// Says that a single word was taken as an expression: it may have been meant as a recording, or for one.
fn taken_as_expression(error: Error, verb: &str, word: &str) -> Error {
    let failure = match error {
        Error::Live {
            source: server::Error::Failed(failure),
        } => failure,
        other => return other,
    };
    let name = recording::like(Path::new(word));
    let has_no_session = failure.code == Code::NoSession;
    if !has_no_session && (failure.code != Code::EvalFailed || name.is_none()) {
        return Error::from(server::Error::Failed(failure));
    }
    let verb = verb.replace('_', "-");
    let of_recording = match name {
        Some(name) => format!("{} EXPRESSION", store::shell::word(&name)),
        None => format!("RECORDING {word}"),
    };
    let taken = format!("{word} was taken as an expression");
    let of_recording = format!("of a recording: hindsight {verb} {of_recording}");
    let (message, hint) = match (has_no_session, failure.hint) {
        (true, _) => (format!("{taken}, and {}", failure.message), of_recording),
        (false, Some(hint)) => (failure.message, format!("{hint} ({taken}; {of_recording})")),
        (false, None) => (failure.message, format!("{taken}; {of_recording}")),
    };
    let told = Failure {
        message,
        hint: Some(hint),
        ..*failure
    };
    Error::from(server::Error::Failed(Box::new(told)))
}

/// The line of a breakpoint that hides the stop itself.
const SILENT: &str = "silent";

fn as_motion(reply: &dyn Any) -> Option<&MotionReport> {
    reply.downcast_ref()
}

/// Returns the lines (`commands`) of the breakpoints at which a verb has ended, if it is one that moves.
fn lines_at_stop(reply: &dyn Any, common: &Common, link: &Link) -> Result<Vec<String>, Error> {
    let Some(moved) = as_motion(reply) else {
        return Ok(Vec::new());
    };
    let probes = moved.stop.as_ref().map(StopReport::probes);
    let probes = probes.filter(|probes| !probes.is_empty() && !moved.already);
    let Some(probes) = probes else {
        return Ok(Vec::new());
    };
    let all = CommandsArgs::default();
    let common = Common {
        session: moved
            .followed
            .as_ref()
            .map_or(common.session, |_| Some(moved.session)),
        ..common.clone()
    };
    let known = fetch::<Commands>(&common, link, &all, Patience::Answer)?;
    if !link.is_prompt() {
        // The lines are about the session that has moved.
        link.attend(Some(moved.session));
    }
    let of_stop = |of: &LinesOf| probes.contains(&of.id);
    let mut lines = known.commands.into_iter().filter(of_stop);
    Ok(lines.by_ref().flat_map(|of| of.lines).collect())
}

/// Formats a text for a terminal and escapes control characters in it, but not the tabs of plain lines.
pub fn written(text: &Text, terminal: &Terminal) -> String {
    let colour = terminal.stdout_colour;
    let part = |(style, text): &(Style, String)| {
        let text = escaped(text);
        match style {
            Style::Plain => text.into_owned(),
            Style::Heading => colour.paint(Paint::Heading, text).to_string(),
            Style::Here => colour.paint(Paint::Prompt, text).to_string(),
            Style::Dim => colour.paint(Paint::Dim, text).to_string(),
        }
    };
    let piece = |piece: &Piece| match piece {
        Piece::Line(line) => {
            let parts: Vec<_> = line.split('\t').map(escaped).collect();
            format!("{}\n", parts.join("\t"))
        }
        Piece::Hint(line) => format!("{}\n", escaped(line)),
        Piece::Styled(parts) => parts.iter().map(part).collect::<String>() + "\n",
        Piece::Table(columns, rows) => table(columns, rows, terminal),
    };
    text.pieces.iter().map(piece).collect()
}

fn table(columns: &[server::verbs::Column], rows: &[Vec<String>], terminal: &Terminal) -> String {
    let columns = columns.iter().map(|column| Column {
        name: column.name.to_owned(),
        align: match column.is_number {
            true => Align::Right,
            false => Align::Left,
        },
    });
    let mut table = Table::new(columns.collect());
    for row in rows {
        table.push(row.iter().cloned().map(Some).collect());
    }
    let layout = match terminal.stdout {
        true => Layout::Fit(Terminal::size().0),
        false => Layout::Whole,
    };
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    _ = table.flush(&mut out, layout, terminal.stdout_colour);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_steers_the_terminal() {
        let mut text = Text::styled(vec![(Style::Heading, "app\x1b[2J".to_owned())]);
        text.push("name = \"\x1b[2J\"");
        let terminal = Terminal {
            stdout: false,
            stdout_colour: crate::render::Colour::Off,
            ..Terminal::detect()
        };
        assert_eq!(
            written(&text, &terminal),
            "app\\x1b[2J\nname = \"\\x1b[2J\"\n"
        );
    }
}
