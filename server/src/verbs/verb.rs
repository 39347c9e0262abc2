//! The traits of a verb. Refusals, help, completion and the form on a command line are derived from them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Call, Text};
use crate::protocol::Failure;
use crate::session::SessionReport;

/// A verb. Each exists once, for live programs and recordings, on the socket, in the shell and at the prompt.
pub trait Verb {
    /// Its name on the wire. Command lines write hyphens for underscores.
    const NAME: &'static str;
    /// Its help: one line for lists of verbs, then an empty line and more text.
    const DOC: &'static str;
    /// Other names.
    const ALIASES: &'static [&'static str] = &[];
    /// What it needs; without it, the verb is refused.
    const NEEDS: Needs;
    /// Whether it inspects, moves or changes.
    const DOES: Does;
    /// The kind of its words, for completion and quoting.
    const TAKES: Takes = Takes::Others;
    /// Its arguments.
    type Args: Serialize + DeserializeOwned + Clone;
    /// Its reply.
    type Reply: Serialize + DeserializeOwned + 'static;

    /// Runs the verb.
    ///
    /// # Errors
    /// Why it failed.
    fn run(call: &Call<'_>, args: Self::Args) -> Result<Self::Reply, Failure>;
}

/// A verb that defines its command line and the text of its reply, without code elsewhere.
pub trait Command: Verb {
    /// The words that it takes, in order.
    const WORDS: &'static [Word] = &[];
    /// What it waits for, unless a word sets a timeout.
    const WAITS_FOR: WaitsFor = WaitsFor::Answer;

    /// Makes the arguments from the fields of the command line.
    ///
    /// # Errors
    /// The words contradict each other.
    fn read(written: Map<String, Value>) -> Result<Self::Args, Failure> {
        serde_json::from_value(Value::Object(written))
            .map_err(|error| Failure::bad_request(error.to_string()))
    }

    /// Returns the text of a reply to `asked`.
    fn text(reply: &Self::Reply, asked: &Self::Args) -> Text;

    /// Returns the session that it began, if any.
    fn begun(_: &Self::Reply) -> Option<&SessionReport> {
        None
    }
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// An answer, which comes soon.
    Answer,
    /// A stop of the program that it runs.
    Stop,
    /// A start of the program.
    Start,
}

/// What a verb needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The daemon.
    Daemon,
    /// A session, live or recorded.
    Session,
    /// A program under control, even while its past is looked at; it may have ended.
    Control,
    /// A program under control, in its current state; it may have ended.
    Program,
    /// A program under control that has not ended, in its current state.
    RunningProgram,
    /// A stopped thread of a program under control, in its current state.
    StoppedProgram,
    /// A stopped thread, or a recorded moment.
    Stop,
    /// A frame of a stopped thread or of a recorded moment.
    Frame,
    /// A recording: an opened one, or that of a stopped program.
    Recording,
}

/// What a verb does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It shows something.
    Look,
    /// It runs the program, or moves to another moment of a recording.
    Move,
    /// It changes the program, the recording, or their settings, or begins or ends a session.
    Change,
}

/// The kind of a verb's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// An expression.
    Expression,
    /// A place in the program.
    Location,
    /// A place in time.
    Moment,
    /// Something else, or nothing.
    Others,
}

/// A word of a command line. It sets a field of the verb's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The field.
    pub field: &'static str,
    /// The name of the option; empty if it is the field's name.
    pub name: &'static str,
    /// The placeholder in the help.
    pub value: &'static str,
    /// The help text.
    pub help: &'static str,
    /// Its form.
    pub form: Form,
    /// The word may be omitted.
    pub is_optional: bool,
    /// A field that cannot be set together with this one.
    pub against: Option<&'static str>,
}

/// The form of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All words up to the end, at least one, joined to one text.
    Rest,
    /// As [`Form::Rest`]. Options of the command come before it or at its end; anything else after belongs to it.
    Expression,
    /// As [`Form::Rest`]. It may begin with a negative number.
    Operand,
    /// A list of words.
    Words,
    /// A list of numbers.
    Numbers,
    /// The name of a file or folder; required.
    Path,
    /// A number; optional.
    Number,
    /// A number; required unless the word is optional.
    NumberOperand,
    /// One word; required.
    Text,
    /// `--name NUMBER`.
    NumberOption,
    /// `--name SECONDS`, or another unit of time.
    SecondsOption,
    /// `--name TEXT`, or a one-letter option.
    TextOption(Option<char>),
    /// `--name` with one of these values, each with its aliases. Default: the first.
    Choice(&'static [(&'static str, &'static [&'static str])]),
    /// `--name`, or a one-letter option.
    Flag(Option<char>),
}

impl Word {
    /// Makes a word.
    #[must_use]
    pub const fn new(
        field: &'static str,
        value: &'static str,
        form: Form,
        help: &'static str,
    ) -> Word {
        Word {
            field,
            name: "",
            value,
            help,
            form,
            is_optional: false,
            against: None,
        }
    }

    /// Makes an option without a value.
    #[must_use]
    pub const fn flag(field: &'static str, letter: Option<char>, help: &'static str) -> Word {
        Word::new(field, "", Form::Flag(letter), help)
    }

    /// Sets an option name that differs from the field's.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Word {
        Word { name, ..self }
    }

    /// Returns the long name of an option, without the dashes.
    #[must_use]
    pub const fn long(&self) -> &'static str {
        match self.name.is_empty() {
            true => self.field,
            false => self.name,
        }
    }

    /// Makes the word optional.
    #[must_use]
    pub const fn optional(self) -> Word {
        Word {
            is_optional: true,
            ..self
        }
    }

    /// Makes the word exclude another field.
    #[must_use]
    pub const fn against(self, field: &'static str) -> Word {
        Word {
            against: Some(field),
            ..self
        }
    }
}
