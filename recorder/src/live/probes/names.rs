//! Names in conditions and messages: the scope they are looked up in, and which of them do not exist there.

use debuginfo::{AddressSpace, Diagnostic};
use expr::{Kept, missing_names, missing_values};

use super::{Probe, failures::Failed};
use crate::live::{
    condition::Condition,
    error::{LiveError, LiveResult},
    model::{EvaluatedBy, Location, ProbeId, ProbePlace, ProbeSpec},
    probes::Probes,
    stops::StopLog,
    tracee::Tracee,
};

impl Probes {
    /// Returns how many inlined calls at a place of a probe lie inside the function whose variables the probe refers
    /// to. For a probe at a line that is the function of the line.
    pub fn calls_inside(&self, tracee: &Tracee, id: ProbeId, address: u64) -> usize {
        let probe = self.by_id.get(&id);
        let place = probe.and_then(|probe| {
            let mut places = probe.view.places.iter();
            places.find(|place| place.address == address)
        });
        let spec = probe.map(|probe| &probe.view.spec);
        let (Some(place), Some(spec)) = (place, spec) else {
            return 0;
        };
        calls_inside_place(&tracee.space_now(), spec, place).max(self.calls_before(id, address))
    }

    /// As the function [`check_names`], for a program that runs.
    pub fn check_names(
        &self,
        tracee: &Tracee,
        spec: &ProbeSpec,
        places: &[ProbePlace],
    ) -> LiveResult<()> {
        check_names(&tracee.space_now(), &self.kept, spec, places)
    }

    /// Reports values of a probe's message that do not exist at some of its places.
    pub fn tell_missing_values(&mut self, tracee: &Tracee, id: ProbeId) {
        let Some(probe) = self.by_id.get_mut(&id) else {
            return;
        };
        let view = &mut probe.view;
        let space = tracee.space_now();
        let Some(told) = missing_in_message(&space, &self.kept, &view.spec, &view.places) else {
            return;
        };
        let known = view.message.take();
        let told = known.map_or(told.clone(), |known| format!("{known}; {told}"));
        view.message = Some(told);
    }

    /// Drops what was compiled from a removed probe's texts.
    pub fn forget_expressions(&mut self, stops: &StopLog, id: ProbeId) {
        self.scripts.forget(id);
        stops.failures.forget(id);
    }

    /// Counts the arrival of a thread at a probe that uses the count.
    pub fn count_arrival(&mut self, tracee: &mut Tracee, tid: i32, id: ProbeId) {
        let Some(probe) = self.by_id.get_mut(&id) else {
            return;
        };
        let is_asked = probe.view.spec.asks_hits();
        probe.arrivals += 1;
        let arrivals = probe.arrivals;
        if let Some(thread) = tracee.threads.get_mut(&tid) {
            thread.hit_count = is_asked.then_some(arrivals);
        }
    }
}

/// Refuses a condition with a name that exists at none of these places of its probe.
pub fn check_names(
    space: &AddressSpace,
    kept: &Kept,
    spec: &ProbeSpec,
    places: &[ProbePlace],
) -> LiveResult<()> {
    let Some(Condition::Own(condition)) = &spec.condition else {
        return Ok(());
    };
    let missing = |place: &ProbePlace| {
        let inside = calls_inside_place(space, spec, place);
        let missing = missing_names(condition, space, place.address, inside, kept);
        missing.into_iter().next()
    };
    let missing: Option<Vec<Diagnostic>> = places.iter().map(missing).collect();
    match missing.and_then(|all| all.into_iter().next()) {
        Some(what) => Err(LiveError::Expression { position: 0, what }),
        None => Ok(()),
    }
}

/// Says which value of a probe's message does not exist at its places, or at some of them: the message will tell the error
/// instead. `None`: there is no such value.
pub fn missing_in_message(
    space: &AddressSpace,
    kept: &Kept,
    spec: &ProbeSpec,
    places: &[ProbePlace],
) -> Option<String> {
    let template = spec.action.message()?.template();
    let missing = places.iter().filter_map(|place| {
        let inside = calls_inside_place(space, spec, place).max(place.calls_to_come);
        let missing = missing_values(template, space, place.address, inside, kept);
        missing.into_iter().next()
    });
    let missing: Vec<Diagnostic> = missing.collect();
    let first = missing.first()?.one_line();
    Some(match missing.len() {
        count if count == places.len() => first,
        count => format!("at {count} of {} places, {first}", places.len()),
    })
}

fn calls_inside_place(space: &AddressSpace, spec: &ProbeSpec, place: &ProbePlace) -> usize {
    match (&spec.location, &place.meant.file, place.meant.line) {
        (Location::Line { .. }, Some(file), Some(line)) => {
            space.calls_inside_line(place.address, file, line)
        }
        _ => 0,
    }
}

impl StopLog {
    /// Returns the failures of a probe's condition or message. If the program evaluates it too, it is unknown whether
    /// every evaluation failed.
    pub fn failed(&self, probe: &Probe) -> Option<Failed> {
        let failed = self.failures.of(probe.view.id)?;
        let in_program = |place: &ProbePlace| {
            matches!(
                place.judged,
                Some(EvaluatedBy::InProgram | EvaluatedBy::Partly(_))
            )
        };
        let judged = match probe.view.places.iter().any(in_program) {
            true => u64::MAX,
            false => failed.judged,
        };
        Some(Failed { judged, ..failed })
    }
}
