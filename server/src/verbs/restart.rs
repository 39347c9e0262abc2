//! `restart`: ends the program if it still runs, and starts it again with the same arguments, folder and environment.
//! The session keeps its number, probes and displayed expressions, and gets a new recording.

use std::sync::Arc;
use std::time::Duration;

use debuginfo::AddressSpace;
use recorder::live::{Action, Location, Motion, ProbeState, ProbeView};

use super::{
    Call, Command, Does, Needs, Nothing, ProbeKind, Text, Verb, WaitsFor, display, show, stepping,
    watch,
};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::session::{FollowMode, LiveSession, Origin, SessionReport, of_recorder};

/// The `restart` verb.
pub struct Restart;

/// How long the kernel may take to bring a new program to its entry point.
const ENTRY_PATIENCE: Duration = Duration::from_secs(60);

impl Verb for Restart {
    const NAME: &'static str = "restart";
    const DOC: &'static str = "Start the program again with the same arguments and breakpoints, in a new recording\n\nLike gdb's run, without the confirmation.";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Change;
    type Args = Nothing;
    type Reply = SessionReport;

    fn run(call: &Call<'_>, _: Nothing) -> Result<SessionReport, Failure> {
        let old = call.live()?;
        let Origin::Started(mut launch) = old.origin.clone() else {
            let message = "the program was attached to: how it was started is not known";
            return Err(Failure::bad_request(message).hint("start it: hindsight start PROGRAM"));
        };
        // The old recording uses the chosen name.
        launch.recording.output = None;
        let probes = old.live.probes();
        let displays = old.live.displays();
        if !old.has_ended() {
            let killed = call.told("closing the recording", || old.live.kill());
            killed.map_err(|error| of_recorder(&error))?;
        }
        let kept = Arc::clone(old.live.kept());
        let mode = old.follow.mode();
        let is_held = !probes.is_empty() || !displays.is_empty() || mode == FollowMode::Child;
        let session = LiveSession::begin(call, Origin::Started(launch), is_held, Some(old.id))?;
        session.live.kept().take_over(&kept);
        if !is_held {
            return Ok(session.report());
        }
        let entry = stepping::wait(call, &session, 0, ENTRY_PATIENCE)?;
        let Some(stop) = entry.stop else {
            return Ok(session.report());
        };
        session.set_follow_mode(call.sessions, mode)?;
        for shown in &displays {
            display::add(&session, &shown.expression)?;
        }
        for probe in &probes {
            if let Err(failure) = set_again(&old, &session, probe) {
                let what = ProbeKind::of(&probe.spec).word();
                let location = &probe.spec.location;
                let text = format!(
                    "{what} {} ({location}) was not set again: {failure}",
                    probe.id
                );
                (call.notify)(Notice::new(NoticeKind::Warning, text));
            }
        }
        let timeout = match stops_somewhere(&probes) {
            true => stepping::patience(call, None)?,
            false => Duration::ZERO,
        };
        let came = stepping::go(call, &session, &stop, Motion::Continue, true, timeout)?;
        let session = came.turned_to.unwrap_or(session);
        Ok(session.report_at(came.stop.as_ref()))
    }
}

impl Command for Restart {
    const WAITS_FOR: WaitsFor = WaitsFor::Start;

    fn text(reply: &SessionReport, _: &Nothing) -> Text {
        show::session(reply)
    }
}

/// Returns whether one of the probes may stop the program.
fn stops_somewhere(probes: &[ProbeView]) -> bool {
    let stops = |probe: &ProbeView| {
        probe.state != ProbeState::Disabled && matches!(probe.spec.action, Action::Break { .. })
    };
    probes.iter().any(stops)
}

/// Sets a probe of the old run in the new one.
fn set_again(old: &LiveSession, session: &LiveSession, probe: &ProbeView) -> Result<(), Failure> {
    let mut spec = probe.spec.clone();
    let mut watched = None;
    spec.location = match spec.location {
        Location::Address(address) => {
            Location::Address(moved(&old.live.space(), &session.live.space(), address)?)
        }
        Location::Memory {
            access, expression, ..
        } => {
            let (location, found) = watch::locate(session, expression, access)?;
            watched = Some(found);
            location
        }
        other => other,
    };
    let failed = |error| of_recorder(&error);
    let view = session.live.add_probe(spec).map_err(failed)?;
    if let Some(watched) = watched {
        session.remember_watched(view.id, watched);
    }
    if probe.skips() > 0 {
        let skipped = session.live.pass_probe(view.id, probe.skips());
        skipped.map_err(failed)?;
    }
    if probe.state == ProbeState::Disabled {
        session.live.enable_probe(view.id, false).map_err(failed)?;
    }
    Ok(())
}

/// Returns the address in the new run of the code at `address` in the old one.
fn moved(old: &AddressSpace, new: &AddressSpace, address: u64) -> Result<u64, Failure> {
    let module = old.at(address).and_then(|before| {
        let path = before.module.path();
        let again = new.modules().iter().find(|now| now.module.path() == path)?;
        Some(again.address(before.svma(address)))
    });
    module.ok_or_else(|| {
        Failure::new(
            Code::InvalidAddress,
            "its module is not loaded at the program's entry",
        )
    })
}
