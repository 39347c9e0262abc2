//! `ignore`: skips the next N hits of a breakpoint.

use recorder::live::{Action, ProbeId};
use serde::{Deserialize, Serialize};

use super::{
    BreakReply, Call, Command, Does, Form, Needs, ProbeKind, ProbesReply, Text, Verb, Word,
    probe_text, probes,
};
use crate::protocol::{Code, Failure};
use crate::session::{Session, of_recorder};

/// The `ignore` verb.
pub struct Ignore;

/// The arguments of `ignore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoreArgs {
    /// The probe's number.
    pub id: ProbeId,
    /// How many of its next hits are skipped.
    pub count: u64,
}

impl Verb for Ignore {
    const NAME: &'static str = "ignore";
    const DOC: &'static str = "Skip a breakpoint's next hits: ignore 2 10\n\nIf the breakpoint has a condition, only hits that satisfy it count. ignore 2 0 skips none. In a recording, the next runs in either direction skip them. Once the program has ended, the next run skips them, which restart begins.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = IgnoreArgs;
    type Reply = BreakReply;

    fn run(call: &Call<'_>, args: IgnoreArgs) -> Result<BreakReply, Failure> {
        if let Session::Recorded(past) = call.target()? {
            let changed = past.ignore_break(args.id, args.count)?;
            return Ok(BreakReply::of_recording(changed));
        }
        let session = call.live()?;
        probes::may_be_changed(&session)?;
        let known = session.live.probes();
        let Some(view) = known.iter().find(|view| view.id == args.id) else {
            return Err(probes::no_such(args.id, ProbeKind::Breakpoint, &known));
        };
        if view.spec.action == Action::LogWrites {
            let message = format!("logpoint {} logs each write of a variable", args.id);
            return Err(Failure::new(Code::NotAllowed, message).hint(
                "ignore is for breakpoints, watchpoints, catchpoints and logpoints at a place",
            ));
        }
        let changed = session.live.pass_probe(args.id, args.count);
        let changed = changed.map_err(|error| of_recorder(&error))?;
        Ok(BreakReply::Probes(ProbesReply {
            probes: probes::reports(&session, &[changed]),
        }))
    }
}

impl Command for Ignore {
    const WORDS: &'static [Word] = &[
        Word::new(
            "id",
            "ID",
            Form::NumberOperand,
            "The number of the breakpoint",
        ),
        Word::new(
            "count",
            "COUNT",
            Form::NumberOperand,
            "How many hits to skip",
        ),
    ];

    fn text(reply: &BreakReply, asked: &IgnoreArgs) -> Text {
        let what = match reply {
            BreakReply::Probes(reply) => reply.probes.first().map(|probe| probe.kind),
            BreakReply::Recorded { breaks, .. } => breaks
                .first()
                .filter(|known| known.caught.is_some())
                .map(|_| ProbeKind::Catchpoint),
        };
        let what = what.unwrap_or(ProbeKind::Breakpoint).title();
        let run = match reply {
            BreakReply::Probes(reply) => reply.probes.first().map(probe_text::in_which_run),
            BreakReply::Recorded { .. } => None,
        };
        let run = run.unwrap_or_default();
        Text::line(match asked.count {
            0 => format!("{what} {} skips no hits{run}", asked.id),
            hits => format!("{what} {} {}{run}", asked.id, probes::skips(hits)),
        })
    }
}
