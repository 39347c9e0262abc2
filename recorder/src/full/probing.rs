//! Logpoints and logged writes that were given for a recording of every instruction. Nothing is set in the program: when it has
//! ended, it is run again, and what they find becomes events as in other recordings.

use std::{
    cell::Cell,
    iter::Peekable,
    path::Path,
    sync::Arc,
    thread::{Scope, ScopedJoinHandle},
};

use crossbeam::channel::{Receiver, bounded};
use debuginfo::{AddressSpace, backtrace};
use exact::Replay;
use expr::{Context, Expression};
use store::control::Control;

use super::{
    modules::{self, FoundModule},
    thread::Thread,
    writes,
};
use crate::live::{
    Action, Condition, FirstProbes, Location, Message, ProbePlace, ProbeSpec, ProbeState,
    ProbeView,
    guard::guarded,
    journal::described,
    probes::{
        evaluate::{Filled, part_with_few_frames, with_few_frames},
        places::in_code,
    },
};

/// Events that a run may be ahead of what is written.
const AHEAD: usize = 1 << 10;

/// What was given, and where it is in the program.
#[derive(Default)]
pub(super) struct Probing {
    specs: Vec<ProbeSpec>,
    /// The modules over time.
    stretches: Vec<Stretch>,
    /// For each probe, why it has no place, if it has none.
    pub unplaced: Vec<Option<String>>,
}

/// A time in which the modules stay the same.
pub(super) struct Stretch {
    /// When it begins.
    pub from: u64,
    pub space: Arc<AddressSpace>,
    /// The places of each probe.
    places: Vec<Vec<ProbePlace>>,
}

/// Runs that answer probes.
pub(super) struct Answers<'t> {
    /// Their events, each of them in the order of time.
    pub events: Vec<Receiver<Control>>,
    runs: Vec<ScopedJoinHandle<'t, Answered>>,
}

/// How a run has ended.
#[derive(Default)]
struct Answered {
    /// Why the rest is not known.
    problem: Option<String>,
    /// The probe that has no place, and why.
    unplaced: Option<(usize, String)>,
}

impl Probing {
    /// Finds the places of probes among the modules of a program.
    pub fn new(first: &FirstProbes, modules: &[FoundModule]) -> Probing {
        if first.specs.is_empty() {
            return Probing::default();
        }
        let changes = modules
            .iter()
            .flat_map(|module| [Some(module.from), module.until]);
        let mut times: Vec<u64> = changes.flatten().chain([0]).collect();
        times.sort_unstable();
        times.dedup();
        let stretches = times.into_iter().map(|from| {
            let space = modules::space(modules, from);
            // A file or line that no module has now, one that is loaded later may have.
            let places = first.specs.iter();
            let places = places.map(|spec| in_code(&space, &spec.location).unwrap_or_default());
            Stretch {
                from,
                places: places.collect(),
                space: Arc::new(space),
            }
        });
        let stretches: Vec<Stretch> = stretches.collect();
        let unplaced = first.specs.iter().enumerate().map(|(index, spec)| {
            let has_place = |stretch: &Stretch| !stretch.places[index].is_empty();
            let is_logged = matches!(spec.location, Location::Logged(_));
            if is_logged || stretches.iter().any(has_place) {
                return None;
            }
            let why = stretches.iter().rev().find_map(|stretch| {
                let checked = (first.check)(&stretch.space, spec);
                checked.err().map(|error| error.one_line())
            });
            Some(why.unwrap_or_else(|| format!("no module has {}", spec.location)))
        });
        Probing {
            unplaced: unplaced.collect(),
            specs: first.specs.clone(),
            stretches,
        }
    }

    /// The events of the probes themselves: what they are, and when they get places.
    pub fn controls(&self) -> Vec<Control> {
        let mut controls = Vec::new();
        for (index, spec) in self.specs.iter().enumerate() {
            let mut last: Option<&[ProbePlace]> = None;
            for stretch in &self.stretches {
                let places = stretch.places[index].as_slice();
                if last == Some(places) {
                    continue;
                }
                last = Some(places);
                let is_logged = matches!(spec.location, Location::Logged(_));
                let view = ProbeView {
                    id: number(index),
                    spec: spec.clone(),
                    state: match places.is_empty() && !is_logged {
                        true => ProbeState::Pending,
                        false => ProbeState::Bound,
                    },
                    places: places.to_vec(),
                    hits: 0,
                    passed_until: 0,
                    message: None,
                    existed: false,
                    failed: None,
                };
                let probe = described(stretch.from, &stretch.space, &view);
                controls.push(Control::Probe(probe));
            }
        }
        controls
    }

    /// The modules at a time, and when they change next.
    pub fn modules_at(&self, position: u64) -> (&Arc<AddressSpace>, Option<u64>) {
        let after = self
            .stretches
            .partition_point(|stretch| stretch.from <= position);
        let next = self.stretches.get(after).map(|stretch| stretch.from);
        (&self.stretches[after.saturating_sub(1)].space, next)
    }

    /// Begins to run the program in `folder` again, up to `end`: once for all logpoints, and once for each logged place.
    pub fn answer<'t, 'e>(
        &'t self,
        threads: &'t Scope<'t, 'e>,
        folder: &'t Path,
        end: u64,
    ) -> Answers<'t> {
        let mut answers = Answers {
            events: Vec::new(),
            runs: Vec::new(),
        };
        let mut begin = |run: Run<'t>| {
            let (events, received) = bounded(AHEAD);
            answers.events.push(received);
            answers.runs.push(threads.spawn(move || {
                let last = Cell::new(0);
                let mut send = |event: Control| {
                    last.set(event.ticks().unwrap_or(last.get()));
                    events.send(event).is_ok()
                };
                let done = guarded(|| run(&mut send));
                let problem = match done {
                    Ok(Ok(unplaced)) => {
                        return Answered {
                            problem: None,
                            unplaced,
                        };
                    }
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.one_line(),
                };
                let problem = format!("not all logpoints and logged writes are known: {problem}");
                send(Control::Warning {
                    ticks: last.get(),
                    message: problem.clone(),
                });
                Answered {
                    problem: Some(problem),
                    unplaced: None,
                }
            }));
        };
        if self
            .stretches
            .iter()
            .any(|s| s.places.iter().any(|p| !p.is_empty()))
        {
            begin(Box::new(move |send| {
                self.pass(folder, end, send).map(|()| None)
            }));
        }
        for (index, spec) in self.specs.iter().enumerate() {
            if let Location::Logged(place) = &spec.location {
                begin(Box::new(move |send| {
                    let unplaced = writes::log(self, (number(index), place), (folder, end), send)?;
                    Ok(unplaced.map(|why| (index, why)))
                }));
            }
        }
        answers
    }

    /// Runs past all logpoints.
    fn pass(&self, folder: &Path, end: u64, send: Sending<'_>) -> exact::Result<()> {
        let places = self.stretches.iter().flat_map(|stretch| &stretch.places);
        let mut addresses: Vec<u64> = places.flatten().map(|place| place.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut replay = Replay::open(folder)?;
        let mut reached = vec![0; self.specs.len()];
        // A run looks only after its first instruction.
        if !self.arrive(&replay, &mut reached, send) {
            return Ok(());
        }
        let arrived = &mut |replay: &Replay| {
            replay.position() >= end || !self.arrive(replay, &mut reached, send)
        };
        replay.next_stop(&addresses, end, arrived).map(drop)
    }

    /// A thread is at some address; returns whether to go on.
    fn arrive(&self, replay: &Replay, reached: &mut [u64], send: Sending<'_>) -> bool {
        let Some(mut thread) = Thread::running(replay) else {
            return true;
        };
        let position = replay.position();
        let after = self
            .stretches
            .partition_point(|stretch| stretch.from <= position);
        let stretch = &self.stretches[after.saturating_sub(1)];
        let here = thread.address();
        for (index, spec) in self.specs.iter().enumerate() {
            let mut places = stretch.places[index].iter();
            let (Some(place), Action::Log(message)) =
                (places.find(|place| place.address == here), &spec.action)
            else {
                continue;
            };
            reached[index] += 1;
            thread.hit_count = Some(reached[index]);
            thread.calls_to_come = place.calls_to_come;
            let event = event(spec, message, &stretch.space, &thread);
            let event = event.map(|said| said.control(position, replay.thread(), number(index)));
            if let Some(event) = event
                && !send(event)
            {
                return false;
            }
        }
        true
    }
}

impl Answers<'_> {
    /// Waits for the runs. Returns why something is not known, and which logged places were not found.
    pub fn end(self) -> (Vec<String>, Vec<(usize, String)>) {
        let mut problems = Vec::new();
        let mut unplaced = Vec::new();
        for run in self.runs {
            let answered = run
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            problems.extend(answered.problem);
            unplaced.extend(answered.unplaced);
        }
        (problems, unplaced)
    }
}

/// Events from several sources, each of which has them in the order of time, in one order. Of events of one time, those of
/// the first source come first.
pub(super) struct InOrder<'c> {
    sources: Vec<Peekable<Box<dyn Iterator<Item = Control> + 'c>>>,
}

impl<'c> InOrder<'c> {
    /// Begins with the first events of all.
    pub fn new(first: Vec<Control>, others: Vec<Receiver<Control>>) -> InOrder<'c> {
        let others = others
            .into_iter()
            .map(|events| -> Box<dyn Iterator<Item = Control>> { Box::new(events.into_iter()) });
        let all = std::iter::once(Box::new(first.into_iter()) as Box<dyn Iterator<Item = Control>>);
        InOrder {
            sources: all.chain(others).map(Iterator::peekable).collect(),
        }
    }
}

impl Iterator for InOrder<'_> {
    type Item = Control;

    fn next(&mut self) -> Option<Control> {
        // A definition has no time: it is due at once.
        let time = |event: &Control| event.ticks().unwrap_or(0);
        let heads = self.sources.iter_mut();
        let heads = heads.filter_map(|source| Some((time(source.peek()?), source)));
        let (_, first) = heads.min_by_key(|(time, _)| *time)?;
        first.next()
    }
}

/// Sends an event; returns whether more are wanted.
pub(super) type Sending<'s> = &'s mut dyn FnMut(Control) -> bool;

type Run<'t> = Box<dyn FnOnce(Sending<'_>) -> exact::Result<Option<(usize, String)>> + Send + 't>;

/// What a logpoint leaves.
enum Said {
    Message(Filled),
    /// The condition, and why it could not be evaluated.
    Failed(String, String),
}

impl Said {
    fn control(self, ticks: u64, tid: i32, probe: u32) -> Control {
        let tid = tid.cast_unsigned();
        match self {
            Said::Message(Filled {
                text,
                values,
                error,
            }) => Control::Logpoint {
                ticks,
                tid,
                probe,
                message: text,
                values,
                // All of it is known.
                passed: None,
                error,
            },
            Said::Failed(condition, error) => Control::ConditionError {
                ticks,
                tid,
                probe,
                condition,
                error,
            },
        }
    }
}

/// What a logpoint leaves where a thread is; `None`: its condition is false.
fn event(
    spec: &ProbeSpec,
    message: &Message,
    space: &AddressSpace,
    thread: &Thread<'_>,
) -> Option<Said> {
    let holds = match &spec.condition {
        None => Ok(true),
        Some(Condition::Own(condition)) => holds(condition, space, thread),
        Some(Condition::JavaScript(_)) => Err("it is JavaScript".to_owned()),
    };
    match holds {
        Ok(true) => {}
        Ok(false) => return None,
        Err(why) => return Some(Said::Failed(spec.condition_text().unwrap_or_default(), why)),
    }
    let template = message.template();
    Some(Said::Message(Filled::of(template, |part| {
        part_with_few_frames(part, |frames, work| in_frames(space, thread, frames, work))
    })))
}

fn holds(
    condition: &Expression,
    space: &AddressSpace,
    thread: &Thread<'_>,
) -> Result<bool, String> {
    with_few_frames(condition, |frames, work| {
        in_frames(space, thread, frames, work)
    })
}

fn in_frames<T>(
    space: &AddressSpace,
    thread: &Thread<'_>,
    frames: usize,
    work: impl FnOnce(&Context<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let done = guarded(|| {
        let frames = backtrace(space, thread, frames).frames;
        work(&Context::new(space, thread, &frames, 0))
    });
    done.map_err(|error| error.one_line())?
}

/// Probes have the numbers that they get in other recordings.
fn number(index: usize) -> u32 {
    index as u32 + 1
}
