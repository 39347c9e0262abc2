//! What is unusual: calls far slower than the others of their function, functions that were called once and late, threads
//! that spent long in one call, blocks that were left.

use serde::Serialize;

use super::source::Source;
use super::tally::Tally;
use super::threads::Threads;

/// Most of each kind that are reported.
const OF_EACH: usize = 3;
/// A slow call takes this many times as long as the others.
const TIMES: u64 = 30;
/// And at least this long, in ns.
const LEAST_SLOW_NS: u64 = 50_000;
/// A function with fewer calls has no usual time.
const CALLS: u64 = 5;
/// A recording with fewer calls has no unusual ones.
const ALL_CALLS: u64 = 50;
/// The shortest long stay, in ns.
const LEAST_STAY_NS: u64 = 10_000_000;

/// How names in the standard libraries of C++ and Rust begin.
pub(super) const LIBRARIES: [&str; 4] = ["std::", "core::", "alloc::", "__gnu_cxx::"];

/// Something unusual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Unusual {
    /// A call that was far slower than the others of its function.
    SlowCall {
        /// Its enter event.
        seq: u64,
        /// The function.
        function: String,
        /// Its number.
        function_id: u32,
        /// The time without the recorded calls that it made, in ns.
        self_ns: u64,
        /// The mean of the others, in ns.
        others_ns: u64,
        /// How many calls the function had.
        calls: u64,
    },
    /// The only call of a function, late in the run.
    OnceLate {
        /// Its enter event.
        seq: u64,
        /// The function.
        function: String,
    },
    /// A thread spent long in one call, without a recorded call: it waited or computed.
    LongStay {
        /// The enter event of the call.
        seq: u64,
        /// The thread.
        tid: u32,
        /// The function.
        function: String,
        /// How long, in ns.
        self_ns: u64,
    },
    /// Blocks of the heap that the program had not freed when it exited. It may have left them on purpose.
    StillAllocated {
        /// The enter event of the first call that allocated such a block at `place`.
        seq: u64,
        /// How many blocks.
        blocks: u64,
        /// Their sizes, in bytes.
        bytes: u64,
        /// Who allocated most of the bytes, and who called that.
        place: String,
        /// All of them are from there.
        is_only_place: bool,
        /// Events are missing, in which some may have been freed.
        is_unsure: bool,
    },
}

/// Returns functions with a slow call.
fn slow(tallies: &[Tally]) -> Vec<&Tally> {
    let recorded: u64 = tallies.iter().map(|tally| tally.self_ns).sum();
    let is_slow = |tally: &&Tally| {
        tally.calls >= CALLS
            && tally.longest_ns >= LEAST_SLOW_NS
            && tally.longest_ns >= recorded / 200
            && tally.longest_ns >= others_ns(tally).saturating_mul(TIMES)
    };
    let mut slow: Vec<&Tally> = tallies.iter().filter(is_slow).collect();
    slow.sort_by_key(|tally| (u64::MAX - tally.longest_ns, tally.function));
    slow.truncate(OF_EACH);
    slow
}

/// The mean time of a function's calls without the longest.
fn others_ns(tally: &Tally) -> u64 {
    tally.self_ns.saturating_sub(tally.longest_ns) / tally.calls.saturating_sub(1).max(1)
}

fn least_stay(duration_ns: u64) -> u64 {
    LEAST_STAY_NS.max(duration_ns / 5)
}

/// Finds what is unusual.
pub fn unusual(
    source: &Source<'_>,
    tallies: &[Tally],
    threads: &Threads,
    duration_ns: u64,
) -> Vec<Unusual> {
    let mut found = Vec::new();
    for tally in slow(tallies) {
        found.extend(tally.longest.map(|seq| Unusual::SlowCall {
            seq,
            function: source.name(tally.function),
            function_id: tally.function,
            self_ns: tally.longest_ns,
            others_ns: others_ns(tally),
            calls: tally.calls,
        }));
    }
    // With one thread, that is where its time went.
    let is_several = threads.total > 1;
    let stays = threads.long_calls(least_stay(duration_ns));
    for thread in stays.filter(|_| is_several).take(OF_EACH) {
        let Some((seq, function)) = thread.longest else {
            continue;
        };
        let is_told =
            |known: &Unusual| matches!(known, Unusual::SlowCall { seq: told, .. } if *told == seq);
        if !found.iter().any(is_told) {
            found.push(Unusual::LongStay {
                seq,
                tid: thread.tid,
                function: source.name(function),
                self_ns: thread.longest_ns,
            });
        }
    }
    found.extend(once_late(source, tallies));
    found
}

fn once_late(source: &Source<'_>, tallies: &[Tally]) -> Vec<Unusual> {
    let calls: u64 = tallies.iter().map(|tally| tally.calls).sum();
    if calls < ALL_CALLS {
        return Vec::new();
    }
    let after = source.late();
    let is_late = |tally: &&Tally| {
        let name = source.name(tally.function);
        // Every program has an end; the work of a library's templates and closures is not a step of the program.
        let is_end = name.starts_with('_') || name == "deregister_tm_clones";
        let plain = name.trim_start_matches('<');
        let function = source.function(tally.function);
        let file = function.and_then(|function| function.file.as_deref());
        let is_of_library = LIBRARIES.iter().any(|library| plain.starts_with(library))
            || file.is_some_and(debuginfo::is_library_source);
        tally.calls == 1
            && tally.first > after
            && source.is_own(tally.function)
            && !is_end
            && !is_of_library
    };
    let mut late: Vec<&Tally> = tallies.iter().filter(is_late).collect();
    late.sort_by_key(|tally| tally.first);
    let late = late.into_iter().take(OF_EACH);
    late.map(|tally| Unusual::OnceLate {
        seq: tally.first,
        function: source.name(tally.function),
    })
    .collect()
}
