//! `debug_launch`: starts a program under control, recorded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use server::inspect::signal_name;
use server::location::Target;
use server::os_text::OsText;
use server::protocol::{Code, Failure};
use server::session::{Besides, FirstLogpoint, Launch as Launched, Probes, Recording};
use server::verbs::{Nothing, Start, StartArgs, Status};
use store::recording::with_suffix;

use super::target::seconds;
use crate::answer::{Answer, object};
use crate::context::{Context, lock};
use crate::shape;
use crate::tool::{About, Tool};

/// The tool.
pub struct Launch;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The program: a path, or a name in PATH
    program: String,
    /// Its arguments
    #[serde(default)]
    args: Vec<String>,
    /// Its folder [default: the server's]
    cwd: Option<String>,
    /// Variables to add to its environment
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Breakpoints to set before it runs: function, file:line or 0xADDRESS
    #[serde(default)]
    break_at: Vec<String>,
    /// Stop before the program's own code runs
    #[serde(default)]
    stop_on_entry: bool,
    /// Record only functions that match these patterns [default: all of the program's own]
    #[serde(default)]
    functions: Vec<String>,
    /// Do not record functions that match
    #[serde(default)]
    exclude: Vec<String>,
    /// Keep the value of these expressions at each call, for debug_history
    #[serde(default)]
    watch: Vec<String>,
    /// Keep the targets of pointer arguments at returns
    #[serde(default)]
    pointees: bool,
    /// Log every write to these variables (global, FUNCTION::VARIABLE, p->x), or to 0xADDRESS:LEN (at most 32 bytes in all): who, where, old and new value; nothing stops
    #[serde(default)]
    log_writes: Vec<String>,
    /// Log a message each time the program passes a place
    #[serde(default)]
    logpoints: Vec<Message>,
    /// Record every instruction, to the program's end: debug_history with lastWrite then names the instruction that wrote any byte, and debug_goto goes to any instruction. Takes 2 to 5 times as long
    #[serde(default)]
    full: bool,
    /// Record system calls too, for the tables syscalls, files and processes of debug_sql
    #[serde(default)]
    syscalls: bool,
    /// Record who allocates and frees memory too, for the table allocations and debug_read of blocks
    #[serde(default)]
    memory: bool,
    /// Record who takes, gives and waits for locks too, for the table locks
    #[serde(default)]
    locks: bool,
    /// Have the same addresses in each run
    #[serde(default)]
    no_aslr: bool,
    /// The recording's folder [default: the program's name]
    recording: Option<String>,
    /// How long to wait for the first breakpoint, or with full for the program's end [default: 20000]
    timeout_ms: Option<u64>,
}

/// A logpoint that is set before the program runs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Message {
    /// A function, file:line or 0xADDRESS
    at: String,
    /// The text, with values in braces: tempo={args[0]}, len={p->len}
    message: String,
    /// Only if this is true
    condition: Option<String>,
}

impl From<Message> for FirstLogpoint {
    fn from(message: Message) -> FirstLogpoint {
        FirstLogpoint {
            at: Target::Text(message.at),
            message: message.message,
            condition: message.condition,
        }
    }
}

impl Tool for Launch {
    const NAME: &'static str = "debug_launch";
    const DOC: &'static str = "Start a program under control and record it. With breakAt or stopOnEntry it waits for the first stop; otherwise the program runs: wait for its end with debug_wait. Strings that pointer arguments lead to are kept.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Other;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let argv = std::iter::once(&args.program).chain(&args.args);
        let here = std::env::current_dir().unwrap_or_default();
        let cwd = args
            .cwd
            .as_ref()
            .map_or(here.clone(), |folder| here.join(folder));
        if !cwd.is_dir() {
            let message = format!("there is no folder {}", cwd.display());
            return Err(Failure::new(Code::NotStarted, message));
        }
        let mut env: BTreeMap<_, _> = std::env::vars_os().collect();
        env.extend(
            args.env
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        if args.full {
            return in_full(context, &args, &cwd, &env);
        }
        let include = match args.functions.is_empty() {
            true => lock(&context.gateway.patterns).clone(),
            false => args.functions,
        };
        let start = StartArgs {
            launch: Launched {
                argv: argv.map(|word| text(OsStr::new(word))).collect(),
                cwd: text(cwd.as_os_str()),
                env: env
                    .iter()
                    .map(|(name, value)| (text(name), text(value)))
                    .collect(),
                recording: Recording {
                    output: args
                        .recording
                        .as_ref()
                        .map(|name| text(here.join(name).as_os_str())),
                    include,
                    exclude: args.exclude,
                    watch: args.watch,
                    strings: true,
                    pointees: args.pointees,
                    besides: Besides {
                        syscalls: args.syscalls,
                        memory: args.memory,
                        locks: args.locks,
                    },
                    probes: Probes {
                        log_writes: args.log_writes,
                        logpoints: args.logpoints.into_iter().map(Into::into).collect(),
                        pending: false,
                    },
                    no_aslr: args.no_aslr,
                    ..Recording::default()
                },
            },
            breaks: args.break_at.into_iter().map(Target::Text).collect(),
            displays: Vec::new(),
            stop_on_entry: args.stop_on_entry,
            pending: false,
            timeout_secs: Some(seconds(args.timeout_ms)),
        };
        if !start.breaks.is_empty() {
            context.waits();
        }
        let report = context.ask::<Start>(None, &start)?;
        context.current.set(report.session, &report.recording);
        Ok(Answer::Object(shape::session(&report)))
    }
}

/// Records every instruction.
fn in_full(
    context: &Context,
    args: &Args,
    cwd: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Result<Answer, Failure> {
    let refused = [
        ("breakAt", !args.break_at.is_empty()),
        ("stopOnEntry", args.stop_on_entry),
        ("watch", !args.watch.is_empty()),
        ("pointees", args.pointees),
        ("syscalls", args.syscalls),
    ];
    if let Some((name, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        let failure = Failure::bad_request(format!("full does not go with {name}"));
        return Err(failure.hint(
            "leave it out: breakpoints and watches are for the recording, as if it had stopped",
        ));
    }
    let here = std::env::current_dir().unwrap_or_default();
    let recording = match &args.recording {
        Some(name) => with_suffix(&here.join(name)),
        None => new_name(&here, &args.program),
    };
    let mut recorder = context.command("record");
    recorder
        .args(["--full", "--json", "--with-parent"])
        .arg(std::process::id().to_string())
        .arg("-o")
        .arg(&recording);
    for (option, values) in [
        ("-f", &args.functions),
        ("-x", &args.exclude),
        ("--log-writes", &args.log_writes),
    ] {
        recorder.args(values.iter().flat_map(|value| [option, value.as_str()]));
    }
    let flags = [
        ("--no-aslr", args.no_aslr),
        ("--memory", args.memory),
        ("--locks", args.locks),
    ];
    let given = flags.iter().filter(|(_, is_given)| *is_given);
    recorder.args(given.map(|(flag, _)| flag));
    for point in &args.logpoints {
        recorder.args(["--logpoint", point.at.as_str(), point.message.as_str()]);
        if let Some(condition) = &point.condition {
            recorder.args(["--condition", condition.as_str()]);
        }
    }
    recorder.arg("--").arg(&args.program).args(&args.args);
    recorder.current_dir(cwd).env_clear().envs(env);
    let patience = Duration::from_secs_f64(seconds(args.timeout_ms));
    let recorders = &context.gateway.recorders;
    context.waits();
    let told = recorders.record(recorder, recording.clone(), context.cancel(), patience)?;
    of_recorder(context, &recording, told.as_ref())
}

/// Describes what a recorder has made: the recording, opened; `None`: it still runs.
pub(super) fn of_recorder(
    context: &Context,
    recording: &Path,
    told: Option<&Value>,
) -> Result<Answer, Failure> {
    let Some(told) = told else {
        let stop = json!({ "action": "stop", "recording": recording.to_string_lossy() });
        let next = format!(
            "the recording can be asked when the program has ended: debug_wait; end it with debug_session {stop}"
        );
        return Ok(still(context, recording, next));
    };
    let session = context.open(recording)?;
    let status = context.ask::<Status>(Some(session), &Nothing {})?;
    let found = status.sessions.iter().find(|of| of.session == session);
    let mut fields = found.map(shape::session).unwrap_or_default();
    fields.insert("instructions".to_owned(), told["instructions"].clone());
    fields.extend(end(told));
    let next = r#"this is the program's beginning; its end: debug_goto {"to": "last"}, or the parameter at: "last""#;
    fields.insert("next".to_owned(), json!(next));
    if let Some(reason) = told["incomplete"].as_str() {
        fields.insert("incomplete".to_owned(), json!(reason));
    }
    Ok(Answer::Object(fields))
}

/// Describes a recorder that still runs; `next` says what to do.
pub(super) fn still(context: &Context, recording: &Path, next: String) -> Answer {
    context.current.set_recording(recording);
    Answer::Object(object([
        ("status", json!("running")),
        ("recording", json!(recording.to_string_lossy())),
        ("next", json!(next)),
    ]))
}

/// How the program ended, as a recorder tells it: the session of a recording stands at its beginning.
fn end(told: &Value) -> Map<String, Value> {
    let signal = told["exit_signal"].as_i64();
    let signal = signal.and_then(|signal| i32::try_from(signal).ok());
    object([
        ("exitCode", told["exit_code"].clone()),
        ("signal", json!(signal.map(signal_name))),
    ])
}

/// Returns a name for a recording that is not taken.
fn new_name(here: &Path, program: &str) -> PathBuf {
    let name = Path::new(program)
        .file_name()
        .unwrap_or(OsStr::new("program"));
    let name = name.to_string_lossy();
    let mut names = (1u32..).map(|number| match number {
        1 => with_suffix(&here.join(&*name)),
        number => with_suffix(&here.join(format!("{name}-{number}"))),
    });
    let free = names.find(|path| !path.exists());
    free.unwrap_or_else(|| with_suffix(&here.join(&*name)))
}

fn text(text: &OsStr) -> OsText {
    OsText::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_recorded_program_is_told() {
        for (told, expected) in [
            (
                json!({ "exit_code": 3, "exit_signal": null }),
                json!({ "exitCode": 3 }),
            ),
            (
                json!({ "exit_code": null, "exit_signal": 11 }),
                json!({ "signal": "SIGSEGV" }),
            ),
            (json!({ "exit_code": null, "exit_signal": null }), json!({})),
        ] {
            assert_eq!(Value::Object(end(&told)), expected);
        }
    }
}
