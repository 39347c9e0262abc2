//! `ignore`: skips the next N hits of a breakpoint.

use recorder::live::ProbeId;
use serde::{Deserialize, Serialize};

use super::{
    BreakReply, Call, Command, Does, Form, Needs, ProbeKind, ProbeReport, ProbesReply, Text, Verb,
    Word, condition, probes,
};
use crate::protocol::{Code, Failure};
use crate::quantity::count;
use crate::session::{Session, of_recorder};

/// The `ignore` verb.
pub struct Ignore;

/// The arguments of `ignore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoreArgs {
    /// The probe's number.
    pub id: ProbeId,
    /// How often it is passed from now on.
    pub count: u64,
}

impl Verb for Ignore {
    const NAME: &'static str = "ignore";
    const DOC: &'static str = "Skip a breakpoint's next hits: ignore 2 10\n\nWithout a condition it becomes hitCount > 10, which counts from now on; condition 2 removes it. With one, hits with it true are passed. In a recording the next runs pass it, in whatever direction.";
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
        session.must_run()?;
        let known = session.live.probes();
        let Some(view) = known.iter().find(|view| view.id == args.id) else {
            return Err(probes::no_such(args.id, ProbeKind::Breakpoint, &known));
        };
        let old = view.spec.condition_text();
        // A count that `ignore` set may be replaced.
        let is_own = |text: &str| {
            let rest = text.strip_prefix("hitCount > ");
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if let Some(old) = old.filter(|old| !is_own(old)) {
            let kind = ProbeKind::of(&view.spec);
            if kind == ProbeKind::Logpoint {
                // The program counts its hits, and writes its messages.
                let message = format!("logpoint {} has a condition: {old}", args.id);
                return Err(Failure::new(Code::NotAllowed, message).hint(format!(
                    "count within it: condition {} hitCount > {} && ({old})",
                    args.id, args.count
                )));
            }
            let passed = session.live.pass_probe(args.id, args.count);
            let passed = passed.map_err(|error| of_recorder(&error))?;
            return Ok(BreakReply::Probes(ProbesReply {
                probes: vec![ProbeReport::of(&passed)],
            }));
        }
        let text = (args.count > 0).then(|| format!("hitCount > {}", args.count));
        // The count restarts with the new condition.
        let report = condition::change(&session, args.id, text.as_deref())?;
        Ok(BreakReply::Probes(ProbesReply {
            probes: vec![report],
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
            "How often it is passed",
        ),
    ];

    fn text(_: &BreakReply, asked: &IgnoreArgs) -> Text {
        Text::line(match asked.count {
            0 => format!("Breakpoint {} stops each time", asked.id),
            times => format!("Breakpoint {} is passed {}", asked.id, count(times, "time")),
        })
    }
}
