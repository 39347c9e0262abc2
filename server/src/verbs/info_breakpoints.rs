//! `info_breakpoints`: everything that stops or logs: breakpoints, watches, catchpoints and logpoints.

use serde::{Deserialize, Serialize};

use super::{
    Call, Command, Does, Needs, Nothing, ProbeArgs, ProbeKind, ProbeReport, Text, Verb, probe_text,
};
use crate::past::{Break, WatchLine};
use crate::protocol::Failure;
use crate::session::Session;

/// The `info_breakpoints` verb.
pub struct InfoBreakpoints;

/// The reply of `info_breakpoints`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum InfoBreakpointsReply {
    /// Those of a program.
    Program {
        /// All of them, by number.
        probes: Vec<ProbeReport>,
    },
    /// Those of a recording.
    Recorded {
        /// The breakpoints.
        breaks: Vec<Break>,
        /// The watches.
        watches: Vec<WatchLine>,
        /// The recording is the past of a program.
        of_a_program: bool,
    },
}

impl Verb for InfoBreakpoints {
    const NAME: &'static str = "info_breakpoints";
    const DOC: &'static str = "List breakpoints, watches, catchpoints and logpoints";
    const ALIASES: &'static [&'static str] = &["info_watchpoints"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = InfoBreakpointsReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<InfoBreakpointsReply, Failure> {
        Ok(match call.target()? {
            Session::Live(session) => {
                let probes = session.live.probes();
                InfoBreakpointsReply::Program {
                    probes: probes.iter().map(ProbeReport::of).collect(),
                }
            }
            Session::Recorded(past) => InfoBreakpointsReply::Recorded {
                breaks: past.all_breaks(),
                watches: past.all_watches().watches,
                of_a_program: past.is_of_a_session(),
            },
        })
    }
}

impl Command for InfoBreakpoints {
    fn text(reply: &InfoBreakpointsReply, _: &Nothing) -> Text {
        let list = ProbeArgs::<Nothing>::List;
        let (breaks, watches, of_a_program) = match reply {
            InfoBreakpointsReply::Program { probes } => return of_program(probes),
            InfoBreakpointsReply::Recorded {
                breaks,
                watches,
                of_a_program,
            } => (breaks, watches, *of_a_program),
        };
        let text = probe_text::breaks(breaks, of_a_program, &list);
        match watches.is_empty() {
            true => text,
            false => text.and(probe_text::watches(watches, &list)),
        }
    }
}

/// One table for each kind that there is.
fn of_program(probes: &[ProbeReport]) -> Text {
    if probes.is_empty() {
        return Text::line("There are none.");
    }
    let list = ProbeArgs::<Nothing>::List;
    let mut text = Text::default();
    for kind in [
        ProbeKind::Breakpoint,
        ProbeKind::Watchpoint,
        ProbeKind::Catchpoint,
        ProbeKind::Logpoint,
    ] {
        let of_kind = probes.iter().filter(|probe| probe.kind == kind);
        let of_kind: Vec<ProbeReport> = of_kind.cloned().collect();
        if !of_kind.is_empty() {
            let mut heading = format!("{}s", kind.word());
            heading[..1].make_ascii_uppercase();
            text.push(heading);
            text = text.and(probe_text::of_program(&of_kind, &list));
        }
    }
    text
}
