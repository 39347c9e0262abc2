//! `debug_continue`: lets the program run or step, and returns when that is done.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use server::location::Target;
use server::protocol::{Code, Failure};
use server::session::MotionReport;
use server::verbs::{
    self, Advance, AdvanceArgs, Await, AwaitArgs, ContinueArgs, Finish, Next, Pause, PauseArgs,
    Step, StepArgs, TimeoutArgs, Until, UntilArgs,
};

use super::state::select_thread;
use super::target::seconds;
use crate::answer::{Answer, object};
use crate::context::Context;
use crate::shape;
use crate::tool::Tool;

/// The tool.
pub struct Continue;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// What to do [default: continue]; until runs to location in this function or one of its callers, and without location to a later line, out of a loop; advance runs to location in any function; both stop when this function returns; pause stops a running program
    #[serde(default)]
    action: Action,
    /// With until and advance: a function, file:line or 0xADDRESS
    location: Option<String>,
    /// How far a step goes, by a line or by a machine instruction [default: line]; a recording knows instructions if it was recorded with --full
    #[serde(default)]
    granularity: Granularity,
    /// So many steps [default: 1]; with continue: stop only at the Nth arrival at this breakpoint, in a recording at the Nth stop
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
    Until,
    Advance,
    Pause,
}

impl Tool for Continue {
    const NAME: &'static str = "debug_continue";
    const DOC: &'static str = "Continue, step or run to a place, until the next stop or the end of the program. After timeoutMs it returns status running; a second call waits again and restarts nothing. In a recording it goes forward to the next stop, line or call.";
    const READ_ONLY: bool = false;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        fit_together(&args)?;
        let session = context.session()?;
        select_thread(context, session, args.thread_id)?;
        context.waits();
        match moved(context, session, &args) {
            // It already runs: an earlier call resumed it, and this call waits for its stop.
            Err(failure) if failure.code == Code::NotStopped && args.action != Action::Pause => {
                waited(context, session, &args)
            }
            moved => Ok(Answer::Object(shape::motion(context, &moved?)?)),
        }
    }
}

/// Refuses parameters that the action does not use.
fn fit_together(args: &Args) -> Result<(), Failure> {
    let steps = matches!(args.action, Action::StepOver | Action::StepInto);
    let goes_to_a_place = matches!(args.action, Action::Until | Action::Advance);
    if args.location.is_some() && !goes_to_a_place {
        return Err(
            Failure::bad_request("only until and advance take a location").hint(
                r#"run there with {"action": "advance"}, or set a breakpoint there: debug_breakpoint"#,
            ),
        );
    }
    // One is the default, which clients may write.
    let is_counted = args.count.is_some_and(|count| count != 1);
    if is_counted && !steps && args.action != Action::Continue {
        let message = "only continue, step-over and step-into take a count";
        return Err(Failure::bad_request(message).hint(
            "for the Nth arrival at a place, set a breakpoint there: debug_breakpoint with hitCount, then debug_continue",
        ));
    }
    if args.granularity == Granularity::Instruction && !steps {
        let message = "only step-over and step-into go by instructions";
        return Err(Failure::bad_request(message).hint("leave out granularity"));
    }
    Ok(())
}

/// Waits for the stop of a program that runs already.
fn waited(context: &Context, session: Option<u32>, args: &Args) -> Result<Answer, Failure> {
    let wait = AwaitArgs {
        after: None,
        timeout_secs: Some(seconds(args.timeout_ms)),
    };
    let report = context.ask::<Await>(session, &wait)?;
    let mut fields = shape::motion(context, &report)?;
    fields.extend(object([("note", json!(unused(args)))]));
    Ok(Answer::Object(fields))
}

/// Says what a call did not use because the program ran already. An earlier call with the same parameters may have.
fn unused(args: &Args) -> Option<String> {
    let given = [
        ("action", args.action != Action::Continue),
        ("location", args.location.is_some()),
        ("count", args.count.is_some_and(|count| count != 1)),
    ];
    let given = given.iter().filter(|(_, is_given)| *is_given);
    let names: Vec<&str> = given.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| {
        format!(
            r#"the program ran already: this call only waited for its next stop and did not use {}; if no earlier call began this, call again when the program is paused: debug_continue {{"action": "pause"}} pauses it"#,
            names.join(" and ")
        )
    })
}

fn moved(context: &Context, session: Option<u32>, args: &Args) -> Result<MotionReport, Failure> {
    let timeout_secs = Some(seconds(args.timeout_ms));
    let at = args.location.clone().map(Target::Text);
    let step = StepArgs {
        count: args.count,
        instruction: args.granularity == Granularity::Instruction,
        timeout_secs,
    };
    match (args.action, at) {
        (Action::Until, at) => context.ask::<Until>(session, &UntilArgs { at, timeout_secs }),
        (Action::Advance, Some(at)) => {
            context.ask::<Advance>(session, &AdvanceArgs { at, timeout_secs })
        }
        (Action::Advance, None) => Err(Failure::bad_request("advance needs a location")
            .hint(r#"name a function or a line: {"location": "parse.c:12"}"#)),
        (Action::Continue, _) => {
            let go = ContinueArgs {
                count: args.count.map(u64::from),
                thread_only: args.thread_id.is_some(),
                timeout_secs,
                ..ContinueArgs::default()
            };
            context.ask::<verbs::Continue>(session, &go)
        }
        (Action::StepOver, _) => context.ask::<Next>(session, &step),
        (Action::StepInto, _) => context.ask::<Step>(session, &step),
        (Action::StepOut, _) => context.ask::<Finish>(session, &TimeoutArgs { timeout_secs }),
        (Action::Pause, _) => context.ask::<Pause>(session, &PauseArgs::default()),
    }
}
