//! `debug_launch`: starts a program under control, recorded.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use schemars::JsonSchema;
use serde::Deserialize;
use server::location::Target;
use server::os_text::OsText;
use server::protocol::{Code, Failure};
use server::session::{FirstLogpoint, Launch as Launched, Probes, Recording};
use server::verbs::{Start, StartArgs};

use super::target::seconds;
use crate::answer::Answer;
use crate::context::{Context, lock};
use crate::shape;
use crate::tool::Tool;

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
    /// Log every write to these variables, or to 0xADDRESS:LEN (at most 32 bytes in all): who, where, old and new value; nothing stops
    #[serde(default)]
    log_writes: Vec<String>,
    /// Log a message wherever the program passes a place
    #[serde(default)]
    logpoints: Vec<Message>,
    /// Have the same addresses in each run
    #[serde(default)]
    no_aslr: bool,
    /// The recording's folder [default: the program's name]
    recording: Option<String>,
    /// How long to wait for the first breakpoint [default: 20000]
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
    const DOC: &'static str = "Start a program under control and record it. With breakAt or stopOnEntry it waits for the first stop; otherwise the program runs: wait for its end with debug_wait. Texts behind pointer arguments are kept.";
    const READ_ONLY: bool = false;
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
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
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
        let report = context.ask::<Start>(None, &start)?;
        Ok(Answer::Object(shape::session(&report)))
    }
}

fn text(text: &OsStr) -> OsText {
    OsText::from(text)
}
