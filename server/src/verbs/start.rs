//! `start`: starts a program under control. With breakpoints it waits for the first stop. Without breakpoints and a
//! stop at the entry, the program just runs.

use std::sync::Arc;
use std::time::Duration;

use recorder::live::{Action, Motion, ProbeSpec, Stop};
use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb, display, probes, stepping};
use crate::location::Target;
use crate::protocol::{Code, Failure};
use crate::session::{
    Launch, LiveSession, MotionReport, Origin, SessionReport, StateWord, of_recorder,
};

/// The `start` verb.
pub struct Start;

/// The arguments of `start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartArgs {
    /// The program to start.
    pub launch: Launch,
    /// Breakpoints to set before the program's own code runs.
    #[serde(default)]
    pub breaks: Vec<Target>,
    /// Expressions to display at every stop except the one at the entry point.
    #[serde(default)]
    pub displays: Vec<String>,
    /// Stop at the entry point.
    #[serde(default)]
    pub stop_on_entry: bool,
    /// Allow breakpoints to wait for a module that is not loaded yet.
    #[serde(default)]
    pub pending: bool,
    /// How long to wait for the first stop, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

/// How long the kernel may take to bring a new program to its entry point.
const ENTRY_PATIENCE: Duration = Duration::from_secs(60);

impl Verb for Start {
    const NAME: &'static str = "start";
    const DOC: &'static str = "Start a program under control\n\nWithout breakpoints and --stop-on-entry the program just runs. With --break, the first stop is waited for.";
    const NEEDS: Needs = Needs::Daemon;
    const DOES: Does = Does::Change;
    type Args = StartArgs;
    type Reply = SessionReport;

    fn run(call: &Call<'_>, args: StartArgs) -> Result<SessionReport, Failure> {
        let timeout = stepping::patience(call, args.timeout_secs)?;
        for target in &args.breaks {
            // Report a syntax error before starting anything: it does not depend on the program.
            target.parse()?;
        }
        let stops = args.stop_on_entry || !args.breaks.is_empty();
        // Displayed expressions are added before the program can end.
        let at_entry = stops || !args.displays.is_empty();
        let session =
            LiveSession::begin(call, Origin::Started(args.launch.clone()), at_entry, None)?;
        let timeout = if stops { timeout } else { Duration::ZERO };
        let prepared = match at_entry {
            true => prepare(call, &session, &args, timeout),
            false => Ok(None),
        };
        if prepared.is_err() {
            abandon(call, &session);
        }
        prepared.map(|stop| session.report_at(stop.as_ref()))
    }
}

/// Adds the displayed expressions and breakpoints at the entry point, then continues to the first stop and returns it.
fn prepare(
    call: &Call<'_>,
    session: &Arc<LiveSession>,
    args: &StartArgs,
    timeout: Duration,
) -> Result<Option<Stop>, Failure> {
    let came = stepping::wait(call, session, 0, ENTRY_PATIENCE)?;
    let entry: MotionReport = came.report;
    if entry.status != StateWord::Stopped {
        let what = match &entry.exit {
            Some(exit) => format!("it {}", exit.text),
            None => "it did not reach its entry point".to_owned(),
        };
        let message = format!("{} could not be started: {what}", session.program);
        return Err(Failure::new(Code::NotStarted, message));
    }
    for expression in &args.displays {
        display::add(session, expression)?;
    }
    for target in &args.breaks {
        let location = probes::located(session, target, args.pending)?;
        let spec = ProbeSpec {
            location,
            action: Action::Break {
                all_threads: false,
                once: false,
            },
            condition: None,
            hit_count: 0,
        };
        session
            .live
            .add_probe(spec)
            .map_err(|error| of_recorder(&error))?;
    }
    if args.stop_on_entry {
        return Ok(came.stop);
    }
    let stop = session.stopped()?;
    let came = stepping::go(call, session, &stop, Motion::Continue, true, timeout)?;
    Ok(came.stop)
}

/// Ends a program whose start failed.
fn abandon(call: &Call<'_>, session: &LiveSession) {
    if let Err(error) = session.live.kill() {
        tracing::warn!(%error, "a program that was started for nothing is still there");
    }
    call.sessions.remove(session.id);
}
