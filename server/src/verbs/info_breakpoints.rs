//! `info_breakpoints`: everything that stops or logs: breakpoints, watches, catchpoints and logpoints.

use serde::{Deserialize, Serialize};

use super::{
    Call, Command, Does, Needs, Nothing, PageArgs, ProbeArgs, ProbeKind, ProbeReport, Text, Verb,
    Word, page, probe_text, probes,
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
        /// They, by number.
        probes: Vec<ProbeReport>,
        /// How many follow after these.
        #[serde(default, skip_serializing_if = "page::is_nothing")]
        left_out: usize,
    },
    /// Those of a recording.
    Recorded {
        /// The breakpoints.
        breaks: Vec<Break>,
        /// How many follow after these.
        #[serde(default, skip_serializing_if = "page::is_nothing")]
        left_out: usize,
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
    type Args = PageArgs;
    type Reply = InfoBreakpointsReply;

    fn run(call: &Call<'_>, args: PageArgs) -> Result<InfoBreakpointsReply, Failure> {
        Ok(match call.target()? {
            Session::Live(session) => {
                let mut probes = session.live.probes();
                let left_out = args.page().cut(&mut probes);
                InfoBreakpointsReply::Program {
                    probes: probes::reports(&session, &probes),
                    left_out,
                }
            }
            Session::Recorded(past) => {
                let mut breaks = past.all_breaks();
                let left_out = args.page().cut(&mut breaks);
                InfoBreakpointsReply::Recorded {
                    breaks,
                    left_out,
                    watches: past.all_watches().watches,
                    of_a_program: past.is_of_a_session(),
                }
            }
        })
    }
}

impl Command for InfoBreakpoints {
    const WORDS: &'static [Word] = &page::WORDS;

    fn text(reply: &InfoBreakpointsReply, asked: &PageArgs) -> Text {
        let list = ProbeArgs::<Nothing>::List;
        match reply {
            InfoBreakpointsReply::Program { probes, left_out } => {
                let (probes, more) = asked.page().shown(probes, *left_out);
                of_program(probes).and(more)
            }
            InfoBreakpointsReply::Recorded {
                breaks,
                left_out,
                watches,
                ..
            } => {
                let (breaks, more) = asked.page().shown(breaks, *left_out);
                let text = probe_text::listed_breaks(breaks).and(more);
                match watches.is_empty() {
                    true => text,
                    false => text.and(probe_text::watches(watches, &list)),
                }
            }
        }
    }
}

/// One table for each existing kind.
fn of_program(probes: &[ProbeReport]) -> Text {
    if probes.is_empty() {
        return Text::line("There are none.");
    }
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
            text = text.and(probe_text::listed(&of_kind));
        }
    }
    text
}
