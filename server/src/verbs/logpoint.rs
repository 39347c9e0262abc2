//! `logpoint`: adds, lists, removes and switches logpoints. A hit records an event with a text and stops nothing. In a recording of
//! every instruction, prints at once what the logpoint would have printed.

use recorder::live::{Action, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Call, Column, Command, Does, Form, Needs, ProbeArgs, ProbeKind, ProbesReply, Takes, Text, Verb,
    Word, page, probe_text, probe_words, probes,
};
use crate::inspect;
use crate::location::Target;
use crate::past::{LogLine, LogLines, LogWanted, Past};
use crate::protocol::Failure;
use crate::session::Session;

/// The `logpoint` verb.
pub struct Logpoint;

/// A logpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogpointAdd {
    /// Its location.
    pub at: Target,
    /// The text; `{EXPR}` is replaced by a value.
    pub message: String,
    /// Log only if this expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Log only on the Nth hit; 0: on every hit.
    #[serde(default)]
    pub hit_count: u64,
    /// Allow the logpoint to wait for a module that is not loaded yet.
    #[serde(default)]
    pub pending: bool,
    /// In a recording: at most this many lines, 0 for all. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// In a recording: how many lines to leave out at the start.
    #[serde(default, skip_serializing_if = "page::is_nothing")]
    pub skip: usize,
}

/// The reply of `logpoint`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LogpointReply {
    /// Logpoints in a program.
    Probes(ProbesReply),
    /// What it would have printed in a recorded run.
    Recorded(LogLines),
}

impl Verb for Logpoint {
    const NAME: &'static str = "logpoint";
    const DOC: &'static str = "Log a message each time the program passes a place\n\n  logpoint parse.c:42 'len={len}'\n  logpoint parse.c:42 'len={len}' --where 'len > 100'\nIn a recording of every instruction (record --full) it prints what it would have printed in the whole run, 50 lines at a time; --skip 50 prints the next ones. Nothing is kept.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Location;
    type Args = ProbeArgs<LogpointAdd>;
    type Reply = LogpointReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<LogpointReply, Failure> {
        if let Session::Recorded(past) = call.target()? {
            return recorded(&past, args);
        }
        let reply = probes::run(call, args, ProbeKind::Logpoint, |session, add| {
            if add.limit.is_some() || add.skip > 0 {
                return Err(Failure::bad_request("--limit and --skip are for recordings")
                    .hint("in a program under control the messages become events: SELECT * FROM logpoints"));
            }
            Ok(vec![ProbeSpec {
                location: probes::located(session, &add.at, add.pending)?,
                action: Action::Log(inspect::message(&add.message)?),
                condition: inspect::condition(add.condition.as_deref())?,
                hit_count: add.hit_count,
            }])
        })?;
        Ok(LogpointReply::Probes(reply))
    }
}

/// A recording has no logpoints to list: each prints at once.
fn recorded(past: &Past, args: ProbeArgs<LogpointAdd>) -> Result<LogpointReply, Failure> {
    let knows_all = past.timeline().has_every_instruction();
    match args {
        ProbeArgs::Add(add) if !add.pending => {
            let limit = match add.limit.unwrap_or(page::ROWS) {
                0 => usize::MAX,
                limit => limit,
            };
            let lines = past.log_lines(&LogWanted {
                at: add.at,
                message: add.message,
                condition: add.condition,
                hit_count: add.hit_count,
                lines: add.skip..add.skip.saturating_add(limit),
            })?;
            Ok(LogpointReply::Recorded(lines))
        }
        ProbeArgs::List if knows_all => {
            Ok(LogpointReply::Probes(ProbesReply { probes: Vec::new() }))
        }
        _ if knows_all => Err(past.needs_the_program("this")),
        _ => Err(past.needs_every_instruction("logpoint")),
    }
}

impl Command for Logpoint {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "[add] LOCATION MESSAGE | list | remove ID.. | enable ID.. | disable ID..",
            Form::Words,
            "A location and the message, in which {EXPRESSION} stands for values",
        )
        .optional(),
        probe_words::FUNCTION,
        probe_words::CONDITION,
        probe_words::HIT_COUNT,
        WHERE,
        probe_words::ALL_OF_KIND,
        probe_words::PENDING,
        page::LIMIT,
        page::SKIP,
    ];

    fn read(mut written: Map<String, Value>) -> Result<Self::Args, Failure> {
        if let Some(condition) = written.remove("where") {
            written.insert("condition".to_owned(), condition);
        }
        probe_words::read(written, |words, written| {
            let Some((message, location)) = words.split_last() else {
                return Err(Failure::bad_request("a message is needed")
                    .hint("hindsight logpoint parse.c:42 'n={n}'"));
            };
            written.insert("message".to_owned(), message.as_str().into());
            probe_words::location(location, written)
        })
    }

    fn text(reply: &LogpointReply, asked: &Self::Args) -> Text {
        match (reply, asked) {
            (LogpointReply::Probes(reply), _) => probe_text::of_program(&reply.probes, asked),
            (LogpointReply::Recorded(lines), ProbeArgs::Add(add)) => printed(lines, add),
            (LogpointReply::Recorded(lines), _) => written(lines),
        }
    }
}

/// The condition, as SQL calls it.
const WHERE: Word = Word::new(
    "where",
    "EXPRESSION",
    Form::TextOption(None),
    "The same as --condition",
)
.against("condition");

/// Writes lines that a logpoint would have printed, and how to see more.
fn printed(lines: &LogLines, asked: &LogpointAdd) -> Text {
    let text = match (lines.lines.is_empty(), asked.skip) {
        (false, _) => written(lines),
        (true, 0) => Text::line(format!(
            "Nothing in the whole run: no thread came by {} with its condition true.",
            asked.at
        )),
        (true, _) => Text::line("There are no more lines."),
    };
    let text = match &lines.failed {
        Some(failed) => text.and(Text::line(failed.clone())),
        None => text,
    };
    let next = asked.skip + lines.lines.len();
    match lines.more {
        true => text.and(Text::hint(format!(
            "(more follow: --skip {next}, or --limit 0 for all)"
        ))),
        false => text,
    }
}

fn written(lines: &LogLines) -> Text {
    let row = |line: &LogLine| {
        let moment = match line.steps {
            0 => line.seq.to_string(),
            steps => format!("{}+{steps}", line.seq),
        };
        vec![moment, line.thread.to_string(), line.message.clone()]
    };
    let columns = [
        Column::number("Moment"),
        Column::number("Thread"),
        Column::text("Message"),
    ];
    Text::table(&columns, lines.lines.iter().map(row).collect())
}
