//! What a comparison found, as data.

use serde::Serialize;

use super::differences::Kind;
use super::events::EventDifference;
use super::hash;
use super::output::OutputDifference;
use super::parted::{Parting, Values};
use super::suspects::Suspect;
use super::twins::ThreadEvent;
use crate::overview::CallLine;

/// The result of comparing two recordings.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The first recording.
    pub a: Recorded,
    /// The second recording.
    pub b: Recorded,
    /// Nothing differs but what was accepted.
    pub is_same: bool,
    /// Both ran the same builds of all modules that were recorded.
    pub is_same_build: bool,
    /// Variables of the environment that the programs did not have alike. That is no difference by itself.
    pub environment: Vec<String>,
    /// What the user should know about the comparison, such as rules that matched nothing.
    pub notes: Vec<String>,
    /// Functions that most likely made the difference, the likeliest first.
    pub suspects: Vec<Suspect>,
    /// Threads that both have.
    pub threads: Vec<ThreadPair>,
    /// What only one has.
    pub lone: Lone,
    /// The first line that differs of each stream.
    pub output: Vec<OutputDifference>,
    /// The first of each kind of other events that differs.
    pub events: Vec<EventDifference>,
    /// Functions that both have, those that differ first.
    pub functions: Vec<FunctionPair>,
    /// Calls that differ, thread by thread; at most as many as asked for.
    pub calls: Vec<CallPair>,
    /// How many differences of calls there are. A call that both have is one, and so is a call that only one has.
    pub differing: u64,
    /// How many differences were accepted earlier.
    pub accepted: u64,
    /// There are more differences than can be accepted one by one.
    #[serde(skip)]
    pub has_too_many: bool,
    /// The same for the same differences in every run: what to accept. Empty if there are too many.
    #[serde(serialize_with = "hash::all_as_hex")]
    pub fingerprints: Vec<u64>,
}

/// One of the recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Its name, as it was given.
    pub name: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The file and the first line of its `main`, or its executable file and line 1 if there is no debug information: where
    /// to point to if nothing better is known.
    pub main: Option<(String, u32)>,
    /// Its calls.
    pub calls: u64,
    /// Its events.
    pub events: u64,
    /// The kernel has chosen its addresses anew.
    pub random_addresses: bool,
    /// Hash tables with random keys: what they do is not compared.
    pub random_keys: bool,
    /// Files of its program and libraries that cannot be read any more: what pointers into them point to is not compared.
    pub unread: Vec<UnreadFile>,
}

/// A file that ran and cannot be read as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadFile {
    /// Its path when it was recorded.
    pub path: String,
    /// There is another build at this path now.
    pub is_replaced: bool,
    /// Why it cannot be read.
    pub why: String,
}

/// A thread of both recordings.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadPair {
    /// The function that it ran first; empty if it made no recorded call.
    pub function: String,
    /// Its number among the threads that ran this function first, from 0.
    pub number: u32,
    /// Its thread ids.
    pub tids: (u32, u32),
    /// Calls that were compared.
    pub calls: (u64, u64),
    /// Differences: a call that both have is one, and so is a call that only one has.
    pub differing: u64,
    /// Where they parted, if they did.
    pub parting: Option<Parting>,
    /// It differs, but how was not looked at: too many others do.
    pub is_untold: bool,
}

/// What only one recording has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lone {
    /// Threads.
    pub threads: Vec<LoneThread>,
    /// Functions that were called.
    pub functions: Vec<LoneFunction>,
    /// Functions that were called and that the compiler has inlined at other places in one build than in the other: which of their
    /// calls are recorded differs, so none are compared.
    pub uneven: Vec<String>,
    /// Variables that begin with other values in one build than in the other, as far as the files tell.
    pub values: Vec<String>,
}

/// A thread that only one recording has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoneThread {
    /// `a` or `b`.
    pub side: char,
    /// The function that it ran first.
    pub function: String,
    /// Its id.
    pub tid: u32,
}

/// A function of both recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionPair {
    /// Its name.
    pub function: String,
    /// How many calls it had.
    pub calls: (u64, u64),
    /// Their time with all that they made, in ns; those inside each other counted once. `None` where
    /// only entries are recorded.
    pub total_ns: (Option<u64>, Option<u64>),
    /// Their time without the recorded calls that they made, in ns.
    pub self_ns: (Option<u64>, Option<u64>),
    /// Calls with other arguments.
    pub arguments: u64,
    /// Calls with the same arguments and another result.
    pub results: u64,
    /// Calls with the same of both, and other calls inside.
    pub inside: u64,
    /// Calls that only one has.
    pub only: (u64, u64),
    /// The first call that differs: its enter events.
    pub first: (Option<u64>, Option<u64>),
    /// Its code differs; null if that is not known, or the builds are the same.
    pub code_differs: Option<bool>,
}

impl FunctionPair {
    /// Returns how many calls of each side differ.
    #[must_use]
    pub fn differing(&self) -> (u64, u64) {
        let both = self.arguments + self.results + self.inside;
        (both + self.only.0, both + self.only.1)
    }
}

/// A function that only one recording has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoneFunction {
    /// `a` or `b`.
    pub side: char,
    /// Its name.
    pub function: String,
    /// How many calls it had.
    pub calls: u64,
    /// Its source file and line.
    pub place: Option<(String, u32)>,
    /// Why the other one does not have it, as far as that is known.
    pub why: String,
}

/// A call that differs.
#[derive(Clone, Debug, Serialize)]
pub struct CallPair {
    /// In which way.
    pub kind: Kind,
    /// Its function.
    pub function: String,
    /// The call in the first recording.
    pub a: Option<CallLine>,
    /// The call in the second recording.
    pub b: Option<CallLine>,
    /// The arguments that differ.
    pub values: Vec<Values>,
    /// The moment in each recording at which it shows: where the call began or ended; of a recording that does not have
    /// it, where it was then.
    #[serde(skip)]
    pub places: [Option<ThreadEvent>; 2],
    /// The same for the same difference in every run.
    #[serde(serialize_with = "hash::as_hex")]
    pub fingerprint: u64,
}
