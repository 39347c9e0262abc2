//! What a verb says of itself. Refusals, help, completion and its form on a command line follow from that.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Call, Text};
use crate::protocol::Failure;
use crate::session::SessionReport;

/// A verb: it exists once, for live programs and recordings, on the socket, in the shell and at the prompt.
pub trait Verb {
    /// Its name on the wire; command lines write hyphens for underscores.
    const NAME: &'static str;
    /// What it does: a line for lists of verbs, and after an empty line what else its help says.
    const DOC: &'static str;
    /// Other names.
    const ALIASES: &'static [&'static str] = &[];
    /// Without what it is refused.
    const NEEDS: Needs;
    /// Whether it looks, moves or changes.
    const DOES: Does;
    /// What its words are, for completion and quotes.
    const TAKES: Takes = Takes::Others;
    /// Its arguments.
    type Args: Serialize + DeserializeOwned + Clone;
    /// What it returns.
    type Reply: Serialize + DeserializeOwned;

    /// Does it.
    ///
    /// # Errors
    /// Why it was not done.
    fn run(call: &Call<'_>, args: Self::Args) -> Result<Self::Reply, Failure>;
}

/// A verb that says its form on a command line and how its reply reads: it needs nothing beyond its own file.
pub trait Command: Verb {
    /// The words that it takes, in order.
    const WORDS: &'static [Word] = &[];
    /// What it waits for where no word says how long.
    const WAITS_FOR: WaitsFor = WaitsFor::Answer;

    /// Makes the arguments of what was written, field by field.
    ///
    /// # Errors
    /// The words make no sense together.
    fn read(written: Map<String, Value>) -> Result<Self::Args, Failure> {
        serde_json::from_value(Value::Object(written))
            .map_err(|error| Failure::bad_request(error.to_string()))
    }

    /// Returns the reply to `asked` as people read it.
    fn text(reply: &Self::Reply, asked: &Self::Args) -> Text;

    /// Returns the session that it began.
    fn begun(_: &Self::Reply) -> Option<&SessionReport> {
        None
    }
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// An answer, which comes soon.
    Answer,
    /// The program, which runs for it.
    Stop,
    /// A start of the program.
    Start,
}

/// What must be there for a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The daemon.
    Daemon,
    /// A session, live or recorded.
    Session,
    /// A program under control, as it is now; it may have ended.
    Program,
    /// A program under control that has not ended, as it is now.
    RunningProgram,
    /// A stopped thread of a program under control, as it is now.
    StoppedProgram,
    /// A stopped thread, or a recorded moment.
    Stop,
    /// A frame of a stopped thread or of a recorded moment.
    Frame,
    /// A recording: the one that is open, or that of a program that stands still.
    Recording,
}

/// What a verb does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Shows something.
    Look,
    /// Runs the program, or goes to another moment of a recording.
    Move,
    /// Changes the program, the recording, or what is set in them; begins or ends a session.
    Change,
}

/// What the words of a verb are.
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

/// A word of a command line, which becomes a field of the verb's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The field.
    pub field: &'static str,
    /// The name of an option; that of the field if it is empty.
    pub name: &'static str,
    /// What stands for it in help.
    pub value: &'static str,
    /// What it is.
    pub help: &'static str,
    /// How it is written.
    pub form: Form,
    /// It may be left out.
    pub is_optional: bool,
    /// A field beside which it cannot stand.
    pub against: Option<&'static str>,
}

/// How a word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All words up to the end, as one text. At least one.
    Rest,
    /// As [`Form::Rest`]; options of the command before it, anything in it.
    Expression,
    /// As [`Form::Rest`]; may begin with a negative number.
    Operand,
    /// Words, as a list.
    Words,
    /// Numbers, as a list.
    Numbers,
    /// A name of a file or folder. It must be there.
    Path,
    /// A number, which may be left out.
    Number,
    /// One word. It must be there.
    Text,
    /// `--name NUMBER`.
    NumberOption,
    /// `--name SECONDS`, or another length of time.
    SecondsOption,
    /// `--name TEXT`, or one letter.
    TextOption(Option<char>),
    /// `--name` and one of these, each with its other names; left out: the first.
    Choice(&'static [(&'static str, &'static [&'static str])]),
    /// `--name`, or one letter.
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

    /// The same, under another name than the field's.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Word {
        Word { name, ..self }
    }

    /// The same, and may be left out.
    #[must_use]
    pub const fn optional(self) -> Word {
        Word {
            is_optional: true,
            ..self
        }
    }

    /// The same, but not beside that of another field.
    #[must_use]
    pub const fn against(self, field: &'static str) -> Word {
        Word {
            against: Some(field),
            ..self
        }
    }
}
