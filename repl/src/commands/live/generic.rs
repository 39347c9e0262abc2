//! Verbs that say their own form: their command lines are made of that, and their replies written by it.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use serde_json::{Map, Value};
use server::os_text::OsText;
use server::verbs::{
    ALL, Column, Command, CommandVisitor, Description, Does, Form, Needs, Piece, Text, Word, find,
    visit_command,
};

use super::ask::{Common, Patience, answer, fetch};
use super::{Link, Origin, show};
use crate::duration;
use crate::error::Error;
use crate::render::{Align, Terminal, escaped};

/// The names of verbs and their aliases as command lines write them; in the order of [`ALL`].
static WRITTEN: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(|| {
    let written = |name: &&str| name.replace('_', "-");
    let names = |verb: &Description| {
        let aliases = verb.aliases.iter().map(written).collect();
        (written(&verb.name), aliases)
    };
    ALL.iter().map(names).collect()
});

/// Makes the commands of all verbs that say their form.
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
            // A prompt is about a session.
            true => command
                .mut_arg("session", |arg| arg.hide(true))
                .mut_arg("json", |arg| arg.help("Print the reply as JSON")),
        })
    })
}

/// Lets every verb's help say what the verb says of itself.
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
    let arg = Arg::new(word.field).help(word.help);
    let option = |arg: Arg| match word.name {
        "" => arg.long(word.field),
        name => arg.long(name),
    };
    let rest = |arg: Arg| arg.num_args(1..).action(ArgAction::Append).required(true);
    match word.form {
        Form::Rest => rest(arg.value_name(word.value)),
        Form::Expression => rest(arg.value_name(word.value)).allow_hyphen_values(true),
        Form::Path => arg
            .value_name(word.value)
            .required(true)
            .value_parser(value_parser!(OsString)),
        Form::Number => arg.value_name(word.value).value_parser(value_parser!(u32)),
        Form::Text => arg.value_name(word.value).required(true),
        Form::NumberOption => option(arg)
            .value_name(word.value)
            .value_parser(value_parser!(u64)),
        Form::SecondsOption => option(arg)
            .value_name(word.value)
            .value_parser(duration::seconds),
        Form::Flag(letter) => {
            let arg = option(arg).action(ArgAction::SetTrue);
            match letter {
                Some(letter) => arg.short(letter),
                None => arg,
            }
        }
    }
}

/// Runs the verb that was written, if it says its own form. Returns the exit code.
///
/// # Errors
/// The verb's.
pub fn run(name: &str, matches: &ArgMatches, link: &Link) -> Option<Result<u8, Error>> {
    let verb = find(name)?;
    let words = verb.words?;
    let mut common = match Common::from_arg_matches(matches) {
        Ok(common) => common,
        Err(error) => error.exit(),
    };
    let mut args = Map::new();
    for word in words {
        if let Some(value) = value(word, matches, &mut common) {
            args.insert(word.field.to_owned(), value);
        }
    }
    visit_command(verb.name, Run { common, args, link })
}

fn value(word: &Word, matches: &ArgMatches, common: &mut Common) -> Option<Value> {
    let texts = || matches.get_many::<String>(word.field).into_iter().flatten();
    match word.form {
        Form::Rest => Some(texts().cloned().collect::<Vec<_>>().join(" ").into()),
        Form::Expression => {
            let mut words: Vec<String> = texts().cloned().collect();
            // The option may stand after the expression too.
            if words.len() > 1 && words.last().is_some_and(|last| last == "--json") {
                common.json = true;
                words.pop();
            }
            Some(words.join(" ").into())
        }
        Form::Path => {
            let path = matches.get_one::<OsString>(word.field)?;
            let text: OsText = path.as_os_str().into();
            serde_json::to_value(text).ok()
        }
        Form::Text => matches
            .get_one::<String>(word.field)
            .cloned()
            .map(Value::from),
        Form::Number => matches.get_one::<u32>(word.field).copied().map(Value::from),
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
}

impl CommandVisitor for Run<'_> {
    type Output = Result<u8, Error>;

    fn visit<V: Command>(self) -> Self::Output {
        let Run { common, args, link } = self;
        let is_waiting = |word: &Word| word.form == Form::SecondsOption;
        let timeout = V::WORDS.iter().find(|word| is_waiting(word));
        let timeout = timeout.map(|word| args.get(word.field).and_then(Value::as_f64));
        let patience = match (timeout, V::NEEDS) {
            (Some(timeout), _) => Patience::Stop(timeout),
            (None, Needs::Recording | Needs::Daemon) => Patience::Search,
            (None, _) => Patience::Answer,
        };
        let args = serde_json::from_value(Value::Object(args));
        let args = args.expect("a verb's words are its arguments");
        let reply = fetch::<V>(&common, link, &args, patience);
        if let (Ok(reply), Needs::Daemon, Does::Change) = (&reply, V::NEEDS, V::DOES) {
            for piece in V::text(reply).pieces {
                if let Piece::Session(report) = piece {
                    link.begun(&report, Origin::Found);
                }
            }
        }
        answer::<V>(&common, reply, |reply| {
            written(&V::text(reply), link.terminal())
        })
    }
}

/// Writes a text for a terminal: nothing in it steers that.
fn written(text: &Text, terminal: &Terminal) -> String {
    let colour = terminal.stdout_colour;
    let piece = |piece: &Piece| match piece {
        Piece::Line(line) => format!("{}\n", escaped(line)),
        Piece::Table(columns, rows) => {
            let heading = |column: &Column| match column.is_number {
                true => (column.name, Align::Right),
                false => (column.name, Align::Left),
            };
            let headings: Vec<_> = columns.iter().map(heading).collect();
            let rows = rows.iter().cloned();
            let rows = rows.map(|row| row.into_iter().map(Some).collect());
            show::table(&headings, rows.collect(), terminal)
        }
        Piece::Motion(report) => show::motion(report, colour),
        Piece::Session(report) => show::session(report, colour),
    };
    text.pieces.iter().map(piece).collect()
}
