//! Probes: the user's requests, bound to their current places.
//!
//! A probe without a place in any loaded module is pending until such a module is loaded, and again after it is
//! unloaded.

pub(crate) mod capture;
pub(crate) mod display;
pub(crate) mod emulate;
pub(crate) mod evaluate;
pub(crate) mod exceptions;
pub(crate) mod failures;
pub(crate) mod happenings;
pub(crate) mod hits;
pub(crate) mod judge;
pub(crate) mod logged;
pub(crate) mod logged_calls;
pub(crate) mod logged_place;
pub(crate) mod logged_variable;
pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod stopless;
pub(crate) mod watchpoints;
pub(crate) mod writer;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use debuginfo::{AddressSpace, LineError};
use expr::Kept;

use self::{
    capture::LogpointCapture, display::Displays, logged::WriteLog, places::message_about,
    stopless::StoplessQueries, watchpoints::Watchpoints,
};
use crate::live::{
    breakpoints::{Breakpoints, sites::User},
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    happening::Happening,
    model::{Action, Location, LoggedPlace, ProbeId, ProbePlace, ProbeSpec, ProbeState, ProbeView},
    script::{ProbeScripts, Scripts},
    stops::StopLog,
    tracee::Tracee,
};
use store::control::{Control, LogPart};

#[derive(Debug)]
pub(crate) struct Probe {
    /// `hits` in it counts only those that the tracer has counted.
    pub view: ProbeView,
    pub is_enabled: bool,
    /// Address of the program's own hit counter.
    pub counter_at: Option<u64>,
    /// How the words written by the program become a message.
    pub format: Option<Vec<LogPart>>,
    /// How often threads have reached the probe, if the tracer handles each of them.
    pub arrivals: u64,
}

impl Probe {
    pub fn logs(&self) -> bool {
        matches!(self.view.spec.action, Action::Log(_))
    }

    /// Returns whether the program could evaluate any part of it.
    pub fn may_be_compiled(&self) -> bool {
        let spec = &self.view.spec;
        let place = matches!(
            spec.location,
            Location::Function(_) | Location::Line { .. } | Location::Address(_)
        );
        place && (spec.condition.is_some() || spec.hit_count != 0 || self.logs() || self.skips())
    }

    /// Returns whether hits are skipped, which only the tracer counts down.
    pub fn skips(&self) -> bool {
        self.view.passed_until != 0
    }
}

#[derive(Default)]
pub(crate) struct Probes {
    pub by_id: BTreeMap<ProbeId, Probe>,
    pub(super) newest: ProbeId,
    /// Probes with places, by the address of the first place.
    by_place: HashMap<u64, BTreeSet<ProbeId>>,
    /// Probes without places.
    placeless: BTreeSet<ProbeId>,
    pub watchpoints: Watchpoints,
    /// Places whose writes are logged.
    pub write_log: WriteLog,
    /// What to capture of threads that pass logpoints.
    pub capture: LogpointCapture,
    /// Questions that threads ask without a stop.
    pub stopless: StoplessQueries,
    pub displays: Displays,
    pub scripts: Scripts,
    /// Values that conditions and messages may name: `$1`, `$name`.
    pub kept: Arc<Kept>,
    /// Where files were mapped when a catchpoint last looked.
    pub mapped_before: BTreeSet<u64>,
}

impl Probes {
    /// Unbinds all probes after the program has executed another program.
    pub fn unbind_all(&mut self) {
        let ids: Vec<ProbeId> = self.by_id.keys().copied().collect();
        for id in ids {
            self.set_places(id, Vec::new());
        }
        self.watchpoints.forget_calls();
        for probe in self.by_id.values_mut() {
            // The counters are gone with the old program.
            probe.counter_at = None;
            if probe.is_enabled {
                probe.view.state = ProbeState::Pending;
            }
        }
    }

    fn insert(&mut self, id: ProbeId, probe: Probe) {
        match probe.view.places.first() {
            Some(place) => {
                self.by_place.entry(place.address).or_default().insert(id);
            }
            None => {
                self.placeless.insert(id);
            }
        }
        self.by_id.insert(id, probe);
    }

    fn remove(&mut self, id: ProbeId) -> Option<Probe> {
        let probe = self.by_id.remove(&id)?;
        self.placeless.remove(&id);
        if let Some(place) = probe.view.places.first()
            && let Some(ids) = self.by_place.get_mut(&place.address)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_place.remove(&place.address);
            }
        }
        Some(probe)
    }

    fn set_places(&mut self, id: ProbeId, places: Vec<ProbePlace>) {
        if let Some(mut probe) = self.remove(id) {
            probe.view.places = places;
            self.insert(id, probe);
        }
    }

    /// Returns the probes that may have exactly these places.
    fn perhaps_at(&self, places: &[ProbePlace]) -> Vec<ProbeId> {
        let Some(first) = places.first() else {
            return self.by_id.keys().copied().collect();
        };
        let there = self.by_place.get(&first.address).into_iter().flatten();
        there.chain(&self.placeless).copied().collect()
    }
}

impl Tracer {
    /// Adds a probe, or changes the existing one.
    pub fn add_probe(&mut self, spec: ProbeSpec) -> LiveResult<ProbeView> {
        let scripts = self.probes.scripts.compile_spec(&spec)?;
        let places = match &spec.location {
            Location::Memory { .. } => Vec::new(),
            location => match self.tracee.places(location) {
                Ok(places) => places,
                // A library may still bring the file or function.
                Err(LiveError::Line(LineError::NoLineTables | LineError::UnknownFile { .. })) => {
                    Vec::new()
                }
                Err(error) => return Err(error),
            },
        };
        self.probes.check_names(&self.tracee, &spec, &places)?;
        if let Some(id) = self.probes.same_place(&spec, &places) {
            return self.change_probe(id, spec, scripts);
        }
        self.probes.newest += 1;
        let id = self.probes.newest;
        if let Location::Memory {
            address,
            len,
            access,
            ..
        } = spec.location
        {
            self.add_watch(id, address, len, access)?;
        }
        let logged = match &spec.location {
            Location::Logged(place) => self.begin_to_log(id, place)?,
            _ => None,
        };
        let view = ProbeView {
            id,
            state: ProbeState::Pending,
            places: Vec::new(),
            hits: 0,
            passed_until: 0,
            message: None,
            existed: false,
            failed: None,
            spec,
        };
        let probe = Probe {
            view,
            is_enabled: true,
            counter_at: None,
            format: None,
            arrivals: 0,
        };
        self.probes.insert(id, probe);
        self.probes.scripts.set(id, scripts);
        self.begin_to_watch_for(id);
        let bound = self.bind(id, places);
        self.settle_compiled();
        let space = self.tracee.space_now();
        let Some(probe) = self.probes.by_id.get_mut(&id) else {
            return Err(LiveError::NoProbe(id));
        };
        if let Err(error) = bound
            && probe.view.places.is_empty()
        {
            self.probes.remove(id);
            self.probes.forget_expressions(&self.stops, id);
            return Err(error);
        }
        probe.view.message = message_about(&probe.view, &space);
        self.probes.tell_missing_values(&self.tracee, id);
        if let Some(told) = logged
            && let Some(probe) = self.probes.by_id.get_mut(&id)
        {
            probe.view.state = ProbeState::Bound;
            probe.view.message = Some(told);
        }
        let probe = &self.probes.by_id[&id];
        let view = probe.view.clone();
        self.journal.probe(&self.tracee.space_now(), &view);
        Ok(view)
    }

    /// Arms a new probe that logs writes, if its place exists. Returns the place.
    fn begin_to_log(&mut self, id: ProbeId, place: &LoggedPlace) -> LiveResult<Option<String>> {
        let found = self.begin_logging(id, place)?;
        Ok(found.map(|found| found.told()))
    }

    /// Gives a probe a new condition and action.
    fn change_probe(
        &mut self,
        id: ProbeId,
        spec: ProbeSpec,
        scripts: ProbeScripts,
    ) -> LiveResult<ProbeView> {
        let probe = self
            .probes
            .by_id
            .get_mut(&id)
            .ok_or(LiveError::NoProbe(id))?;
        probe.view.spec = ProbeSpec {
            location: probe.view.spec.location.clone(),
            ..spec
        };
        probe.arrivals = 0;
        self.stops.failures.forget(id);
        self.probes.scripts.set(id, scripts);
        self.breakpoints.compile_later(id);
        // Setting a probe again enables it. If that fails, its places say why.
        let _ = self.enable_probe(id, true);
        self.settle_compiled();
        let mut view = self
            .probes
            .view(&self.breakpoints, &self.stops, id)
            .ok_or(LiveError::NoProbe(id))?;
        view.existed = true;
        view.message = Some("Breakpoint already exists at this location".to_owned());
        self.journal.probe(&self.tracee.space_now(), &view);
        Ok(view)
    }

    /// Sets a probe's traps at its places. Places where that fails say why.
    fn bind(&mut self, id: ProbeId, mut places: Vec<ProbePlace>) -> LiveResult<()> {
        let mut failed = Ok(());
        for place in &mut places {
            if let Err(error) = self.add_site(place.address, User::Probe(id)) {
                let error = self.tracee.with_nearest(error);
                place.problem = Some(error.one_line());
                failed = Err(error);
            }
        }
        let any = places.iter().any(|place| place.problem.is_none());
        let Some(probe) = self.probes.by_id.get_mut(&id) else {
            return Err(LiveError::NoProbe(id));
        };
        let needs_no_place = matches!(
            probe.view.spec.location,
            Location::Memory { .. } | Location::Signal(_)
        ) || matches!(
            &probe.view.spec.location,
            Location::Event(happening) if happening.entries().is_empty()
        );
        if any || needs_no_place {
            let location = probe.view.spec.location.clone();
            let waits = self.tracee.throws_nothing_like(&location);
            if let Some(probe) = self.probes.by_id.get_mut(&id) {
                probe.view.state = match waits {
                    true => ProbeState::Pending,
                    false => ProbeState::Bound,
                };
            }
            if let Location::Event(Happening::Load(_)) = location {
                self.probes.look_at_files(&self.tracee);
            }
            self.probes.set_places(id, places);
        }
        self.breakpoints.compile_later(id);
        failed
    }

    /// Binds pending probes that now have a place, and unbinds probes whose module is gone.
    pub fn modules_changed(&mut self) {
        let space = self.tracee.space_now();
        let ids: Vec<ProbeId> = self.probes.by_id.keys().copied().collect();
        for id in ids {
            let probe = &self.probes.by_id[&id];
            let gone: Vec<u64> = probe
                .view
                .places
                .iter()
                .map(|place| place.address)
                .filter(|address| space.at(*address).is_none())
                .collect();
            for address in &gone {
                self.breakpoints
                    .sites
                    .forget(&self.tracee.memory, &(*address..*address + 1));
            }
            let location = self.probes.by_id[&id].view.spec.location.clone();
            let is_enabled = self.probes.by_id[&id].is_enabled;
            if !gone.is_empty() {
                let mut left = self.probes.by_id[&id].view.places.clone();
                left.retain(|place| !gone.contains(&place.address));
                self.probes.set_places(id, left);
            }
            if let Some(probe) = self.probes.by_id.get_mut(&id)
                && probe.view.places.is_empty()
                && !gone.is_empty()
                && is_enabled
            {
                probe.view.state = ProbeState::Pending;
            }
            let is_fixed = matches!(
                location,
                Location::Address(_) | Location::Memory { .. } | Location::Logged(_)
            );
            if is_fixed {
                continue;
            }
            let Ok(places) = self.tracee.places(&location) else {
                continue;
            };
            let known: Vec<u64> = self.probes.by_id[&id]
                .view
                .places
                .iter()
                .map(|place| place.address)
                .collect();
            let is_new = places.iter().any(|place| !known.contains(&place.address));
            let is_pending = self.probes.by_id[&id].view.state == ProbeState::Pending;
            let waits = is_pending && matches!(location, Location::Throw { .. });
            if (is_new || waits || !gone.is_empty()) && is_enabled {
                // The places say what could not be set.
                let _ = self.bind(id, places);
                if let Some(probe) = self.probes.by_id.get_mut(&id) {
                    probe.view.message = message_about(&probe.view, &space);
                }
                self.probes.tell_missing_values(&self.tracee, id);
                let view = self.probes.by_id[&id].view.clone();
                self.journal.probe(&self.tracee.space_now(), &view);
            }
        }
        self.end_watches_of_unloaded(&space);
        self.forget_unmapped_calls(&space);
        self.settle_logged();
        let has_plans = self
            .tracee
            .threads
            .values()
            .any(|thread| thread.plan.is_some());
        if has_plans {
            self.find_unwind_targets();
        }
        self.breakpoints.compile_messages_anew(&self.probes);
    }

    /// Removes a probe. Threads stopped at it stay stopped.
    pub fn remove_probe(&mut self, id: ProbeId) -> LiveResult<ProbeView> {
        let mut probe = self.probes.remove(id).ok_or(LiveError::NoProbe(id))?;
        self.unset(&probe.view);
        self.forget_watched_call(id);
        self.probes.forget_expressions(&self.stops, id);
        probe.view.hits = self.breakpoints.total_hits(&probe);
        self.journal.send(Control::ProbeRemoved {
            ticks: crate::clock::ticks(),
            id,
        });
        Ok(probe.view)
    }

    /// Makes running threads report system calls, if the probe waits for some.
    fn begin_to_watch_for(&mut self, id: ProbeId) {
        let probe = self.probes.by_id.get(&id);
        let location = probe.map(|probe| &probe.view.spec.location);
        if let Some(Location::Event(Happening::Syscall(_))) = location {
            self.see_calls();
        }
    }

    fn unset(&mut self, view: &ProbeView) {
        for place in &view.places {
            self.remove_site(place.address, User::Probe(view.id));
        }
        match view.spec.location {
            Location::Memory { .. } => self.remove_watch(view.id),
            Location::Logged(_) => self.disarm_logged(view.id),
            _ => {}
        }
    }

    /// Lets a probe act only after `times` more hits.
    pub fn pass_probe(&mut self, id: ProbeId, times: u64) -> LiveResult<ProbeView> {
        let unknown = || LiveError::NoProbe(id);
        let hits = self
            .breakpoints
            .total_hits(self.probes.by_id.get(&id).ok_or_else(unknown)?);
        let probe = self.probes.by_id.get_mut(&id).ok_or_else(unknown)?;
        probe.view.passed_until = match times {
            0 => 0,
            times => hits.saturating_add(times),
        };
        self.breakpoints.compile_later(id);
        self.settle_compiled();
        self.probes
            .view(&self.breakpoints, &self.stops, id)
            .ok_or_else(unknown)
    }

    pub fn enable_probe(&mut self, id: ProbeId, on: bool) -> LiveResult<ProbeView> {
        let probe = self
            .probes
            .by_id
            .get_mut(&id)
            .ok_or(LiveError::NoProbe(id))?;
        let was_on = std::mem::replace(&mut probe.is_enabled, on);
        if was_on != on {
            let mut view = probe.view.clone();
            if on {
                if let Location::Memory {
                    address,
                    len,
                    access,
                    ..
                } = view.spec.location
                {
                    self.add_watch(id, address, len, access)?;
                }
                let places = self.tracee.places(&view.spec.location).unwrap_or_default();
                let logged = match &view.spec.location {
                    Location::Logged(place) => self.begin_to_log(id, place)?,
                    _ => None,
                };
                if let Some(probe) = self.probes.by_id.get_mut(&id) {
                    probe.view.state = match logged {
                        Some(_) => ProbeState::Bound,
                        None => ProbeState::Pending,
                    };
                }
                self.begin_to_watch_for(id);
                // The places say what could not be set.
                let _ = self.bind(id, places);
            } else {
                self.unset(&view);
                if let Some(probe) = self.probes.by_id.get_mut(&id) {
                    probe.view.state = ProbeState::Disabled;
                }
            }
            view = self.probes.by_id[&id].view.clone();
            self.journal.probe(&self.tracee.space_now(), &view);
        }
        self.settle_compiled();
        self.probes
            .view(&self.breakpoints, &self.stops, id)
            .ok_or(LiveError::NoProbe(id))
    }
}

impl Probes {
    /// Finds a probe of the same kind at the same places.
    fn same_place(&self, spec: &ProbeSpec, places: &[ProbePlace]) -> Option<ProbeId> {
        let is_temporary = |action: &Action| matches!(action, Action::Break { once: true, .. });
        if is_temporary(&spec.action) {
            return None;
        }
        let same_kind = |a: &Action, b: &Action| match (a, b) {
            (Action::Break { .. }, Action::Break { .. }) => true,
            (Action::Log(a), Action::Log(b)) => a == b,
            (Action::LogWrites, Action::LogWrites) => true,
            _ => false,
        };
        let is_same = |probe: &Probe| {
            let known = &probe.view.places;
            // Catchpoints share a place, but catch different types.
            // So do variables of one function.
            let is_catch = matches!(
                spec.location,
                Location::Throw { .. } | Location::Event(_) | Location::Logged(_)
            );
            let is_there = if is_catch || places.is_empty() || known.is_empty() {
                probe.view.spec.location == spec.location
            } else {
                known.len() == places.len()
                    && known
                        .iter()
                        .zip(places)
                        .all(|(a, b)| a.address == b.address)
            };
            is_there
                && !is_temporary(&probe.view.spec.action)
                && same_kind(&probe.view.spec.action, &spec.action)
        };
        let candidates = self.perhaps_at(places).into_iter();
        let mut same = candidates.filter(|id| self.by_id.get(id).is_some_and(is_same));
        same.next()
    }

    /// Returns a probe with all its hits.
    pub fn view(
        &self,
        breakpoints: &Breakpoints,
        stops: &StopLog,
        id: ProbeId,
    ) -> Option<ProbeView> {
        let probe = self.by_id.get(&id)?;
        Some(ProbeView {
            hits: breakpoints.total_hits(probe),
            failed: stops.failed(probe),
            ..probe.view.clone()
        })
    }

    pub fn views(&self, breakpoints: &Breakpoints, stops: &StopLog) -> Vec<ProbeView> {
        let ids = self.by_id.keys();
        ids.filter_map(|id| self.view(breakpoints, stops, *id))
            .collect()
    }
}

impl Tracee {
    /// Adds the nearest address at which a thread can be stopped.
    fn with_nearest(&self, error: LiveError) -> LiveError {
        let LiveError::CannotStop {
            address, reason, ..
        } = error
        else {
            return error;
        };
        let space = self.space_now();
        let nearest = space.function_at(address).map_or(address, |function| {
            if address >= function.after_prologue {
                function.after_prologue
            } else {
                function.entry
            }
        });
        LiveError::CannotStop {
            address,
            reason,
            nearest,
        }
    }

    /// Refuses an address in the middle of an instruction.
    pub fn check_boundary(&self, space: &AddressSpace, address: u64) -> LiveResult<()> {
        let Some(function) = space.function_at(address) else {
            return Ok(());
        };
        let range = function
            .ranges
            .iter()
            .find(|range| range.contains(&address));
        let start = range.map_or(function.entry, |range| range.start);
        let len = (address - start) as usize + 16;
        let code = {
            let mut code = self.memory.read_up_to(start, len);
            let readable = code.len();
            if self.memory.read(start, &mut code[..readable]).is_err() {
                return Ok(());
            }
            code
        };
        let mut decoder =
            iced_x86::Decoder::with_ip(64, &code, start, iced_x86::DecoderOptions::NONE);
        let mut before = start;
        while decoder.can_decode() && decoder.ip() < address {
            before = decoder.ip();
            if decoder.decode().is_invalid() {
                return Ok(());
            }
        }
        if decoder.ip() == address {
            return Ok(());
        }
        Err(LiveError::CannotStop {
            address,
            reason: "it is in the middle of an instruction".to_owned(),
            nearest: before,
        })
    }
}
