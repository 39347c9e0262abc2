//! `start`: starts a program under control. With breakpoints it waits for the first stop. Without breakpoints and a
//! stop at the entry, the program just runs.

use std::path::PathBuf;
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
    const DOC: &'static str = "Start a program under control\n\nWithout breakpoints and --stop-on-entry the program just runs. With --break, start waits for the first stop. The program's standard input is /dev/null, unless you give it a file: start PROGRAM < FILE, or --stdin FILE. A pipe or a terminal cannot be given. gdb's start, which runs to main, is start --break main here.";
    const NEEDS: Needs = Needs::Daemon;
    const DOES: Does = Does::Change;
    type Args = StartArgs;
    type Reply = SessionReport;

    fn run(call: &Call<'_>, args: StartArgs) -> Result<SessionReport, Failure> {
        let timeout = stepping::patience(call, args.timeout_secs)?;
        // Report a syntax error before starting anything: it does not depend on the program.
        let mut plain = args
            .breaks
            .iter()
            .filter(|at| at.address_expression().is_none());
        plain.try_for_each(|at| at.parse().map(drop))?;
        let stops = args.stop_on_entry || !args.breaks.is_empty();
        // Displayed expressions are added before the program can end.
        let at_entry = stops || !args.displays.is_empty();
        let session =
            LiveSession::begin(call, Origin::Started(args.launch.clone()), at_entry, None)?;
        let timeout = if stops { timeout } else { Duration::ZERO };
        if !at_entry {
            let report = session.report();
            // It may have crashed by now: the answer shows that.
            if let Some(stop) = &report.stop {
                session.live.mark_shown(stop.number);
            }
            return Ok(report);
        }
        let entered = prepare(call, &session, &args).inspect_err(|_| {
            // None of its code has run: there is nothing to keep.
            if let Some(recording) = abandon(call, &session)
                && let Err(error) = std::fs::remove_dir_all(&recording)
            {
                tracing::warn!(%error, "the recording of a program that did not run stays there");
            }
        })?;
        if args.stop_on_entry {
            return Ok(session.report_at(Some(&entered)));
        }
        let stop = session.stopped()?;
        let came = stepping::go(call, &session, &stop, Motion::Continue, true, timeout);
        let came = came.inspect_err(|_| _ = abandon(call, &session))?;
        Ok(session.report_at(came.stop.as_ref()))
    }
}

/// Adds the displayed expressions and breakpoints at the entry point. Returns the stop there.
fn prepare(call: &Call<'_>, session: &Arc<LiveSession>, args: &StartArgs) -> Result<Stop, Failure> {
    let came = stepping::wait(call, session, 0, ENTRY_PATIENCE)?;
    let entry: MotionReport = came.report;
    let Some(stop) = came.stop.filter(|_| entry.status == StateWord::Stopped) else {
        let what = match &entry.exit {
            Some(exit) => format!("it {}", exit.text),
            None => "it did not reach its entry point".to_owned(),
        };
        let message = format!("{} could not be started: {what}", session.program);
        return Err(Failure::new(Code::NotStarted, message));
    };
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
    Ok(stop)
}

/// Ends a program whose start failed. Returns its recording, once it is closed.
fn abandon(call: &Call<'_>, session: &LiveSession) -> Option<PathBuf> {
    let killed = session.live.kill();
    call.sessions.remove(session.id);
    let closed = killed.inspect_err(|error| {
        tracing::warn!(%error, "a program that was started for nothing is still there");
    });
    closed.ok().map(|outcome| outcome.recording)
}
