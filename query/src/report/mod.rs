//! Where the time went: self and inclusive times of functions, who called whom, and the tree of calls.
//!
//! One pass over the calls, backwards (`walk.rs`), within memory that does not grow with their number. Times are given
//! twice: as measured, and without what recording itself cost (`cost.rs`), what was nobody's time (`away.rs`) and waits for a
//! processor (`waits.rs`). The calls below a single one are listed apart (`below.rs`).

mod away;
mod below;
mod cost;
mod flame;
mod folded;
mod paths;
mod read;
mod source;
mod speedscope;
mod stops;
mod tree;
mod waits;
mod walk;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::error::Result;
use crate::rows::ask;
use crate::session::Session;
use away::Away;
pub(crate) use away::Raised;
pub use below::{Below, CallBelow, below};
use cost::Shortest;
pub(crate) use cost::{Cost, Costs, LEAST_NS};
pub(crate) use read::Groups;
use read::Rows;
use tree::NONE;
use walk::{Inclusive, Walk};

pub use paths::{Path, Paths, Times};
pub(crate) use source::Source;

/// Paths that are told apart.
const MOST_PATHS: usize = 1 << 20;

/// Functions with fewer calls, or that can only have a smaller part of the time, are not worth a warning.
const ROUGH_CALLS: u64 = 1000;
const ROUGH_PART: f64 = 0.1;

/// Where the time went.
#[derive(Debug)]
pub struct Report {
    /// Only the entries of calls are recorded: all times are zero, because none is known, and so are callers.
    pub only_entries: bool,
    /// What recording a call was found to cost.
    pub cost: CostNote,
    /// The functions, that with the most time first.
    pub functions: Vec<FunctionTime>,
    /// Who called whom, the most time first.
    pub edges: Vec<EdgeTime>,
    /// The paths, by thread.
    pub paths: Paths,
    /// Threads, that with the most time first.
    pub threads: Vec<ThreadTime>,
    /// Where a function is in `functions`, by its number.
    places: FxHashMap<u32, usize>,
}

/// The time of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadTime {
    /// Its id; 0 if that is not known.
    pub tid: u32,
    /// Its name, if it had one.
    pub name: Option<String>,
    /// How many calls it made.
    pub calls: u64,
    /// The time of its calls, in ns.
    pub self_ns: u64,
    /// The same as measured.
    pub raw_self_ns: u64,
    /// For how long it was ready to run and waited for a processor, in ns, as the kernel counted; `None`: that is not known, and
    /// its times are with these waits.
    pub processor_wait_ns: Option<u64>,
}

/// What was taken out of the times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostNote {
    /// What recording a call cost within the call, in ns.
    pub inside_ns: f64,
    /// What it cost in the caller, in ns.
    pub outside_ns: f64,
    /// For how long threads were stopped by a live session or waited for the recorder, all added up, in ns.
    pub held_ns: u64,
    /// For how long threads were ready to run and waited for a processor, all added up, in ns.
    pub processor_wait_ns: u64,
    /// Threads that made calls and whose waits for a processor are not known, and are in their times.
    pub threads_with_unknown_waits: u64,
    /// Calls on paths that are not told apart: there are too many.
    pub folded_calls: u64,
}

/// The time of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionTime {
    /// Its name.
    pub function: String,
    /// Its module's file name.
    pub module: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Its source line.
    pub line: Option<u32>,
    /// Its number in the recording.
    pub function_id: u32,
    /// How many calls it had.
    pub calls: u64,
    /// The time of its calls without the recorded calls that they made, and without what recording cost, in ns: at least 1 ns
    /// of each call.
    pub self_ns: u64,
    /// The same at most, in ns: recording may have cost only half as much as it seems, and other calls may have waited for a
    /// processor.
    pub self_most_ns: u64,
    /// What of `self_most_ns` is there because it is not known which calls waited, in ns.
    #[serde(skip)]
    pub waits_unsure_ns: u64,
    /// The time of its calls with all that they made, those inside each other counted once.
    pub inclusive_ns: u64,
    /// The part of `self_ns` in that of all functions, from 0 to 1.
    pub share: f64,
    /// `self_ns` as measured.
    pub raw_self_ns: u64,
    /// `inclusive_ns` as measured.
    pub raw_inclusive_ns: u64,
}

impl FunctionTime {
    /// Returns whether recording cost more than what is left, or waits may have been so long: the time is rough.
    #[must_use]
    pub fn is_rough(&self) -> bool {
        2 * self.self_most_ns > 3 * self.self_ns
    }

    /// The time at most, in ns, if it is known which calls waited.
    fn most_by_cost_ns(&self) -> u64 {
        self.self_most_ns.saturating_sub(self.waits_unsure_ns)
    }
}

/// The calls of one function by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeTime {
    /// The function that called; `None` where no recorded call was around.
    pub caller: Option<u32>,
    /// The function that was called.
    pub callee: u32,
    /// How many calls.
    pub calls: u64,
    /// Their time with all that they made, those inside each other counted once, in ns.
    pub inclusive_ns: u64,
    /// The same as measured.
    pub raw_inclusive_ns: u64,
}

/// Adds up the calls of a recording. `progress` is told how many of how many calls have been added.
///
/// # Errors
/// The recording cannot be read.
pub fn report(session: &Session, progress: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    let mut report = session.report_source().report(progress)?;
    for row in ask(
        session,
        "select tid, name from threads where name is not null",
    )? {
        let tid = row.count(0).and_then(|tid| u32::try_from(tid).ok());
        let mut threads = report.threads.iter_mut();
        if let Some(thread) = threads.find(|thread| Some(thread.tid) == tid) {
            thread.name = row.text(1).map(str::to_owned);
        }
    }
    Ok(report)
}

impl Report {
    /// Returns the time of a function, by its number; `None` if it was not called.
    #[must_use]
    pub fn function(&self, id: u32) -> Option<&FunctionTime> {
        self.places.get(&id).map(|place| &self.functions[*place])
    }

    /// Returns the threads whose waits for a processor are not known, that with the most time first.
    pub fn with_unknown_waits(&self) -> impl Iterator<Item = &ThreadTime> {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.processor_wait_ns.is_none())
    }

    /// Returns the functions with much of the time, of which little is left without what recording cost, that with the
    /// most calls first.
    #[must_use]
    pub fn rough(&self) -> Vec<&FunctionTime> {
        let all = self.functions.iter();
        let whole_ns: u64 = all.map(FunctionTime::most_by_cost_ns).sum();
        let is_rough = |f: &&FunctionTime| {
            let most_ns = f.most_by_cost_ns();
            let has_part = most_ns as f64 > whole_ns as f64 * ROUGH_PART;
            has_part && f.calls >= ROUGH_CALLS && 2 * most_ns > 3 * f.self_ns
        };
        let mut rough: Vec<&FunctionTime> = self.functions.iter().filter(is_rough).collect();
        rough.sort_by_key(|f| (u64::MAX - f.calls, f.function_id));
        rough
    }

    /// Returns whether threads waited for a processor for longer than their calls ran: then shares are rough.
    #[must_use]
    pub fn mostly_waited(&self) -> bool {
        let ran_ns: u64 = self.functions.iter().map(|f| f.self_ns).sum();
        self.cost.processor_wait_ns > ran_ns
    }

    /// Returns who called a function, the most time first; `None` where no recorded call was around.
    pub fn callers(&self, id: u32) -> impl Iterator<Item = (Option<&FunctionTime>, &EdgeTime)> {
        let edges = self.edges.iter().filter(move |edge| edge.callee == id);
        edges.map(|edge| (edge.caller.and_then(|caller| self.function(caller)), edge))
    }

    /// Returns what a function called, the most time first.
    pub fn callees(&self, id: u32) -> impl Iterator<Item = (&FunctionTime, &EdgeTime)> {
        let edges = self
            .edges
            .iter()
            .filter(move |edge| edge.caller == Some(id));
        edges.filter_map(|edge| Some((self.function(edge.callee)?, edge)))
    }

    /// Returns the name of a path's last function; of a thread its own.
    #[must_use]
    pub fn path_name(&self, paths: &Paths, id: usize) -> String {
        let path = &paths.all[id];
        if path.parent.is_none() {
            let thread = paths.threads.iter().find(|(_, root)| *root == id);
            return match thread.and_then(|(tid, _)| *tid) {
                Some(tid) => self.thread_name(tid),
                None => "all threads".to_owned(),
            };
        }
        match path.function {
            Some(id) => match self.function(id) {
                Some(function) => function.function.clone(),
                None => format!("function {id}"),
            },
            None => "(more paths)".to_owned(),
        }
    }

    /// Returns a thread's name and id.
    #[must_use]
    pub fn thread_name(&self, tid: u32) -> String {
        let thread = self.threads.iter().find(|thread| thread.tid == tid);
        match thread.and_then(|thread| thread.name.as_deref()) {
            Some(name) => format!("{name} ({tid})"),
            None if tid == 0 => "unknown thread".to_owned(),
            None => format!("thread {tid}"),
        }
    }

    /// Returns the paths of all threads together, or by thread.
    #[must_use]
    pub fn shown(&self, by_thread: bool) -> Paths {
        match by_thread {
            true => self.paths.clone(),
            false => self.paths.together(),
        }
    }

    /// Returns the times of the functions of one thread.
    #[must_use]
    pub fn of_thread(&self, tid: u32) -> Vec<FunctionTime> {
        let mut all: FxHashMap<u32, FunctionTime> = FxHashMap::default();
        let mut thread_of = vec![0; self.paths.all.len()];
        for (tid, id) in &self.paths.threads {
            thread_of[*id] = tid.unwrap_or(0);
        }
        for (id, path) in self.paths.all.iter().enumerate() {
            if let Some(parent) = path.parent {
                thread_of[id] = thread_of[parent];
            }
            let function = path.function.and_then(|id| self.function(id));
            let Some(function) = function.filter(|_| thread_of[id] == tid) else {
                continue;
            };
            let time = all
                .entry(function.function_id)
                .or_insert_with(|| FunctionTime {
                    calls: 0,
                    self_ns: 0,
                    self_most_ns: 0,
                    inclusive_ns: 0,
                    raw_self_ns: 0,
                    raw_inclusive_ns: 0,
                    ..function.clone()
                });
            time.calls += path.calls;
            time.self_ns += path.times.self_ns;
            time.self_most_ns += path.times.self_most_ns;
            time.raw_self_ns += path.raw.self_ns;
            if path.is_outermost {
                time.inclusive_ns += path.times.inclusive_ns;
                time.raw_inclusive_ns += path.raw.inclusive_ns;
            }
        }
        ranked(all.into_values().collect())
    }
}

/// Sets the shares, and sorts: the most time first.
fn ranked(mut all: Vec<FunctionTime>) -> Vec<FunctionTime> {
    let sum: u64 = all.iter().map(|function| function.self_ns).sum();
    for function in &mut all {
        function.share = function.self_ns as f64 / sum.max(1) as f64;
    }
    all.sort_by_key(|f| {
        let most = (u64::MAX - f.self_ns, u64::MAX - f.raw_self_ns);
        (most, f.function_id)
    });
    all
}

/// The calls of a function as they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Its number.
    pub function: u32,
    /// How many there were.
    pub calls: u64,
    /// How many recorded calls they made.
    pub made: u64,
    /// Their time without these, in ns; what was nobody's is left out.
    pub self_ns: i64,
}

impl Source {
    /// Adds up the calls.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn report(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report> {
        self.walked(progress, |walk, costs, away, waited_ns| {
            let paths = Paths::of(&walk.tree, costs);
            let functions = self.functions(walk, costs);
            let places = functions.iter().enumerate();
            let mut threads = threads(&paths);
            for thread in &mut threads {
                thread.processor_wait_ns = self.processor_wait_ns(thread.tid);
            }
            let unknown = threads.iter().filter(|t| t.processor_wait_ns.is_none());
            Report {
                only_entries: self.only_entries,
                cost: CostNote {
                    inside_ns: costs.inside_ps() as f64 / 1e3,
                    outside_ns: costs.outside_ps() as f64 / 1e3,
                    held_ns: at_least_0(away.held_ns()),
                    processor_wait_ns: at_least_0(waited_ns),
                    threads_with_unknown_waits: unknown.count() as u64,
                    folded_calls: walk.tree.folded,
                },
                places: places.map(|(place, f)| (f.function_id, place)).collect(),
                functions,
                edges: edges(walk, costs),
                threads,
                paths,
            }
        })
    }

    /// Adds up the calls of each function, and finds out what recording one cost, and whether it is known how long each thread
    /// waited for a processor.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn spent(&self) -> Result<(Vec<Spent>, Costs, bool)> {
        self.walked(&mut |_, _| (), |walk, costs, _, _| {
            let mut threads = walk.tree.threads().iter();
            let knows_waits = threads.all(|(tid, _)| self.processor_wait_ns(*tid).is_some());
            (spent(walk), *costs, knows_waits)
        })
    }

    fn walked<T>(
        &self,
        progress: &mut dyn FnMut(u64, u64),
        then: impl FnOnce(&Walk<'_>, &Costs, &Away, i64) -> T,
    ) -> Result<T> {
        let groups = Groups::open(&self.calls)?;
        let away = self.away()?;
        let (mut walk, mut shortest) = (Walk::new(&away, MOST_PATHS), Shortest::default());
        let (mut done, total) = (0, groups.calls());
        let read = |index: usize| -> Result<(Rows, Shortest)> {
            let rows = groups.read(index)?;
            let shortest = Shortest::of(&rows);
            Ok((rows, shortest))
        };
        groups.backwards_by(read, |(rows, short)| {
            walk.add(&rows);
            shortest.add(&short);
            done += rows.len() as u64;
            progress(done, total);
            Ok(())
        })?;
        walk.finish();
        let costs = shortest.costs(self.is_plain());
        let by_thread = self.definitions.processor_waits();
        let waited_ns = waits::take_out(&mut walk, by_thread, &away, &costs);
        Ok(then(&walk, &costs, &away, waited_ns))
    }

    fn functions(&self, walk: &Walk<'_>, costs: &Costs) -> Vec<FunctionTime> {
        let all = spent(walk).into_iter().map(|spent| {
            let id = spent.function;
            let total = &walk.functions[id as usize];
            let cost_ps = spent.made * costs.outside_ps() + spent.calls * costs.inside_ps();
            let definition = self.definitions.function(id as usize);
            let module = definition.and_then(|f| self.definitions.module(f.module));
            let own = Costs::left(spent.self_ns, cost_ps, spent.calls);
            FunctionTime {
                function: self.function_name(id),
                module: module.map(|module| module.name().to_owned()),
                file: definition.and_then(|f| f.file.clone()),
                line: definition.and_then(|f| f.line),
                function_id: id,
                calls: total.calls,
                self_ns: own.ns,
                self_most_ns: own.most_ns + at_least_0(total.unsure_ns),
                waits_unsure_ns: at_least_0(total.unsure_ns),
                inclusive_ns: total.inclusive.corrected(costs).max(own.ns),
                share: 0.0,
                raw_self_ns: at_least_0(total.self_ns),
                raw_inclusive_ns: at_least_0(total.inclusive.ns),
            }
        });
        ranked(all.collect())
    }
}

fn spent(walk: &Walk<'_>) -> Vec<Spent> {
    let mut made = vec![0; walk.functions.len()];
    for edge in walk.edges.iter().filter(|edge| edge.caller != NONE) {
        made[edge.caller as usize] += edge.calls;
    }
    let all = walk.functions.iter().zip(made).zip(0u32..);
    let called = all.filter(|((total, _), _)| total.calls > 0);
    let spent = called.map(|((total, made), function)| Spent {
        function,
        calls: total.calls,
        made,
        self_ns: total.self_ns - total.away_ns,
    });
    spent.collect()
}

fn edges(walk: &Walk<'_>, costs: &Costs) -> Vec<EdgeTime> {
    let mut all: Vec<EdgeTime> = walk
        .edges
        .iter()
        .map(|edge| EdgeTime {
            caller: (edge.caller != NONE).then_some(edge.caller),
            callee: edge.callee,
            calls: edge.calls,
            inclusive_ns: edge.inclusive.corrected(costs),
            raw_inclusive_ns: at_least_0(edge.inclusive.ns),
        })
        .collect();
    all.sort_by_key(|edge| (u64::MAX - edge.inclusive_ns, edge.callee, edge.caller));
    all
}

fn threads(paths: &Paths) -> Vec<ThreadTime> {
    let mut calls = vec![0; paths.all.len()];
    for (id, path) in paths.all.iter().enumerate().rev() {
        calls[id] += path.calls;
        if let Some(parent) = path.parent {
            calls[parent] += calls[id];
        }
    }
    let of = paths.threads.iter().map(|(tid, id)| ThreadTime {
        tid: tid.unwrap_or(0),
        name: None,
        calls: calls[*id],
        self_ns: paths.all[*id].times.inclusive_ns,
        raw_self_ns: paths.all[*id].raw.inclusive_ns,
        processor_wait_ns: None,
    });
    let mut threads: Vec<ThreadTime> = of.collect();
    threads.sort_by_key(|thread| (u64::MAX - thread.self_ns, thread.tid));
    threads
}

impl Inclusive {
    fn corrected(&self, costs: &Costs) -> u64 {
        let cost_ps = self.calls * costs.inside_ps() + self.made * costs.outside_ps();
        Costs::left(self.ns - self.away_ns, cost_ps, self.calls).ns
    }
}

fn at_least_0(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}
