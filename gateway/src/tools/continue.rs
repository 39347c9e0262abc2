//! `debug_continue`: lets the program run or step, and returns when that is done.

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::{Code, Failure};
use server::session::MotionReport;
use server::verbs::{
    self, Await, AwaitArgs, ContinueArgs, Finish, Next, Pause, PauseArgs, Step, StepArgs, Thread,
    ThreadArgs, TimeoutArgs,
};

use super::target::seconds;
use crate::answer::Answer;
use crate::context::Context;
use crate::shape;
use crate::tool::Tool;

/// The tool.
pub struct Continue;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// What to do [default: continue]; pause stops a running program
    #[serde(default)]
    action: Action,
    /// How far a step goes, by a line or by a machine instruction [default: line]; a recording knows instructions if it was recorded with --full
    #[serde(default)]
    granularity: Granularity,
    /// So many steps [default: 1]
    count: Option<u32>,
    /// Move this thread; continue then leaves the others stopped
    thread_id: Option<i32>,
    /// How long to wait for the next stop [default: 20000]
    timeout_ms: Option<u64>,
}

/// How far a step goes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    #[default]
    Line,
    Instruction,
}

/// How the program goes on.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Action {
    #[default]
    Continue,
    StepOver,
    StepInto,
    StepOut,
    Pause,
}

impl Tool for Continue {
    const NAME: &'static str = "debug_continue";
    const DOC: &'static str = "Continue or step until the next stop or the end of the program. After timeoutMs it returns status running; a second call waits again and restarts nothing. In a recording it goes forward to the next stop, line or call.";
    const READ_ONLY: bool = false;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        if args.thread_id.is_some() {
            let thread = ThreadArgs {
                thread: args.thread_id,
            };
            context.ask::<Thread>(session, &thread)?;
        }
        context.waits();
        let report = match moved(context, session, &args) {
            // It already runs: an earlier call resumed it, and this call waits for its stop.
            Err(failure) if failure.code == Code::NotStopped && args.action != Action::Pause => {
                let wait = AwaitArgs {
                    after: None,
                    timeout_secs: Some(seconds(args.timeout_ms)),
                };
                context.ask::<Await>(session, &wait)
            }
            moved => moved,
        };
        Ok(Answer::Object(shape::motion(context, &report?)?))
    }
}

fn moved(context: &Context, session: Option<u32>, args: &Args) -> Result<MotionReport, Failure> {
    let timeout_secs = Some(seconds(args.timeout_ms));
    let step = StepArgs {
        count: args.count,
        instruction: args.granularity == Granularity::Instruction,
        timeout_secs,
    };
    match args.action {
        Action::Continue => {
            let go = ContinueArgs {
                thread_only: args.thread_id.is_some(),
                timeout_secs,
                ..ContinueArgs::default()
            };
            context.ask::<verbs::Continue>(session, &go)
        }
        Action::StepOver => context.ask::<Next>(session, &step),
        Action::StepInto => context.ask::<Step>(session, &step),
        Action::StepOut => context.ask::<Finish>(session, &TimeoutArgs { timeout_secs }),
        Action::Pause => context.ask::<Pause>(session, &PauseArgs::default()),
    }
}
