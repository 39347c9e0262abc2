//! `condition`: gives a probe another condition, or none.

use recorder::live::{ProbeId, ProbeView};
use serde::{Deserialize, Serialize};

use super::{
    BreakReply, Call, Command, Does, Form, Needs, ProbeKind, ProbesReply, Takes, Text, Verb, Word,
    probe_text, probes,
};
use crate::inspect;
use crate::protocol::{Code, Failure};
use crate::session::{LiveSession, Session, of_recorder};

/// The `condition` verb.
pub struct Condition;

/// The arguments of `condition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionArgs {
    /// The probe's number.
    pub id: ProbeId,
    /// The condition. Without one, the probe becomes unconditional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

impl Verb for Condition {
    const NAME: &'static str = "condition";
    const DOC: &'static str = "Change or remove a breakpoint's condition\n\n  condition 2 i == 3     stop at breakpoint 2 only if i is 3\n  condition 2            stop there each time\n\nOnce the program has ended, the next run stops so, which restart begins.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = ConditionArgs;
    type Reply = BreakReply;

    fn run(call: &Call<'_>, args: ConditionArgs) -> Result<BreakReply, Failure> {
        let condition = args.condition.filter(|text| !text.trim().is_empty());
        if let Session::Recorded(past) = call.target()? {
            let changed = past.change_condition(args.id, condition.as_deref())?;
            return Ok(BreakReply::of_recording(changed));
        }
        let session = call.live()?;
        let id = args.id;
        probes::may_be_changed(&session)?;
        let changed = change(&session, id, condition.as_deref())?;
        Ok(BreakReply::Probes(ProbesReply {
            probes: probes::reports(&session, &[changed]),
        }))
    }
}

impl Command for Condition {
    const WORDS: &'static [Word] = &[
        Word::new(
            "id",
            "ID",
            Form::NumberOperand,
            "The number of the breakpoint",
        ),
        Word::new(
            "condition",
            "EXPRESSION",
            Form::Expression,
            "The condition [default: none]",
        )
        .optional(),
    ];

    fn text(reply: &BreakReply, _: &ConditionArgs) -> Text {
        let when = |condition: &Option<String>| match condition {
            Some(condition) => format!("only if {condition}"),
            None => "each time".to_owned(),
        };
        match reply {
            BreakReply::Probes(reply) => Text::lines(reply.probes.iter().map(|probe| {
                format!(
                    "{} {}: {}{}",
                    probe.kind.title(),
                    probe.id,
                    when(&probe.condition),
                    probe_text::in_which_run(probe)
                )
            })),
            BreakReply::Recorded { breaks, .. } => Text::lines(
                breaks
                    .iter()
                    .map(|known| format!("Breakpoint {}: {}", known.id, when(&known.condition))),
            ),
        }
    }
}

/// Gives a probe another condition. Its other properties and its state stay.
///
/// # Errors
/// [`Code::BreakpointNotFound`], [`Code::InvalidCondition`].
fn change(
    session: &LiveSession,
    id: ProbeId,
    condition: Option<&str>,
) -> Result<ProbeView, Failure> {
    let known = session.live.probes();
    let Some(view) = known.iter().find(|view| view.id == id) else {
        return Err(probes::no_such(id, ProbeKind::Breakpoint, &known));
    };
    if ProbeKind::of(&view.spec) == ProbeKind::Watchpoint {
        let message = format!("{id} is a watchpoint, whose condition is given when it is set");
        return Err(Failure::new(Code::NotAllowed, message).hint(format!(
            "watch remove {id}, then: watch EXPRESSION --condition CONDITION"
        )));
    }
    let condition = inspect::condition(condition)?;
    if session.has_ended() {
        let kept = session.live.keep_condition(id, condition);
        return kept.map_err(|error| of_recorder(&error));
    }
    let was_enabled = view.state != recorder::live::ProbeState::Disabled;
    let spec = recorder::live::ProbeSpec {
        condition,
        ..view.spec.clone()
    };
    // A probe that is set again at the same place is changed.
    let changed = session
        .live
        .add_probe(spec)
        .map_err(|error| of_recorder(&error))?;
    match was_enabled {
        true => Ok(changed),
        false => {
            let disabled = session.live.enable_probe(changed.id, false);
            disabled.map_err(|error| of_recorder(&error))
        }
    }
}
