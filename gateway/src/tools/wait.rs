//! `debug_wait`: waits for the next stop or the end of a program.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::{Code, Failure};
use server::session::StateWord;
use server::verbs::{Await, AwaitArgs, Nothing, Status};

use super::launch::of_recorder;
use super::target::seconds;
use crate::answer::Answer;
use crate::context::Context;
use crate::shape;
use crate::tool::{About, Tool};

/// The tool.
pub struct Wait;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// How long to wait [default: 20000]
    timeout_ms: Option<u64>,
}

impl Tool for Wait {
    const NAME: &'static str = "debug_wait";
    const DOC: &'static str = "Wait for the next stop or the end of a live program, or for the end of one of which every instruction is recorded. Returns status paused, exited, recorded (a recording, which has ended), or after timeoutMs running; it changes nothing.";
    const READ_ONLY: bool = true;
    const ABOUT: About = About::Session;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let wait = AwaitArgs {
            after: None,
            timeout_secs: Some(seconds(args.timeout_ms)),
        };
        context.waits();
        if context.whose.session_id.is_none()
            && let Some(recording) = context.current.recording()
            && context.gateway.recorders.is_known(&recording)
        {
            let patience = Duration::from_secs_f64(seconds(args.timeout_ms));
            let recorders = &context.gateway.recorders;
            let told = recorders.wait_for(&recording, context.cancel(), patience)?;
            return of_recorder(context, &recording, told.as_ref());
        }
        let session = context.session()?;
        match context.ask::<Await>(session, &wait) {
            Err(refused) if refused.code == Code::NotAllowed => recorded(context, session, refused),
            report => Ok(Answer::Object(shape::motion(context, &report?)?)),
        }
    }
}

/// Describes the session of a recording, for whose end there is no wait.
fn recorded(context: &Context, session: Option<u32>, refused: Failure) -> Result<Answer, Failure> {
    let status = context.ask::<Status>(session, &Nothing {})?;
    match &*status.sessions {
        [report] if report.status == StateWord::Recorded => {
            Ok(Answer::Object(shape::session(report)))
        }
        _ => Err(refused),
    }
}
