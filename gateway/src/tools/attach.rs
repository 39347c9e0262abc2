//! `debug_attach`: takes a running process under control.

use schemars::JsonSchema;
use serde::Deserialize;
use server::os_text::OsText;
use server::protocol::Failure;
use server::session::{Attach as Attached, Recording};
use server::verbs::{self, AttachArgs};

use crate::answer::Answer;
use crate::context::Context;
use crate::shape;
use crate::tool::{About, Tool};

/// The tool.
pub struct Attach;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The process
    pid: i32,
    /// Record only functions that match these patterns [default: all of the program's own]
    #[serde(default)]
    functions: Vec<String>,
    /// The recording's folder [default: the program's name]
    recording: Option<String>,
}

impl Tool for Attach {
    const NAME: &'static str = "debug_attach";
    const DOC: &'static str =
        "Take a running process under control and record it from now on. It keeps running.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Other;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let output = args.recording.map(|name| here.join(name));
        let attach = AttachArgs {
            attach: Attached {
                pid: args.pid,
                cwd: OsText::from(here.as_os_str()),
                recording: Recording {
                    output: output.as_ref().map(|path| OsText::from(path.as_os_str())),
                    include: args.functions,
                    strings: true,
                    ..Recording::default()
                },
            },
        };
        let report = context.ask::<verbs::Attach>(None, &attach)?;
        context.current.set(report.session, &report.recording);
        Ok(Answer::Object(shape::session(&report)))
    }
}
