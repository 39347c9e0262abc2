//! What a verb says of itself. Refusals, help, completion and its form on a command line follow from that.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Call, Text};
use crate::protocol::Failure;

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

    /// Returns a reply as people read it.
    fn text(reply: &Self::Reply) -> Text;
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
}

/// How a word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All words up to the end, as one text. At least one.
    Rest,
    /// As [`Form::Rest`]; options of the command before it, anything in it.
    Expression,
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
}
