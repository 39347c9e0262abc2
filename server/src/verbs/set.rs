//! `set`: writes a value: `set p->len 3`. A local requires a stopped thread, a global does not, and a convenience
//! variable, `$name`, not even a program.

use debuginfo::{Machine, Register};
use expr::Missing;
use recorder::live::Tid;
use serde::{Deserialize, Serialize};
use values::{Write, WriteTarget};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect::{self, Manner, View};
use crate::past::frames_for;
use crate::protocol::{Code, ExpressionFault, Failure};
use crate::session::{FollowMode, LiveSession, hex, of_recorder_text};

/// The `set` verb.
pub struct Set;

/// The arguments of `set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetArgs {
    /// The destination: an expression that has a place.
    pub target: String,
    /// The value: an expression.
    pub value: String,
}

/// The reply of `set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetReply {
    /// The writes.
    pub results: Vec<Written>,
}

/// One place that was written to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The destination, as the user wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The address, the register, the convenience variable, or the setting.
    pub address: String,
    /// The old value as text; bytes in hexadecimal if no type is known.
    pub previous_value: String,
    /// The new value, read back.
    pub new_value: String,
}

impl Verb for Set {
    const NAME: &'static str = "set";
    const DOC: &'static str = "Write a value: set p->len 3\n\n  set p->len 3    in the program\n  set $rax 0      in a register\n  set $n 5        in a variable of the session, also on a recording; print, conditions and messages may name it\n  set follow-fork-mode child    at the next fork go on with the new process, in a session of its own; parent: stay";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = SetArgs;
    type Reply = SetReply;

    fn run(call: &Call<'_>, args: SetArgs) -> Result<SetReply, Failure> {
        match args.target.trim() {
            FOLLOW => return follow(call, &args),
            DETACH => return detach(&args),
            _ => {}
        }
        if let Some(name) = inspect::kept_name(&args.target) {
            let written = call.look(frames_for(&args.value), |view| keep(view, name, &args))?;
            return Ok(SetReply {
                results: vec![written],
            });
        }
        let setting = gdb_setting(&args.target);
        let running = call.live().and_then(|session| {
            session.must_run()?;
            Ok(session)
        });
        let session = match (running, setting) {
            (Err(_), Some(setting)) => return Err(no_setting(setting)),
            (session, _) => session?,
        };
        let written = assign(&session, &args.target, &args.value);
        let written = written.map_err(|failure| match setting {
            // A variable of the program may have the same name.
            Some(setting) if !is_variable(&session, &args.target) => no_setting(setting),
            _ => failure,
        });
        Ok(SetReply {
            results: vec![written?],
        })
    }
}

impl Command for Set {
    const WORDS: &'static [Word] = &[
        Word::new("target", "TARGET", Form::Text, "What gets the value"),
        Word::new("value", "VALUE", Form::Text, "The value: an expression"),
    ];

    fn text(reply: &SetReply, _: &SetArgs) -> Text {
        let line = |written: &Written| {
            let name = written.variable.as_ref().unwrap_or(&written.address);
            format!(
                "{name}: {} -> {}",
                written.previous_value, written.new_value
            )
        };
        Text::lines(reply.results.iter().map(line))
    }
}

/// Settings of gdb, and what there is here in their place.
const SETTINGS: [(&str, &str); 29] = [
    (
        "args",
        "restart keeps the arguments; start, or record, a program with others",
    ),
    (
        "auto-load",
        "hindsight repl --script FILE runs the lines of a file",
    ),
    ("breakpoint", "break LOCATION --pending waits for a library"),
    (
        "can-use-hw-watchpoints",
        "watch uses the processor's four watchpoints",
    ),
    ("confirm", "nothing asks here"),
    ("cwd", "the program is started in the folder where you are"),
    (
        "debug-file-directory",
        "/usr/lib/debug is searched, and what hindsight symbols fetch has downloaded",
    ),
    (
        "debuginfod",
        "hindsight symbols fetch downloads debug information",
    ),
    (
        "disable-randomization",
        "start --no-aslr gives a program the same addresses in each run",
    ),
    (
        "disassemble-next-line",
        "display/i $pc shows the next instruction at each stop",
    ),
    ("disassembly-flavor", "disassemble writes as Intel does"),
    (
        "env",
        "the program has the environment in which it is started",
    ),
    (
        "environment",
        "the program has the environment in which it is started",
    ),
    ("height", "answers are written at once"),
    ("history", "the prompt keeps its lines"),
    (
        "language",
        "each frame is shown in the language of its source",
    ),
    ("listsize", "list takes the lines to show: list 10,30"),
    ("logging", "write answers to a file: hindsight VERB > FILE"),
    ("max-value-size", "print --full leaves nothing out"),
    (
        "non-stop",
        "a thread stops alone; break LOCATION --all-threads stops all",
    ),
    ("pagination", "answers are written at once"),
    ("print", "help print tells the options of print"),
    (
        "scheduler-locking",
        "continue --thread runs the current thread alone",
    ),
    (
        "step-mode",
        "step --instruction enters functions without lines",
    ),
    ("style", "--color tells when to use colour"),
    (
        "substitute-path",
        "hindsight pack keeps the sources in a recording",
    ),
    ("sysroot", "the program's own libraries are used"),
    ("verbose", "HINDSIGHT_LOG=debug tells more"),
    ("width", "lines are as long as the terminal is wide"),
];

/// Returns the setting of gdb that a target begins with.
fn gdb_setting(target: &str) -> Option<&'static (&'static str, &'static str)> {
    let first = target.split_whitespace().next()?;
    SETTINGS.iter().find(|(name, _)| *name == first)
}

/// Returns whether a target means something in the program.
fn is_variable(session: &LiveSession, target: &str) -> bool {
    let found = session.look(|view| inspect::value_of(view, target));
    !found.is_err_and(|failure| {
        let is_missing = matches!(
            failure.expression,
            Some(ExpressionFault::Missing(Missing::Name | Missing::Elsewhere))
        );
        is_missing || failure.code == Code::NotStopped
    })
}

fn no_setting((name, instead): &(&str, &str)) -> Failure {
    let message = format!("{name} is a setting of gdb, which is not needed here");
    Failure::new(Code::NotAllowed, message).hint(*instead)
}

/// gdb's settings for new processes.
const FOLLOW: &str = "follow-fork-mode";
const DETACH: &str = "detach-on-fork";

/// Sets the process with which the session stays at the next fork.
fn follow(call: &Call<'_>, args: &SetArgs) -> Result<SetReply, Failure> {
    let mode = match args.value.trim() {
        "parent" => FollowMode::Parent,
        "child" => FollowMode::Child,
        other => {
            let message = format!("{FOLLOW} cannot be \"{other}\"");
            return Err(Failure::bad_request(message).hint("write parent or child"));
        }
    };
    let word = |mode| match mode {
        FollowMode::Parent => "parent",
        FollowMode::Child => "child",
    };
    let session = call.live()?;
    session.must_run()?;
    let before = session.follow.mode();
    session.set_follow_mode(call.sessions, mode)?;
    Ok(was_set(FOLLOW, word(before), word(mode)))
}

/// Sets what has only one value.
fn detach(args: &SetArgs) -> Result<SetReply, Failure> {
    if args.value.trim() != "on" {
        let message = format!(
            "{DETACH} is always on: a session has one process, and the other one runs on by itself"
        );
        return Err(Failure::new(Code::NotAllowed, message).hint(
            "stop where it is made: catch fork, then hindsight attach PID; or record them all: hindsight record --children",
        ));
    }
    Ok(was_set(DETACH, "on", "on"))
}

fn was_set(setting: &str, before: &str, now: &str) -> SetReply {
    SetReply {
        results: vec![Written {
            variable: Some(setting.to_owned()),
            address: setting.to_owned(),
            previous_value: before.to_owned(),
            new_value: now.to_owned(),
        }],
    }
}

/// Sets a variable of the session.
fn keep(view: &View<'_>, name: &str, args: &SetArgs) -> Result<Written, Failure> {
    let before = inspect::keep(view, name, &args.value, None)?;
    let target = args.target.trim();
    let now = inspect::evaluate(view, target, Manner::of_many(false), None)?;
    Ok(Written {
        variable: Some(target.to_owned()),
        address: target.to_owned(),
        previous_value: before.map_or_else(|| "not set".to_owned(), |before| before.text()),
        new_value: now.shown.text(),
    })
}

/// Writes a value and reads it back.
pub(super) fn assign(session: &LiveSession, target: &str, value: &str) -> Result<Written, Failure> {
    let tid = session.stopped().ok().map(|stop| stop.tid);
    let changed = session.look(|view| {
        let change = inspect::assign(view, target, value)?;
        let places: Vec<String> = change
            .writes
            .iter()
            .map(|write| apply(session, tid, target, write))
            .collect::<Result<_, _>>()?;
        Ok((places.join(", "), change.previous))
    });
    let (address, previous_value) = match tid {
        Some(_) => changed?,
        None => changed.map_err(of_running)?,
    };
    // The machine of the moment may have cached the old value, so read from a new one.
    let now = session.look(|view| inspect::evaluate(view, target, Manner::of_many(false), None));
    Ok(Written {
        variable: Some(target.to_owned()),
        address,
        previous_value,
        new_value: match now {
            Ok(report) => report.shown.text(),
            Err(failure) => format!("<{failure}>"),
        },
    })
}

/// Writes one part and returns where it went.
fn apply(
    session: &LiveSession,
    tid: Option<Tid>,
    target: &str,
    write: &Write,
) -> Result<String, Failure> {
    let failed = |error: recorder::Error| of_recorder_text(Code::WriteFailed, &error);
    match write.target {
        WriteTarget::Memory(address) => {
            let written = session.live.write(target, address, &write.bytes);
            written.map(|_| hex(address)).map_err(failed)
        }
        WriteTarget::Register(register) => {
            let tid = tid.ok_or_else(not_paused)?;
            let bytes = whole_register(session, tid, register, &write.bytes)?;
            let written = session.live.write_register(tid, target, register, &bytes);
            written.map(|_| name(register)).map_err(failed)
        }
    }
}

/// Returns the whole register with `low` as its low bytes; the other bytes keep their value.
fn whole_register(
    session: &LiveSession,
    tid: Tid,
    register: Register,
    low: &[u8],
) -> Result<Vec<u8>, Failure> {
    let failed = |error: recorder::Error| of_recorder_text(Code::WriteFailed, &error);
    let machine = session.live.machine(tid).map_err(failed)?;
    let is_vector = (Register::XMM0.0..Register::XMM0.0 + 16).contains(&register.0);
    let read = match is_vector {
        true => machine.vector(register).map(|(bytes, _)| bytes.to_vec()),
        false => machine
            .register(register)
            .map(|(value, _)| value.to_le_bytes().to_vec()),
    };
    let unreadable = |error: debuginfo::Unknown| {
        let message = format!("{} cannot be written: {error}", name(register));
        Failure::new(Code::WriteFailed, message)
    };
    let mut whole = read.map_err(unreadable)?;
    match whole.get_mut(..low.len()) {
        Some(part) => part.copy_from_slice(low),
        None => {
            let message = format!("the value is larger than {}", name(register));
            return Err(Failure::new(Code::WriteFailed, message));
        }
    }
    Ok(whole)
}

/// A name that is not a global of a running program may be a local once it is stopped.
fn of_running(failure: Failure) -> Failure {
    match failure.expression {
        Some(ExpressionFault::Missing(Missing::Name | Missing::Elsewhere)) => not_paused(),
        _ => failure,
    }
}

fn not_paused() -> Failure {
    Failure::new(
        Code::NotStopped,
        "Local variable writes require a paused breakpoint.",
    )
    .hint("no global has this name; stop the program: hindsight pause, or set a breakpoint")
}

fn name(register: Register) -> String {
    let name = register.name();
    name.unwrap_or_else(|| format!("register {}", register.0))
}
