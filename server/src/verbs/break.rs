//! `break`: adds, lists, removes and switches breakpoints. A hit stops the thread, or with `all_threads` all of them.

use recorder::live::{Action, ProbeSpec};
use serde::{Deserialize, Serialize};

use super::{Call, ProbeArgs, ProbeKind, ProbesReply, Verb, probes};
use crate::location::Target;
use crate::protocol::Failure;

/// The verb.
pub struct Break;

/// A breakpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakAdd {
    /// Where.
    pub at: Target,
    /// More places, each with a breakpoint of its own. All are set, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Target>,
    /// Only if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Only on the Nth hit; 0: on every one.
    #[serde(default)]
    pub hit_count: u64,
    /// Stop all threads.
    #[serde(default)]
    pub all_threads: bool,
    /// Stop once and be removed.
    #[serde(default)]
    pub once: bool,
    /// May wait for a module that is not loaded yet.
    #[serde(default)]
    pub pending: bool,
}

impl Verb for Break {
    const NAME: &'static str = "break";
    type Args = ProbeArgs<BreakAdd>;
    type Reply = ProbesReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<ProbesReply, Failure> {
        probes::run(call, args, ProbeKind::Breakpoint, |session, add| {
            let targets = std::iter::once(&add.at).chain(&add.also);
            let spec = |target| {
                Ok(ProbeSpec {
                    location: probes::located(session, target, add.pending)?,
                    action: Action::Break {
                        all_threads: add.all_threads,
                        once: add.once,
                    },
                    condition: add.condition.clone(),
                    hit_count: add.hit_count,
                })
            };
            targets.map(spec).collect()
        })
    }
}
