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
    logged_place::{self, Found, Globals, LoggedRange, Unplaced},
    logged_variable::CallVariable,
    writer::{Writer, Writers},
};
use crate::{
    clock,
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Location, LoggedPlace, ProbeId, ProbeState, Tid},
        probes::Probes,
        tracee::{Tracee, event::Event},
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
    place: LoggedRange,
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
    /// The variables of functions, by probe.
    pub(super) variables: BTreeMap<ProbeId, Arc<[CallVariable]>>,
    /// Where calls return whose variables are logged, and for which probes.
    pub(super) returns: BTreeMap<u64, BTreeSet<ProbeId>>,
    /// Calls that seemed to be over, but were not seen to return.
    pub(super) presumed_over: BTreeSet<OpenCall>,
    /// What was said of missing writes.
    told: BTreeSet<(ProbeId, String)>,
    pub writers: Writers,
}

impl WriteLog {
    /// Forgets cached code, because code was loaded or unloaded.
    pub fn forget_code(&mut self) {
        self.writers = Writers::default();
    }
}

impl Tracee {
    /// Finds the memory of a place. `Ok(None)`: no loaded module has such a variable.
    pub fn find_logged(&self, place: &LoggedPlace) -> LiveResult<Option<Found>> {
        let memory = &self.memory;
        let machine = Globals(|address, bytes: &mut [u8]| memory.read(address, bytes));
        match logged_place::find(place, &self.space_now(), &machine) {
            Ok(found) => Ok(Some(found)),
            Err(Unplaced::Missing(_) | Unplaced::InCalls { .. }) => Ok(None),
            Err(Unplaced::Refused(what) | Unplaced::Unreachable(what)) => {
                Err(LiveError::Evaluate(what))
            }
        }
    }

    /// Reads the bytes of a place; `None`: there is no memory.
    fn bytes_at(&self, place: LoggedRange) -> Option<Vec<u8>> {
        let mut bytes = vec![0; place.len as usize];
        let read = self.memory.read(place.address, &mut bytes);
        read.is_ok().then_some(bytes)
    }

    /// Returns the other threads that have also accessed one of these places, and are still to be handled.
    pub fn others_that_accessed(&self, tid: Tid, registers: u64) -> Vec<Tid> {
        let accessed = |event: &Option<Event>| matches!(event, Some(Event::Watch { bits }) if bits & registers != 0);
        let threads = self.threads.iter();
        threads
            .filter(|(other, thread)| {
                **other != tid && thread.halt().is_some_and(|halt| accessed(&halt.pending))
            })
            .map(|(other, _)| *other)
            .collect()
    }
}

impl Tracer {
    /// Finds a place and begins to log its writes: all that it needs is watched, or nothing. `None`: there is no such variable yet.
    ///
    /// No thread runs meanwhile, so that no pointer changes unseen.
    pub fn begin_logging(
        &mut self,
        probe: ProbeId,
        place: &LoggedPlace,
    ) -> LiveResult<Option<Found>> {
        let was_holding = self.tracee.is_held;
        // A thread that does not stop may change a pointer; its next write shows it.
        let _ = self.hold();
        let found = self.tracee.find_logged(place);
        let armed = found.and_then(|found| match found {
            Some(found) => {
                self.arm_logged(probe, &place.to_string(), &found)?;
                Ok(Some(found))
            }
            None => Ok(None),
        });
        if !was_holding {
            self.release();
        }
        armed
    }

    fn arm_logged(&mut self, probe: ProbeId, target: &str, found: &Found) -> LiveResult<()> {
        let armed = match found {
            Found::Fixed(place) => self.watch_logged(probe, target, *place, Role::Target),
            Found::Followed {
                pointers,
                target: led,
            } => {
                let mut all = pointers.iter().map(|pointer| (*pointer, Role::Pointer));
                let armed =
                    all.try_for_each(|(place, role)| self.watch_logged(probe, target, place, role));
                armed.and_then(|()| match led {
                    Some(place) => self.watch_logged(probe, target, *place, Role::Target),
                    None => Ok(()),
                })
            }
            // Each call arms its own.
            Found::InCalls { variables, .. } => {
                let known = &mut self.probes.write_log.variables;
                known.insert(probe, Arc::clone(variables));
                Ok(())
            }
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
        place: LoggedRange,
        role: Role,
    ) -> LiveResult<()> {
        let last = self.tracee.bytes_at(place);
        self.probes.write_log.newest += 1;
        let number = self.probes.write_log.newest;
        self.watch_to_log((probe, number), target, place)?;
        let space = self.tracee.space_now();
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
        match self.begin_logging(probe, &place) {
            Ok(Some(found)) => self.warn_of_lost_pointer(probe, &found),
            Ok(None) => {}
            Err(error) => {
                let why = error.one_line();
                self.warn_of_logged(probe, &format!("no longer logged: {why}"));
            }
        }
    }

    /// Stops logging the writes of a probe.
    pub fn disarm_logged(&mut self, probe: ProbeId) {
        self.unwatch_logged(probe);
        self.probes.write_log.variables.remove(&probe);
        self.forget_returns(probe);
    }

    fn unwatch_logged(&mut self, probe: ProbeId) {
        self.end_places(|logged| logged.probe == probe);
    }

    /// Ends watched places. Writes that threads have made to them and not reported yet are logged first.
    pub(super) fn end_places(&mut self, is_over: impl Fn(&Logged) -> bool) {
        let places = self.probes.write_log.places.iter();
        let ended = places.filter(|logged| is_over(logged));
        let ended: Vec<u64> = ended.map(|logged| logged.number).collect();
        if ended.is_empty() {
            return;
        }
        let was_holding = self.tracee.is_held;
        // What a thread reports that does not stop in time is ignored.
        let _ = self.hold();
        self.log_unreported(&ended);
        let places = &mut self.probes.write_log.places;
        places.retain(|logged| !ended.contains(&logged.number));
        self.remove_logged_watches(&ended);
        if !was_holding {
            self.release();
        }
    }

    /// Logs the writes to some places that held threads have made and not reported yet.
    fn log_unreported(&mut self, numbers: &[u64]) {
        let watchpoints = &self.probes.watchpoints;
        let registers = numbers.iter().map(|number| watchpoints.of_logged(*number));
        let registers = registers.fold(0, |all, one| all | one);
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            let Some(halt) = self.tracee.halt_mut(tid) else {
                continue;
            };
            let Some(Event::Watch { bits }) = halt.pending else {
                continue;
            };
            halt.pending = Some(Event::Watch {
                bits: bits & !registers,
            });
            for (number, registers) in self.probes.fired(bits & registers) {
                self.log_write(tid, number, registers);
            }
        }
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
        self.probes.write_log.variables.clear();
        self.probes.write_log.presumed_over.clear();
        self.probes.write_log.forget_code();
    }

    /// Arms probes whose variable exists now; those in a module that is gone wait again.
    pub fn settle_logged(&mut self) {
        self.probes.write_log.forget_code();
        let space = self.tracee.space_now();
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
        self.probes
            .forget_unmapped_returns(&mut self.breakpoints, &self.tracee, &space);
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
        let armed = self.begin_logging(probe, place);
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

    /// Debug registers have fired in a thread: logs its writes to logged places.
    pub fn log_writes(&mut self, tid: Tid, bits: u64) {
        for (number, registers) in self.probes.fired(bits) {
            let places = &self.probes.write_log.places;
            // A pointer that was written before it has ended it.
            let Some(logged) = places.iter().find(|logged| logged.number == number) else {
                continue;
            };
            let (probe, is_pointer) = (logged.probe, logged.role == Role::Pointer);
            if self.probes.has_lost_pointer(&self.tracee, tid, probe) && !is_pointer {
                self.warn_of_logged(
                    probe,
                    "not logged from where a pointer changed and no write to it was seen, as a system call makes, to the next write",
                );
                self.follow_logged(probe);
                continue;
            }
            self.log_write(tid, number, registers);
            if is_pointer {
                self.follow_logged(probe);
            }
        }
    }

    fn log_write(&mut self, tid: Tid, number: u64, registers: u64) {
        let others = self.tracee.others_that_accessed(tid, registers);
        let places = &self.probes.write_log.places;
        let Some(index) = places.iter().position(|logged| logged.number == number) else {
            return;
        };
        let place = places[index].place;
        let Some(now) = self.tracee.bytes_at(place) else {
            return;
        };
        let logged = &mut self.probes.write_log.places[index];
        let old = logged.last.replace(now.clone());
        // Its write may be in the bytes that were read for another thread.
        let was_read = logged.seen_early.remove(&tid);
        logged.seen_early.extend(&others);
        let (probe, role) = (logged.probe, logged.role.clone());
        let target = match role {
            Role::Pointer => format!("pointer of {}", logged.target),
            Role::Target | Role::InCall(_) => logged.target.clone(),
        };
        let shared = was_read || !others.is_empty();
        // The runtime uses the stack of a call that has just ended.
        let range = place.address..place.address.saturating_add(place.len);
        if self.breakpoints.is_own_access(&self.tracee, tid, &range) {
            return;
        }
        let writer = self
            .probes
            .writer(&self.breakpoints, &self.tracee, tid, place);
        // It wrote elsewhere, or may have written next to the place. But if the value has changed, only the writer is unknown.
        let is_elsewhere = writer
            .as_ref()
            .is_none_or(|writer| writer.pc.is_none() && place.is_covered_widely());
        if is_elsewhere && old.as_ref() == Some(&now) && !was_read {
            return;
        }
        if let Role::InCall(call) = role {
            let pc = writer.as_ref().and_then(|writer| writer.pc);
            if !self.is_of_call(tid, number, (&call, place), pc) {
                return;
            }
        }
        self.send_logged(tid, (probe, target), place, (old, now, shared), writer);
    }

    fn send_logged(
        &mut self,
        tid: Tid,
        (probe, target): (ProbeId, String),
        place: LoggedRange,
        (old, new, shared): (Option<Vec<u8>>, Vec<u8>, bool),
        writer: Option<Arc<Writer>>,
    ) {
        if let Some(probe) = self.probes.by_id.get_mut(&probe) {
            probe.view.hits += 1;
        }
        let writer = writer.unwrap_or_default();
        let passed = self.evaluator().passed(tid).map(Box::new);
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

    /// A pointer that is set but leads to no memory will not be looked at again if that memory is mapped later.
    fn warn_of_lost_pointer(&mut self, probe: ProbeId, found: &Found) {
        let Found::Followed {
            pointers,
            target: None,
        } = found
        else {
            return;
        };
        let last = pointers
            .last()
            .and_then(|pointer| self.tracee.bytes_at(*pointer));
        if last.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
            self.warn_of_logged(
                probe,
                "not logged while a pointer leads to memory that does not exist when it is set",
            );
        }
    }

    /// Warns, once, that writes of a probe are missing.
    pub(super) fn warn_of_logged(&mut self, id: ProbeId, why: &str) {
        let Some(probe) = self.probes.by_id.get_mut(&id) else {
            return;
        };
        if !self.probes.write_log.told.insert((id, why.to_owned())) {
            return;
        }
        probe.view.message = Some(why.to_owned());
        let view = probe.view.clone();
        self.journal.send(Control::Warning {
            ticks: clock::ticks(),
            message: format!("the writes of {} are {why}", view.spec.location),
        });
        self.journal.probe(&self.tracee.space_now(), &view);
    }

    fn set_logged_state(&mut self, id: ProbeId, state: ProbeState, message: Option<String>) {
        if let Some(probe) = self.probes.by_id.get_mut(&id) {
            probe.view.state = state;
            probe.view.message = message;
            let view = probe.view.clone();
            self.journal.probe(&self.tracee.space_now(), &view);
        }
    }
}

impl Probes {
    /// Whether a pointer that leads to a probe's target has changed without a write that a thread reports.
    fn has_lost_pointer(&self, tracee: &Tracee, tid: Tid, probe: ProbeId) -> bool {
        let places = self.write_log.places.iter();
        let mut pointers =
            places.filter(|logged| logged.probe == probe && logged.role == Role::Pointer);
        pointers.any(|pointer| {
            let registers = self.watchpoints.of_logged(pointer.number);
            pointer.last != tracee.bytes_at(pointer.place)
                && tracee.others_that_accessed(tid, registers).is_empty()
        })
    }

    /// A logged place was written to from outside: that is not a write of the program.
    pub fn look_at_logged(&mut self, tracee: &Tracee) {
        for index in 0..self.write_log.places.len() {
            let now = tracee.bytes_at(self.write_log.places[index].place);
            self.write_log.places[index].last = now;
        }
    }

    /// Returns the places of debug registers that have fired, by number, each with its own registers.
    fn fired(&self, bits: u64) -> Vec<(u64, u64)> {
        let places = self.write_log.places.iter();
        places
            .map(|logged| {
                let registers = self.watchpoints.of_logged(logged.number);
                (logged.number, registers)
            })
            .filter(|(_, registers)| bits & registers != 0)
            .collect()
    }
}
