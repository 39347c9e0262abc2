//! `rbreak`: sets a breakpoint on each of the program's functions whose name matches a regular expression.

use recorder::live::{Action, Location, ProbeSpec};
use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::{
    BreakReply, Call, Command, Does, Form, Needs, ProbeArgs, ProbeKind, ProbesReply, Text, Verb,
    Word, probe_text, probes,
};
use crate::location::{FunctionTarget, Target};
use crate::past::BreakWanted;
use crate::protocol::{Code, Failure};
use crate::session::Session;

/// The `rbreak` verb.
pub struct Rbreak;

/// The arguments of `rbreak`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RbreakArgs {
    /// A regular expression that has a match in the function's name.
    pub pattern: String,
}

/// The most breakpoints that are set at once.
const MOST: usize = 1000;

impl Verb for Rbreak {
    const NAME: &'static str = "rbreak";
    const DOC: &'static str = "Set a breakpoint on each function whose name matches a regular expression\n\n  rbreak ^parse_\nOf the program and its own libraries. break 'parse_*' sets one breakpoint with many places instead.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = RbreakArgs;
    type Reply = BreakReply;

    fn run(call: &Call<'_>, args: RbreakArgs) -> Result<BreakReply, Failure> {
        let pattern = Pattern::read(Some(&args.pattern))?;
        match call.target()? {
            Session::Recorded(past) => {
                let functions = past.timeline().functions();
                let fitting = functions.filter(|function| pattern.fits(&function.name));
                let names = checked(fitting.map(|f| f.name.clone()).collect(), &args.pattern)?;
                let breaks = names.iter().map(|name| {
                    let target = Target::Function(FunctionTarget {
                        function: name.clone(),
                    });
                    past.add_break(&target, BreakWanted::default())
                });
                Ok(BreakReply::Recorded {
                    breaks: breaks.collect::<Result<_, _>>()?,
                    of_a_program: past.is_of_a_session(),
                })
            }
            Session::Live(session) => {
                probes::may_be_added(&session, ProbeKind::Breakpoint)?;
                let space = session.live.space();
                let own = space.modules().iter().filter(|mapped| !mapped.is_system);
                let functions = own.flat_map(|mapped| mapped.module.functions().list.iter());
                let fitting = functions.filter(|function| pattern.fits(&function.name));
                let names = checked(fitting.map(|f| f.name.clone()).collect(), &args.pattern)?;
                let specs = names.into_iter().map(|name| ProbeSpec {
                    location: Location::Function(name),
                    action: Action::Break {
                        all_threads: false,
                        once: false,
                    },
                    condition: None,
                    hit_count: 0,
                });
                let views = probes::insert_all(&session, specs.collect())?;
                Ok(BreakReply::Probes(ProbesReply {
                    probes: probes::reports(&session, &views),
                }))
            }
        }
    }
}

impl Command for Rbreak {
    const WORDS: &'static [Word] = &[Word::new(
        "pattern",
        "REGEX",
        Form::Text,
        "A regular expression: functions whose name has a match",
    )];

    fn text(reply: &BreakReply, _: &RbreakArgs) -> Text {
        let asked = ProbeArgs::Add(());
        match reply {
            BreakReply::Probes(reply) => probe_text::of_program(&reply.probes, &asked),
            BreakReply::Recorded {
                breaks,
                of_a_program,
            } => probe_text::breaks(breaks, *of_a_program, &asked),
        }
    }
}

fn checked(mut names: Vec<String>, pattern: &str) -> Result<Vec<String>, Failure> {
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        let message = format!("no function of the program fits {pattern}");
        return Err(
            Failure::new(Code::InvalidFunction, message).hint("list them: info functions REGEX")
        );
    }
    if names.len() > MOST {
        let message = format!("{} functions fit {pattern}", names.len());
        return Err(Failure::bad_request(message).hint(
            "narrow it, or set one breakpoint with many places: break --function 'parse_*'",
        ));
    }
    Ok(names)
}
