//! Resolves the location of a probe to places, and names the places.
//!
//! A place has the same name as a stop there: the same inlined calls are still to come, and [`AddressSpace::standing`]
//! gives the rest.

use debuginfo::{AddressSpace, LinePlace};

use super::logged_place::Found;
use crate::live::{
    error::LiveResult,
    model::{Location, Meant, ProbeId, ProbePlace, ProbeState, ProbeView},
    probes::Probes,
    tracee::Tracee,
};

impl Tracee {
    /// Returns the current places of a location.
    pub fn places(&self, location: &Location) -> LiveResult<Vec<ProbePlace>> {
        let space = self.space_now();
        match location {
            Location::Function(_) | Location::Line { .. } => in_code(&space, location),
            Location::Address(address) => {
                self.check_boundary(&space, *address)?;
                in_code(&space, location)
            }
            Location::Throw { unhandled_only, .. } => {
                let name = if *unhandled_only {
                    "_ZSt9terminatev"
                } else {
                    "__cxa_throw"
                };
                Ok(self.entries(&space, name))
            }
            Location::Panic => Ok(self.entries(&space, "rust_panic")),
            Location::Event(happening) => {
                let names = happening.entries().iter();
                Ok(names.flat_map(|name| self.entries(&space, name)).collect())
            }
            Location::Logged(place) => match self.find_logged(place)? {
                Some(Found::InCalls { function, .. }) => self.places(&Location::Function(function)),
                _ => Ok(Vec::new()),
            },
            Location::Memory { .. } | Location::Signal(_) => Ok(Vec::new()),
        }
    }

    /// Finds functions by linkage name in symbol tables.
    pub fn entries(&self, space: &AddressSpace, linkage: &str) -> Vec<ProbePlace> {
        let mut places = Vec::new();
        for module in space.modules() {
            let symbols = module.module.symbols();
            // Symbols of Rust's runtime are in a scope of their own, preceded by a hash.
            let scoped = format!("7___rustc{}{linkage}", linkage.len());
            let is_it = |name: &str| name == linkage || name.ends_with(&scoped);
            let found = symbols.iter().find(|symbol| is_it(&symbol.linkage));
            places.extend(found.map(|symbol| entry(space, module.address(symbol.svma))));
        }
        places
    }
}

impl Probes {
    /// Returns how many inlined calls that begin at a place of a probe are still to come for a thread that stops there.
    pub fn calls_before(&self, id: ProbeId, address: u64) -> usize {
        let probe = self.by_id.get(&id);
        let places = probe.map_or(&[][..], |probe| &probe.view.places);
        let place = places.iter().find(|place| place.address == address);
        place.map_or(0, |place| place.calls_to_come)
    }
}

/// Returns the places of a function, a line or an address among some modules; other locations have none there.
pub(crate) fn in_code(space: &AddressSpace, location: &Location) -> LiveResult<Vec<ProbePlace>> {
    let found = match location {
        Location::Function(pattern) => space.function_places(pattern),
        Location::Line { file, line, column } => space.resolve_line(file, *line, *column)?,
        Location::Address(address) => {
            return Ok(vec![named(space, *address, Meant::default(), 0)]);
        }
        _ => return Ok(Vec::new()),
    };
    let found = found.into_iter();
    Ok(found.map(|found| found_place(space, found)).collect())
}

/// Names the place of a function or line.
fn found_place(space: &AddressSpace, found: LinePlace) -> ProbePlace {
    let meant = Meant {
        function: found.function.map(|name| name.to_string()),
        file: (!found.file.is_empty()).then(|| found.file.to_string()),
        line: (found.line != 0).then_some(found.line),
        column: (found.column != 0).then_some(found.column),
    };
    let to_come = space.calls_before(found.address, meant.function.as_deref());
    named(space, found.address, meant, to_come)
}

/// Names the entry of a function found by symbol.
fn entry(space: &AddressSpace, address: u64) -> ProbePlace {
    let meant = Meant {
        function: space.function_at(address).map(|function| function.name),
        ..Meant::default()
    };
    let to_come = space.calls_before(address, meant.function.as_deref());
    named(space, address, meant, to_come)
}

/// Returns a place with the name of a stop there.
fn named(space: &AddressSpace, address: u64, meant: Meant, calls_to_come: usize) -> ProbePlace {
    let standing = space.standing(address, calls_to_come);
    let source = standing.source.as_ref();
    let file = source.map(|source| source.file.to_string());
    let line = source.map(|source| source.line);
    // Several statements of a line may begin there: take the one that the probe refers to.
    let own = meant
        .column
        .filter(|_| file == meant.file && line == meant.line);
    let column = source.map(|source| source.column).filter(|at| *at > 0);
    ProbePlace {
        address,
        function: standing.function.map(|name| name.to_string()),
        file,
        line,
        column: own.or(column),
        meant,
        calls_to_come,
        problem: None,
        judged: None,
    }
}

/// Returns a note for the user about a probe that was just set.
pub(crate) fn message_about(view: &ProbeView, space: &AddressSpace) -> Option<String> {
    if let (Location::Line { line, .. }, Some(place)) = (&view.spec.location, view.places.first())
        && let Some(used) = place.meant.line
        && used != *line
    {
        let told = place.line.filter(|_| place.file == place.meant.file);
        let used = told.unwrap_or(used);
        let moved = format!("line {line} has no code; moved to line {used}");
        // An inlined copy may be declared anywhere.
        let function = space.function_at(place.address);
        let begins = function.filter(|f| Some(&f.name) == place.meant.function.as_ref());
        return Some(match begins.filter(|f| f.line > Some(*line)) {
            Some(function) => format!("{moved}, in {}", function.name),
            None => moved,
        });
    }
    if let Some(shared) = shared_line(view) {
        return Some(shared);
    }
    if let (Location::Line { column, .. }, Some(place)) = (&view.spec.location, view.places.first())
        && let (Some(asked), Some(used)) = (*column, place.meant.column)
        && asked < used
    {
        return Some(format!(
            "no statement begins at or before column {asked}; moved to column {used}"
        ));
    }
    if let (ProbeState::Pending, Location::Throw { pattern, .. }) =
        (view.state, &view.spec.location)
        && !view.places.is_empty()
    {
        let pattern = pattern.as_deref().unwrap_or_default();
        return Some(format!(
            "no loaded module has an exception type {pattern}; it waits until one does"
        ));
    }
    if view.state == ProbeState::Pending {
        return Some(format!(
            "no loaded module has {}; it waits until one does",
            view.spec.location
        ));
    }
    None
}

/// Returns a note about a line with a place that stops there name differently: its first instruction belongs to several
/// lines.
fn shared_line(view: &ProbeView) -> Option<String> {
    let Location::Line { line, .. } = &view.spec.location else {
        return None;
    };
    let mut places = view.places.iter();
    let place = places.find(|p| (&p.file, p.line) != (&p.meant.file, p.meant.line))?;
    let other = match (&place.file, place.line) {
        (Some(file), Some(other)) if place.file != place.meant.file => format!("{file}:{other}"),
        (_, Some(other)) => format!("line {other}"),
        _ => return None,
    };
    Some(format!(
        "the first instruction of line {line} belongs to {other} too, which a stop there names"
    ))
}
