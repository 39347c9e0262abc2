//! `debug_wait`: waits for the next stop or the end of a program.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::Failure;
use server::verbs::{Await, AwaitArgs};

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
    const DOC: &'static str = "Wait for the next stop or the end of a live program, or for the end of one of which every instruction is recorded. Returns status paused, exited, or after timeoutMs running; it changes nothing.";
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
            && context.gateway.recorders.is_running(&recording)
        {
            let patience = Duration::from_secs_f64(seconds(args.timeout_ms));
            let recorders = &context.gateway.recorders;
            let told = recorders.wait_for(&recording, context.cancel(), patience)?;
            return of_recorder(context, &recording, told.as_ref());
        }
        let session = context.session()?;
        let report = context.ask::<Await>(session, &wait)?;
        Ok(Answer::Object(shape::motion(context, &report)?))
    }
}
