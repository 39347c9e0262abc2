//! Compares two recordings of a program: what it did differently, where that shows first, and which function most likely
//! made the difference.
//!
//! A first pass over each hashes the calls of every thread in chunks (`digest.rs`). Threads with equal hashes are equal;
//! the others are gone through side by side from the first chunk that differs (`walk.rs`, `align.rs`), so memory does not
//! grow with the recordings. What legitimately differs between two runs is not part of the hashes (`identity.rs`,
//! `forms.rs`, `places.rs`), and neither is what the user ignores (`rules.rs`). `parted.rs` and `suspects.rs` explain the
//! first difference, `text.rs` writes it.

mod align;
mod anchors;
mod clock_texts;
mod code;
mod comparable;
mod derived;
mod differences;
mod digest;
mod events;
mod forms;
mod hash;
mod hashing;
mod held;
mod identity;
mod inclusive;
mod inlining;
mod interpreters;
mod lone;
mod moments;
mod origins;
mod output;
mod parted;
mod places;
mod pointees;
mod read;
mod realign;
mod report;
mod rows;
mod rules;
mod run_texts;
mod script;
mod side;
mod slots;
mod source;
mod steps;
mod stop;
mod suspects;
mod table;
mod targets;
mod text;
mod threads;
mod twins;
mod unmatched;
mod variables;
mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use store::columns::ReadCall;

pub(crate) use comparable::{check_differs, check_program, check_whole};
pub use differences::Kind;
pub use events::EventDifference;
pub(crate) use forms::Word;
pub use held::{Held, HeldKind};
pub(crate) use identity::{Identities, module_key};
use inlining::Inlining;
use interpreters::Interpreters;
pub use output::{Line, OutputDifference};
pub use parted::{How, Parting, Sight, SourceLine, Values};
pub(crate) use read::{Batch, CallFiles, Position};
pub use report::{
    CallPair, Comparison, FunctionPair, Lone, LoneFunction, LoneThread, Recorded, ThreadPair,
    UnreadFile,
};
pub(crate) use rows::ByThread;
pub use rules::{RuleTexts, Rules};
pub use steps::Step;
pub use stop::Stop;
pub use suspects::Suspect;
pub(crate) use table::{Folders, register};
pub use text::{COLUMNS, Role, TextLine};
pub use twins::{ThreadEvent, Twin, Twins};

use crate::error::Result;
use crate::overview::told;
use crate::session::Session;
use code::Codes;
use derived::Derived;
use differences::{Collected, Counts, Difference};
use digest::Tally;
use hashing::Chance;
use origins::Origins;
use output::{Known, Numbers};
use side::{Common, Side, has_random_addresses};
use threads::Matched;
use variables::Variables;

/// Most threads that are gone through call by call. Of others only whether they differ is told.
const MOST_THREADS: usize = 64;

/// What a comparison is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is not compared.
    pub rules: Rules,
    /// Fingerprints of differences that are accepted.
    pub accepted: BTreeSet<u64>,
    /// At most so many calls that differ are described.
    pub most_calls: usize,
    /// The code of both builds says which functions were changed.
    pub with_code: bool,
    /// Stops the comparison.
    pub stop: Stop,
}

/// Compares two recordings, each with the name that the user gave it.
///
/// # Errors
/// [`crate::Error::NotComparable`]; a recording cannot be read; [`crate::Error::Stopped`].
pub fn compare(a: (&Session, &str), b: (&Session, &str), asked: &Asked) -> Result<Comparison> {
    compare_both(a, b, asked).map(|(found, _)| found)
}

/// The same, with what is needed to go through both side by side.
///
/// # Errors
/// As for [`compare`].
pub fn compare_both(
    a: (&Session, &str),
    b: (&Session, &str),
    asked: &Asked,
) -> Result<(Comparison, Twins)> {
    let identities = Identities::of(a.0.definitions(), b.0.definitions());
    comparable::check(a, b, &identities)?;
    let common = Common::new((a.0, b.0), &identities, asked)?;
    let mut own = Side::new(a.0, b.0, &common, true)?;
    let mut other = Side::new(b.0, a.0, &common, false)?;
    let is_same_build = identity::is_same_build(a.0.definitions(), b.0.definitions());
    let origins = origins_of((&mut own, &mut other), is_same_build)?;
    let (pass_a, pass_b) = both(|| own.pass(), || other.pass())?;
    let matched = threads::matched(
        threads::threads(&own, pass_a.threads)?,
        threads::threads(&other, pass_b.threads)?,
        !is_same_build,
    );
    let codes = match asked.with_code {
        true => code::codes(
            a.0,
            b.0,
            &identities,
            &common.inlining.inlined,
            &common.variables,
        )?,
        false => Codes::default(),
    };
    let whole = Whole {
        sessions: (a.0, b.0),
        sides: (&own, &other),
        identities: &identities,
        codes: &codes,
        is_same_build,
        numbers: Numbers {
            processes: &common.numbers,
            fixed: &common.fixed,
            texts: &common.run_texts,
            clock: common.run_texts.clock(),
        },
        variables: &common.variables,
        inlining: &common.inlining,
        interpreters: &common.interpreters,
        asked,
    };
    let mut comparison = whole.begun((a.1, b.1), &matched, (&pass_a.tallies, &pass_b.tallies))?;
    whole.threads(&matched, &mut comparison)?;
    whole.functions(&mut comparison, &pass_a.tallies, &pass_b.tallies)?;
    whole.judge(&mut comparison)?;
    Ok((comparison, Twins::of(matched, origins)))
}

/// Does the same with both recordings at once.
fn both<T: Send>(
    a: impl FnOnce() -> Result<T>,
    b: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, T)> {
    std::thread::scope(|scope| {
        let of_b = scope.spawn(b);
        let of_a = a();
        let of_b = of_b
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((of_a?, of_b?))
    })
}

/// Finds the blocks and descriptors of both recordings. If one has too many, those of neither are told apart.
fn origins_of(
    (a, b): (&mut Side<'_>, &mut Side<'_>),
    is_same_build: bool,
) -> Result<(Arc<Origins>, Arc<Origins>)> {
    let found = match both(|| a.read_origins(), || b.read_origins())? {
        (Some(mut own), Some(mut other)) => {
            Origins::place(&mut own, &mut other, is_same_build);
            (Arc::new(own), Arc::new(other))
        }
        _ => Default::default(),
    };
    a.set_origins(Arc::clone(&found.0));
    b.set_origins(Arc::clone(&found.1));
    Ok(found)
}

/// Everything that the parts of a report are made of.
struct Whole<'w> {
    sessions: (&'w Session, &'w Session),
    sides: (&'w Side<'w>, &'w Side<'w>),
    identities: &'w Identities,
    codes: &'w Codes,
    is_same_build: bool,
    numbers: Numbers<'w>,
    variables: &'w Variables,
    inlining: &'w Inlining,
    interpreters: &'w Interpreters,
    asked: &'w Asked,
}

impl Whole<'_> {
    fn begun(
        &self,
        names: (&str, &str),
        matched: &Matched,
        (of_a, of_b): (&[Tally], &[Tally]),
    ) -> Result<Comparison> {
        let recorded = |side: &Side<'_>, name: &str, tallies: &[Tally]| {
            let session = side.source.session();
            Recorded {
                name: name.to_owned(),
                argv: session.reader().recording().manifest().argv.clone(),
                main: main_of(session),
                calls: tallies.iter().map(|tally| tally.calls).sum(),
                events: session.extent().events,
                random_addresses: has_random_addresses(session),
                random_keys: side.has_random_keys,
                unread: side.unread(),
            }
        };
        let readers = (self.sessions.0.reader(), self.sessions.1.reader());
        let mut known = Known {
            numbers: self.numbers,
            accepted: &self.asked.accepted,
            known: 0,
            dated: 0,
            found: BTreeSet::new(),
            has_more: false,
            used_rules: BTreeSet::new(),
        };
        let mut output = Vec::new();
        for stream in ["stdout", "stderr"] {
            output.extend(output::output(
                readers,
                stream,
                &self.asked.rules,
                &mut known,
            )?);
        }
        let mut notes = unmatched::unmatched(&self.asked.rules, self.sessions, &known.used_rules);
        if known.dated > 0 {
            let lines = match known.dated {
                1 => "line of output differs",
                _ => "lines of output differ",
            };
            notes.push(format!(
                "dates and times of the clock were not compared: {} {lines} in them alone",
                known.dated
            ));
        }
        if self.sides.0.has_untold_blocks() || self.sides.1.has_untold_blocks() {
            let why = match self.sides.0.has_random_keys {
                true => "with random keys, which one is which differs in each run",
                false => "record with --memory to tell them apart by their allocations",
            };
            notes.push(format!(
                "pointers to blocks of the heap are one class: {why}"
            ));
        }
        if self.has_tables_of_addresses() {
            notes.push(
                "hash tables keyed by addresses differ in each run: calls of hashing and probing were not compared"
                    .to_owned(),
            );
        }
        notes.extend(self.interpreters.notes());
        let events = events::compare(readers, &matched.pairs, self.asked, &mut known)?;
        Ok(Comparison {
            a: recorded(self.sides.0, names.0, of_a),
            b: recorded(self.sides.1, names.1, of_b),
            is_same: false,
            is_same_build: self.is_same_build,
            environment: environment(self.sessions.0, self.sessions.1),
            notes,
            suspects: Vec::new(),
            threads: Vec::new(),
            lone: Lone {
                values: variables::changed(self.variables),
                ..Lone::default()
            },
            output,
            events,
            functions: Vec::new(),
            calls: Vec::new(),
            differing: 0,
            accepted: known.known,
            has_too_many: known.has_more,
            fingerprints: known.found.into_iter().collect(),
        })
    }

    fn has_random_addresses(&self) -> bool {
        has_random_addresses(self.sessions.0) && has_random_addresses(self.sessions.1)
    }

    /// Tells whether the programs have hash tables of which it is not compared how they are searched.
    fn has_tables_of_addresses(&self) -> bool {
        let chance = Chance {
            has_random_keys: false,
            has_random_addresses: self.has_random_addresses(),
        };
        let mut functions = self.sessions.0.definitions().functions();
        functions.any(|function| chance.decides(&function.name))
    }

    /// Goes through the threads.
    fn threads(&self, matched: &Matched, to: &mut Comparison) -> Result<()> {
        let keys: Vec<u64> = self
            .identities
            .shared
            .iter()
            .map(|shared| shared.key.stable())
            .collect();
        let mut counts: FxHashMap<u32, Counts> = FxHashMap::default();
        let mut fingerprints: BTreeSet<u64> =
            std::mem::take(&mut to.fingerprints).into_iter().collect();
        let mut looked_at = 0;
        let mut derived = self
            .has_random_addresses()
            .then(|| Derived::new(self.sides, self.is_same_build));
        for (own, other, number) in &matched.pairs {
            let mut pair = ThreadPair {
                function: own.function.clone(),
                number: *number,
                tids: (own.tid, other.tid),
                calls: (own.digest.rows, other.digest.rows),
                differing: 0,
                parting: None,
                is_untold: false,
            };
            if let Some((_, from_a, from_b)) = own.digest.first_difference(&other.digest) {
                pair.is_untold = looked_at >= MOST_THREADS;
                if !pair.is_untold {
                    looked_at += 1;
                    let most = self.asked.most_calls.saturating_sub(to.calls.len());
                    if let Some(derived) = &mut derived {
                        derived.next_thread(own.tid, other.tid)?;
                    }
                    let mut found =
                        Collected::new(&keys, &self.asked.accepted, most, derived.take());
                    let mut rows_a = self.sides.0.rows(own.tid, from_a);
                    let mut rows_b = self.sides.1.rows(other.tid, from_b);
                    walk::walk(&mut rows_a, &mut rows_b, &mut found)?;
                    derived = found.derived.take();
                    pair.differing = found.total;
                    if let Some(parted) = &found.parted {
                        let (a, b) = ((self.sides.0, own.tid), (self.sides.1, other.tid));
                        pair.parting = Some(parted::parting(a, b, parted, derived.as_ref())?);
                    }
                    to.differing += found.total;
                    to.accepted += found.known;
                    for difference in &found.kept {
                        to.calls.push(self.call(difference, (own.tid, other.tid))?);
                    }
                    to.has_too_many |= found.has_more;
                    fingerprints.extend(found.fingerprints);
                    for (function, own) in found.functions {
                        add(counts.entry(function).or_default(), &own);
                    }
                }
            }
            to.threads.push(pair);
        }
        to.notes.extend(derived.and_then(|derived| derived.note()));
        for (side, threads) in ['a', 'b'].into_iter().zip(&matched.lone) {
            to.lone
                .threads
                .extend(threads.iter().map(|thread| LoneThread {
                    side,
                    function: thread.function.clone(),
                    tid: thread.tid,
                }));
        }
        if !to.has_too_many {
            to.fingerprints = fingerprints.into_iter().collect();
        }
        to.functions = self.pairs(&counts);
        Ok(())
    }

    /// Describes a call that differs.
    fn call(&self, difference: &Difference, tids: (u32, u32)) -> Result<CallPair> {
        let line = |side: &Side<'_>, row: Option<rows::Row>| match row {
            Some(row) => parted::described(side, row.start),
            None => Ok(None),
        };
        let call = |side: &Side<'_>, row: Option<rows::Row>| -> Result<Option<ReadCall>> {
            let (Some(timeline), Some(row)) = (side.source.timeline(), row) else {
                return Ok(None);
            };
            let head = told(timeline.entered_at(row.start))?;
            head.map(|head| told(timeline.call(&head))).transpose()
        };
        let calls = (
            call(self.sides.0, difference.a)?,
            call(self.sides.1, difference.b)?,
        );
        let values = match &calls {
            (Some(a), Some(b)) => {
                let is_exact = difference.is_exact;
                parted::values((self.sides.0, a), (self.sides.1, b), is_exact)
            }
            _ => Vec::new(),
        };
        Ok(CallPair {
            kind: difference.kind,
            function: parted::name_of(self.sides.0, difference.function()).unwrap_or_default(),
            a: line(self.sides.0, difference.a)?,
            b: line(self.sides.1, difference.b)?,
            values,
            places: places(difference, tids),
            fingerprint: difference.fingerprint,
        })
    }

    fn pairs(&self, counts: &FxHashMap<u32, Counts>) -> Vec<FunctionPair> {
        let pair = |(number, shared): (usize, &identity::Shared)| {
            let own = counts.get(&(number as u32)).copied().unwrap_or_default();
            let of = |kind: Kind| own.by_kind[kind as usize];
            let is_changed = self.codes.changed.contains(&(number as u32));
            let name = parted::name_of(self.sides.0, number as u32);
            FunctionPair {
                function: name.unwrap_or_else(|| shared.key.name.clone()),
                calls: (0, 0),
                total_ns: (None, None),
                self_ns: (None, None),
                arguments: of(Kind::Arguments),
                results: of(Kind::Result),
                inside: of(Kind::Inside),
                only: (of(Kind::OnlyA), of(Kind::OnlyB)),
                first: own.first,
                code_differs: match self.is_same_build {
                    true => None,
                    false => (is_changed || self.codes.is_known).then_some(is_changed),
                },
            }
        };
        self.identities
            .shared
            .iter()
            .enumerate()
            .map(pair)
            .collect()
    }

    /// Completes the functions: what they did, and those that only one recording has.
    fn functions(&self, to: &mut Comparison, of_a: &[Tally], of_b: &[Tally]) -> Result<()> {
        let pairs = self.identities.shared.iter().zip(&mut to.functions);
        for (number, (shared, pair)) in pairs.enumerate() {
            let of =
                |tallies: &[Tally], id: u32| tallies.get(id as usize).copied().unwrap_or_default();
            let (own, other) = (of(of_a, shared.ids[0]), of(of_b, shared.ids[1]));
            pair.calls = (own.calls, other.calls);
            let (in_a, in_b) = (has_times(self.sides.0), has_times(self.sides.1));
            pair.total_ns = (in_a.then_some(own.total_ns), in_b.then_some(other.total_ns));
            pair.self_ns = (in_a.then_some(own.self_ns), in_b.then_some(other.self_ns));
            if pair.calls != (0, 0) && self.inlining.uneven.contains(&(number as u32)) {
                to.lone.uneven.push(pair.function.clone());
            }
        }
        to.functions.retain(|pair| pair.calls != (0, 0));
        let differing = |pair: &FunctionPair| {
            (
                pair.differing() == (0, 0),
                pair.first.0.or(pair.first.1),
                pair.function.clone(),
            )
        };
        to.functions.sort_by_cached_key(differing);
        let (a, b) = self.sessions;
        let [in_a, in_b] = &self.inlining.inlined;
        to.lone.functions = lone::functions((a, b), 'a', (&self.identities.of_a, of_a), in_b)?;
        let of_b = lone::functions((b, a), 'b', (&self.identities.of_b, of_b), in_a)?;
        to.lone.functions.extend(of_b);
        Ok(())
    }

    /// Says whether the recordings are the same, and if not, which function is suspected.
    fn judge(&self, to: &mut Comparison) -> Result<()> {
        let is_thread_same = |pair: &ThreadPair| pair.differing == 0 && !pair.is_untold;
        to.is_same = to.threads.iter().all(is_thread_same)
            && to.lone.threads.is_empty()
            && to.output.is_empty()
            && to.events.is_empty();
        if to.is_same {
            return Ok(());
        }
        let partings = to
            .threads
            .iter()
            .filter_map(|thread| thread.parting.as_ref());
        let first = partings.min_by_key(|parting| parting.a.seq).cloned();
        let of_output = to.output.iter().map(|difference| {
            let seq = |line: &Option<Line>| line.as_ref().map_or(u64::MAX, |line| line.seq);
            (seq(&difference.a), seq(&difference.b))
        });
        let of_events = to.events.iter().map(|difference| {
            let seq =
                |event: &Option<(String, u64)>| event.as_ref().map_or(u64::MAX, |event| event.1);
            (seq(&difference.a), seq(&difference.b))
        });
        let seqs = match &first {
            Some(parting) => (parting.a.seq, parting.b.seq),
            None => of_output
                .chain(of_events)
                .min()
                .unwrap_or((u64::MAX, u64::MAX)),
        };
        to.suspects = suspects::suspects(
            self.sessions,
            self.sides,
            first.as_ref(),
            seqs,
            self.codes,
            self.is_same_build,
        )?;
        Ok(())
    }
}

/// Returns the names of the variables that both programs did not get with the same value.
fn environment(a: &Session, b: &Session) -> Vec<String> {
    let variables = |session: &Session| {
        let launch = session.reader().recording().manifest().launch.as_ref()?;
        let pairs = launch
            .env
            .iter()
            .map(|pair| String::from_utf8_lossy(pair).into_owned());
        Some(pairs.collect::<BTreeSet<String>>())
    };
    let (Some(own), Some(other)) = (variables(a), variables(b)) else {
        return Vec::new();
    };
    let name = |pair: &String| {
        pair.split_once('=')
            .map_or(&**pair, |pair| pair.0)
            .to_owned()
    };
    let names = own.symmetric_difference(&other).map(name);
    // The shell sets it to the program that it runs, here the recorder.
    let names = names.filter(|name| name != "_");
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn has_times(side: &Side<'_>) -> bool {
    !side.source.session().report_source().only_entries
}

/// Returns where the program begins in its source, or the first line of its executable file.
fn main_of(session: &Session) -> Option<(String, u32)> {
    let definitions = session.definitions();
    let program = definitions.modules().find(|module| !module.system)?;
    let mut functions = definitions
        .functions()
        .filter(|one| one.module == program.id);
    // Rust's `main` stands in its crate, and the one of that name for the linker has no line.
    let main = functions.find_map(|function| {
        let is_main = function.name == "main" || function.name.ends_with("::main");
        is_main.then(|| function.file.clone().zip(function.line))?
    });
    main.or_else(|| Some((program.path.clone(), 1)))
}

/// Says at which moments a difference shows.
fn places(difference: &Difference, tids: (u32, u32)) -> [Option<ThreadEvent>; 2] {
    let is_at_entry = matches!(difference.kind, Kind::Arguments | Kind::OnlyA | Kind::OnlyB);
    let own = |row: &rows::Row| match is_at_entry {
        true => row.start,
        false => twins::end_of(row),
    };
    let last = difference.last.unzip();
    let seq = |row: Option<rows::Row>, last: Option<rows::Row>| {
        let own = row.as_ref().map(own);
        own.or_else(|| last.as_ref().map(twins::end_of))
    };
    let place = |seq: Option<u64>, tid| seq.map(|seq| ThreadEvent { seq, tid });
    [
        place(seq(difference.a, last.0), tids.0),
        place(seq(difference.b, last.1), tids.1),
    ]
}

fn add(to: &mut Counts, own: &Counts) {
    for (sum, count) in to.by_kind.iter_mut().zip(own.by_kind) {
        *sum += count;
    }
    if to.first == (None, None) {
        to.first = own.first;
    }
}
