//! Logged writes: each write to a place becomes an event, and no thread stops for the user.
//!
//! The processor's watchpoints report a write after it happened. A place is armed once its variable exists: a module that is loaded
//! later may have it. What pointers lead to is found anew whenever one of them is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use store::control::{ByteBuf, Control, LoggedWrite};

use super::{
    logged_calls::OpenCall,
    logged_place::{self, Found, Globals, Place, Unplaced},
    writer::Writers,
};
use crate::{
    clock,
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Location, LoggedPlace, ProbeId, ProbeState, Tid},
        tracee::event::Event,
    },
};

/// What a watched place is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Its writes are logged.
    Target,
    /// It leads to the target, which is another one once it is written.
    Pointer,
    /// Its writes are logged as long as the call lasts.
    InCall(OpenCall),
}

/// A place whose writes are logged or followed.
#[derive(Debug)]
pub(super) struct Logged {
    pub number: u64,
    pub probe: ProbeId,
    /// What the person wrote.
    target: String,
    place: Place,
    pub role: Role,
    /// The mapped file that it lies in, if any.
    module: Option<Range<u64>>,
    /// Its bytes when last read; `None`: there was no memory yet.
    last: Option<Vec<u8>>,
    /// Threads whose write is still to be handled, and may already be in `last`.
    seen_early: BTreeSet<Tid>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct WriteLog {
    pub(super) places: Vec<Logged>,
    newest: u64,
    /// Where calls return whose variables are logged, and for which probes.
    pub(super) returns: BTreeMap<u64, BTreeSet<ProbeId>>,
    pub writers: Writers,
}

impl WriteLog {
    /// Forgets cached code, because code was loaded or unloaded.
    pub fn forget_code(&mut self) {
        self.writers = Writers::default();
    }
}

impl Tracer {
    /// Finds the memory of a place. `Ok(None)`: no loaded module has such a variable.
    pub fn find_logged(&self, place: &LoggedPlace) -> LiveResult<Option<Found>> {
        let memory = &self.tracee.memory;
        let machine = Globals(|address, bytes: &mut [u8]| memory.read(address, bytes));
        match logged_place::find(place, &self.space_now(), &machine) {
            Ok(found) => Ok(Some(found)),
            Err(Unplaced::Missing(_) | Unplaced::InCalls(_)) => Ok(None),
            Err(Unplaced::Refused(what) | Unplaced::Unreachable(what)) => {
                Err(LiveError::Evaluate(what))
            }
        }
    }

    /// Begins to log the writes to a place: all that it needs is watched, or nothing.
    pub fn arm_logged(&mut self, probe: ProbeId, target: &str, found: &Found) -> LiveResult<()> {
        let armed = match found {
            Found::Fixed(place) => self.watch_logged(probe, target, *place, Role::Target),
            Found::Followed {
                pointers,
                target: led,
            } => {
                let mut all = pointers.iter().map(|pointer| (*pointer, Role::Pointer));
                let armed = all.try_for_each(|(place, role)| {
                    self.watch_logged(probe, target, place, role)
                });
                armed.and_then(|()| match led {
                    Some(place) => self.watch_logged(probe, target, *place, Role::Target),
                    None => Ok(()),
                })
            }
            // Each call arms its own.
            Found::InCalls { .. } => Ok(()),
        };
        if armed.is_err() {
            self.disarm_logged(probe);
        }
        armed
    }

    /// Watches one place for a probe.
    pub(super) fn watch_logged(
        &mut self,
        probe: ProbeId,
        target: &str,
        place: Place,
        role: Role,
    ) -> LiveResult<()> {
        let last = self.bytes_at(place);
        self.probes.write_log.newest += 1;
        let number = self.probes.write_log.newest;
        self.watch_to_log((probe, number), target, place)?;
        let space = self.space_now();
        let module = space.at(place.address).map(|module| module.range.clone());
        self.probes.write_log.places.push(Logged {
            number,
            probe,
            target: target.to_owned(),
            place,
            role,
            module,
            last,
            seen_early: BTreeSet::new(),
        });
        Ok(())
    }

    /// A pointer was written: watches what it leads to now.
    fn follow_logged(&mut self, probe: ProbeId) {
        let known = self.probes.by_id.get(&probe);
        let Some(Location::Logged(place)) = known.map(|known| &known.view.spec.location) else {
            return;
        };
        let place = place.clone();
        self.unwatch_logged(probe);
        let found = self.find_logged(&place);
        let armed = found.and_then(|found| match found {
            Some(found) => self.arm_logged(probe, &place.to_string(), &found),
            None => Ok(()),
        });
        if let Err(error) = armed {
            let why = error.one_line();
            self.warn_of_logged(probe, &format!("no longer logged: {why}"));
        }
    }

    /// Reads the bytes of a place; `None`: there is no memory.
    fn bytes_at(&self, place: Place) -> Option<Vec<u8>> {
        let mut bytes = vec![0; place.len as usize];
        let read = self.tracee.memory.read(place.address, &mut bytes);
        read.is_ok().then_some(bytes)
    }

    /// Stops logging the writes of a probe.
    pub fn disarm_logged(&mut self, probe: ProbeId) {
        self.unwatch_logged(probe);
        self.forget_returns(probe);
    }

    fn unwatch_logged(&mut self, probe: ProbeId) {
        self.remove_watch(probe);
        let places = &mut self.probes.write_log.places;
        places.retain(|logged| logged.probe != probe);
    }

    /// The program has become another one.
    pub fn forget_logged(&mut self) {
        let all = self.probes.write_log.places.iter();
        let all: Vec<ProbeId> = all.map(|logged| logged.probe).collect();
        for probe in all {
            self.unwatch_logged(probe);
        }
        // The traps are gone with the old program.
        self.probes.write_log.returns.clear();
        self.probes.write_log.forget_code();
    }

    /// Arms probes whose variable exists now; those in a module that is gone wait again.
    pub fn settle_logged(&mut self) {
        self.probes.write_log.forget_code();
        let space = self.space_now();
        let is_gone = |logged: &&Logged| {
            let module = logged.module.as_ref();
            module.is_some_and(|range| {
                let now = space.at(logged.place.address);
                now.is_none_or(|now| now.range != *range)
            })
        };
        let gone = self.probes.write_log.places.iter().filter(is_gone);
        let gone: Vec<ProbeId> = gone.map(|logged| logged.probe).collect();
        for probe in gone {
            self.disarm_logged(probe);
            self.set_logged_state(probe, ProbeState::Pending, None);
        }
        let waits = self
            .probes
            .by_id
            .values()
            .filter(|probe| probe.is_enabled && probe.view.state == ProbeState::Pending);
        let waiting: Vec<(ProbeId, LoggedPlace)> = waits
            .filter_map(|probe| match &probe.view.spec.location {
                Location::Logged(place) => Some((probe.view.id, place.clone())),
                _ => None,
            })
            .collect();
        for (probe, place) in waiting {
            self.try_to_log(probe, &place);
        }
    }

    /// Arms a probe if its place exists now; its message has the reason if that fails.
    fn try_to_log(&mut self, probe: ProbeId, place: &LoggedPlace) {
        let found = self.find_logged(place);
        let armed = found.and_then(|found| match found {
            Some(found) => {
                let armed = self.arm_logged(probe, &place.to_string(), &found);
                armed.map(|()| Some(found))
            }
            None => Ok(None),
        });
        match armed {
            Ok(Some(found)) => {
                if let Found::InCalls { .. } = found {
                    self.bind_calls(probe, place);
                }
                self.set_logged_state(probe, ProbeState::Bound, Some(found.told()));
            }
            Ok(None) => {}
            Err(error) => {
                let why = error.one_line();
                self.warn_of_logged(probe, &format!("not logged: {why}"));
                let known = self.probes.by_id.get_mut(&probe);
                if let Some(known) = known {
                    known.view.state = ProbeState::Pending;
                }
            }
        }
    }

    /// Warns, once, that writes of a probe are missing.
    pub(super) fn warn_of_logged(&mut self, id: ProbeId, why: &str) {
        let Some(probe) = self.probes.by_id.get_mut(&id) else {
            return;
        };
        if probe.view.message.as_deref() == Some(why) {
            return;
        }
        probe.view.message = Some(why.to_owned());
        let view = probe.view.clone();
        self.journal.send(Control::Warning {
            ticks: clock::ticks(),
            message: format!("the writes of {} are {why}", view.spec.location),
        });
        self.journal.probe(self, &view);
    }

    fn set_logged_state(&mut self, id: ProbeId, state: ProbeState, message: Option<String>) {
        if let Some(probe) = self.probes.by_id.get_mut(&id) {
            probe.view.state = state;
            probe.view.message = message;
            let view = probe.view.clone();
            self.journal.probe(self, &view);
        }
    }

    /// A logged place was written to from outside: that is not a write of the program.
    pub fn look_at_logged(&mut self) {
        for index in 0..self.probes.write_log.places.len() {
            let now = self.bytes_at(self.probes.write_log.places[index].place);
            self.probes.write_log.places[index].last = now;
        }
    }

    /// Debug registers have fired in a thread: logs its writes to logged places.
    pub fn log_writes(&mut self, tid: Tid, bits: u64) {
        let fired: Vec<(u64, u64)> = self
            .probes
            .write_log
            .places
            .iter()
            .map(|logged| {
                let registers = self.probes.watchpoints.of_logged(logged.number);
                (logged.number, registers)
            })
            .filter(|(_, registers)| bits & registers != 0)
            .collect();
        for (number, registers) in fired {
            let places = &self.probes.write_log.places;
            // A pointer that was written before it has ended it.
            let Some(index) = places.iter().position(|logged| logged.number == number) else {
                continue;
            };
            let (probe, role) = (places[index].probe, places[index].role.clone());
            match role {
                Role::Pointer => self.follow_logged(probe),
                Role::InCall(call) if !self.is_open(tid, &call) => self.end_logged(number),
                Role::Target | Role::InCall(_) => self.log_write(tid, index, registers),
            }
        }
    }

    fn log_write(&mut self, tid: Tid, index: usize, registers: u64) {
        let others = self.others_that_accessed(tid, registers);
        let place = self.probes.write_log.places[index].place;
        let Some(now) = self.bytes_at(place) else {
            return;
        };
        let logged = &mut self.probes.write_log.places[index];
        let old = logged.last.replace(now.clone());
        // Its write may be in the bytes that were read for another thread.
        let was_read = logged.seen_early.remove(&tid);
        logged.seen_early.extend(&others);
        let (probe, target) = (logged.probe, logged.target.clone());
        let shared = was_read || !others.is_empty();
        let Some(writer) = self.writer(tid, place) else {
            if old.as_ref() == Some(&now) && !was_read {
                return;
            }
            // The writer is unknown, but the value has changed.
            return self.send_logged(tid, (probe, target), place, (old, now, shared), None);
        };
        self.send_logged(
            tid,
            (probe, target),
            place,
            (old, now, shared),
            Some(writer),
        );
    }

    fn send_logged(
        &mut self,
        tid: Tid,
        (probe, target): (ProbeId, String),
        place: Place,
        (old, new, shared): (Option<Vec<u8>>, Vec<u8>, bool),
        writer: Option<Arc<super::writer::Writer>>,
    ) {
        if let Some(probe) = self.probes.by_id.get_mut(&probe) {
            probe.view.hits += 1;
        }
        let writer = writer.unwrap_or_default();
        let passed = self.passed(tid).map(Box::new);
        self.journal
            .send_one_of_many(Control::LoggedWrite(Box::new(LoggedWrite {
                ticks: clock::ticks(),
                tid: tid as u32,
                probe,
                target,
                addr: place.address,
                // Nothing: it is not known.
                old: ByteBuf::from(old.unwrap_or_default()),
                new: ByteBuf::from(new),
                pc: writer.pc,
                function: writer.function.clone(),
                file: writer.file.clone(),
                line: writer.line,
                via: writer.via.clone(),
                shared,
                passed,
            })));
    }

    /// Returns the other threads that have also accessed one of these places, and are still to be handled.
    pub fn others_that_accessed(&self, tid: Tid, registers: u64) -> Vec<Tid> {
        let accessed = |event: &Option<Event>| matches!(event, Some(Event::Watch { bits }) if bits & registers != 0);
        let threads = self.tracee.threads.iter();
        threads
            .filter(|(other, thread)| {
                **other != tid && thread.halt().is_some_and(|halt| accessed(&halt.pending))
            })
            .map(|(other, _)| *other)
            .collect()
    }
}
