//! Breakpoints in a recording. If every instruction is recorded, they are addresses, and may have a condition and a count.

use std::collections::BTreeSet;
use std::sync::Arc;

use debuginfo::{AddressSpace, Diagnostic, LinePlace};
use serde::{Deserialize, Serialize};

use super::judge::Judge;
use super::{Past, Position, frames_for};
use crate::inspect;
use crate::location::{ParsedLocation, Target};
use crate::protocol::{Code, Details, Failure};

/// A breakpoint in a recording: a run through time stops at the entry of its functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// Its number, from 1.
    pub id: u32,
    /// The location, as requested.
    pub location: String,
    /// The ids of the functions.
    pub functions: BTreeSet<u32>,
    /// Of a catchpoint: how many events are caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caught: Option<u64>,
    /// These events.
    #[serde(skip)]
    pub(super) events: Arc<BTreeSet<u64>>,
    /// If every instruction is recorded: the addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<u64>,
    /// The same, with the frames that a thread has there.
    #[serde(skip)]
    pub(super) stops: Vec<StopAddress>,
    /// It stops only if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// It stops only at the Nth hit of the whole run; 0: at every one.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub hit_count: u64,
    /// Skip this many hits first, in either direction.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub ignored: u64,
    /// It stops once, and is gone then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// It is switched off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// How many runs have stopped there.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub hits: u64,
    /// The Nth hit, once it was searched for: position and thread.
    #[serde(skip)]
    pub(super) nth: Option<Option<(u64, u32)>>,
}

/// An address at which a breakpoint stops, or a logpoint writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StopAddress {
    pub address: u64,
    /// So many of the inlined calls that begin there are still to come for a thread that stops.
    pub calls_to_come: usize,
    /// So many of the inlined calls around it are inside of the function whose variables conditions and messages use.
    pub inside: usize,
}

/// What is wanted of a breakpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakWanted {
    /// Stop only if this is true.
    pub condition: Option<String>,
    /// Stop only at the Nth hit of the whole run; 0: at every one.
    pub hit_count: u64,
    /// Stop once.
    pub once: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_nothing(number: &u64) -> bool {
    *number == 0
}

impl Break {
    pub(super) fn new(id: u32, location: String) -> Break {
        Break {
            id,
            location,
            functions: BTreeSet::new(),
            caught: None,
            events: Arc::default(),
            addresses: Vec::new(),
            stops: Vec::new(),
            condition: None,
            hit_count: 0,
            ignored: 0,
            once: false,
            disabled: false,
            hits: 0,
            nth: None,
        }
    }
}

impl Past {
    /// Sets a breakpoint and returns it. A run through time stops where one of its functions is entered, or where a thread
    /// passes if every instruction is recorded.
    ///
    /// # Errors
    /// [`Code::InvalidFunction`]: no recorded function matches. [`Code::InvalidCondition`].
    pub fn add_break(&self, target: &Target, wanted: BreakWanted) -> Result<Break, Failure> {
        let judge = Judge::new(wanted.condition.as_deref(), self.shared_kept(), false)?;
        if self.timeline.has_every_instruction() {
            return self.add_break_at(target, wanted, &judge);
        }
        let (functions, location) = match self.address_of(target) {
            Ok(Some(address)) => (self.functions_from(address)?, format!("*{address:#x}")),
            // It is an address, but not a certain one.
            Err(failure) if failure.expression.is_none() => return Err(failure),
            // A pattern may begin with a star, too.
            Ok(None) | Err(_) => {
                let location = target.to_string();
                if let Ok(ParsedLocation::LineHere(_)) = target.parse() {
                    return Err(self.knows_calls_only(&location));
                }
                (self.functions_called(&location)?, location)
            }
        };
        self.check_names(&judge, &self.entries_of(&functions))?;
        let added = Break {
            functions,
            condition: wanted.condition,
            hit_count: wanted.hit_count,
            once: wanted.once,
            ..Break::new(self.next_id(), location)
        };
        self.breaks().push(added.clone());
        Ok(added)
    }

    /// Returns the recorded functions that a name or a line means.
    fn functions_called(&self, location: &str) -> Result<BTreeSet<u32>, Failure> {
        let line = location
            .rsplit_once(':')
            .and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let functions = match line {
            Some((file, line)) => {
                self.check_line(file, line)?;
                self.timeline.functions_at_line(file, line)
            }
            None => self.timeline.functions_matching(location),
        };
        match functions.is_empty() {
            false => Ok(functions),
            true => Err(Failure::new(
                Code::InvalidFunction,
                format!("no recorded function is called {location}"),
            )
            .hint("write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them")),
        }
    }

    /// Refuses a line of the selected file.
    fn knows_calls_only(&self, line: &str) -> Failure {
        let message = format!("{line} is a line, and here only calls are recorded");
        let way = match self.is_of_a_program {
            true => "or go back to the program: goto live",
            false => {
                "or record every instruction: hindsight record --full -- PROGRAM, or control the program: hindsight start PROGRAM"
            }
        };
        let hint = format!("stop where a function is entered: break FUNCTION; {way}");
        Failure::new(Code::NotAllowed, message).hint(hint)
    }

    /// Returns the recorded functions that begin at an address.
    fn functions_from(&self, address: u64) -> Result<BTreeSet<u32>, Failure> {
        let moments = [self.position().seq, self.timeline.last()];
        let begins = |id: &u32| {
            let entry = |seq: &u64| self.timeline.entry_of(*id, *seq);
            moments.iter().any(|seq| entry(seq) == Some(address))
        };
        let all = self.timeline.functions().map(|function| function.id);
        let functions: BTreeSet<u32> = all.filter(begins).collect();
        match functions.is_empty() {
            false => Ok(functions),
            true => Err(Failure::new(
                Code::InvalidAddress,
                format!("no recorded function begins at {address:#x}"),
            )
            .hint(
                "give the entry of a recorded function, or record every instruction: hindsight record --full -- PROGRAM",
            )),
        }
    }

    /// Returns the address that a location is: `0x401136`, `*main + 4`; `None` for another location.
    fn address_of(&self, target: &Target) -> Result<Option<u64>, Failure> {
        if let Some(expression) = target.address_expression() {
            return self.address_of_expression(expression).map(Some);
        }
        Ok(match target.parse()? {
            ParsedLocation::Address(address) => Some(address),
            _ => None,
        })
    }

    /// Returns the value of an expression here; at the end if it means nothing here: its modules may be mapped later.
    fn address_of_expression(&self, expression: &str) -> Result<u64, Failure> {
        let here = self.position();
        let address = |position: Position| {
            self.look_at(position, frames_for(expression), |looked| {
                inspect::certain_address(&looked.view(), expression)
            })
        };
        let end = Position::of_event(self.timeline.last(), here.tid);
        address(here).or_else(|failure| address(end).map_err(|_| failure))
    }

    /// Refuses a condition with a name that exists at none of the places.
    pub(super) fn check_names(&self, judge: &Judge, places: &[StopAddress]) -> Result<(), Failure> {
        if !judge.is_conditional() {
            return Ok(());
        }
        let modules = self.timeline.modules();
        let moments = [self.position().seq, self.timeline.last()];
        let spaces = moments.map(|seq| modules.space(seq));
        // A library that is not loaded yet may have the name.
        let missing = |place: &StopAddress| {
            let spaces = spaces.iter();
            let spaces = spaces.filter(|space| space.at(place.address).is_some());
            let missing = spaces.map(|space| judge.missing_at(space, place.address, place.inside));
            missing.collect::<Option<Vec<_>>>()?.into_iter().next()
        };
        let missing: Option<Vec<Diagnostic>> = places.iter().map(missing).collect();
        match missing.and_then(|all| all.into_iter().next()) {
            Some(Diagnostic { message, hint }) => Err(Failure {
                hint,
                ..Failure::new(Code::InvalidCondition, message)
            }),
            None => Ok(()),
        }
    }

    /// The places at which recorded functions are entered.
    fn entries_of(&self, functions: &BTreeSet<u32>) -> Vec<StopAddress> {
        let moments = [self.position().seq, self.timeline.last()];
        let entry = |id: &u32| {
            let mut found = moments
                .iter()
                .filter_map(|seq| self.timeline.entry_of(*id, *seq));
            found.next()
        };
        let place = |address| StopAddress {
            address,
            calls_to_come: 0,
            inside: 0,
        };
        functions.iter().filter_map(entry).map(place).collect()
    }

    fn add_break_at(
        &self,
        target: &Target,
        wanted: BreakWanted,
        judge: &Judge,
    ) -> Result<Break, Failure> {
        let stops = self.stop_addresses(target)?;
        self.check_names(judge, &stops)?;
        let location = match target.address_expression() {
            Some(_) => stops.first().map(|stop| format!("*{:#x}", stop.address)),
            None => None,
        };
        let location = location.unwrap_or_else(|| target.to_string());
        let added = Break {
            addresses: stops.iter().map(|stop| stop.address).collect(),
            stops,
            condition: wanted.condition,
            hit_count: wanted.hit_count,
            once: wanted.once,
            ..Break::new(self.next_id(), location)
        };
        self.breaks().push(added.clone());
        Ok(added)
    }

    /// Returns the addresses of a location in every module that is ever mapped, in order.
    pub(super) fn stop_addresses(&self, target: &Target) -> Result<Vec<StopAddress>, Failure> {
        let location = match self.address_of(target)? {
            Some(address) => ParsedLocation::Address(address),
            None => target.parse()?,
        };
        let location = match location {
            ParsedLocation::LineHere(line) => ParsedLocation::Line(
                self.look(1, |looked| inspect::line_here(&looked.view(), line))?,
            ),
            location => location,
        };
        let modules = self.timeline.modules();
        let (mut addresses, mut failed) = (Vec::new(), None);
        let mut look = |space: &AddressSpace| match places(space, &location) {
            Ok(found) => addresses.extend(found),
            Err(failure) => failed = Some(failure),
        };
        // Modules may be mapped later than here.
        look(&modules.space(self.position().seq));
        look(&modules.space(self.timeline.last()));
        if addresses.is_empty() {
            let all = AddressSpace::new(modules.all_usable());
            addresses.extend(places(&all, &location).unwrap_or_default());
        }
        addresses.sort_unstable();
        addresses.dedup_by_key(|stop| stop.address);
        match (addresses.is_empty(), failed) {
            (false, _) => Ok(addresses),
            (true, Some(failure)) => Err(failure),
            (true, None) => Err(self.no_function(&target.to_string())),
        }
    }

    fn no_function(&self, name: &str) -> Failure {
        let space = self.timeline.modules().space(self.timeline.last());
        let nearest = inspect::nearest_functions(&space, name);
        let hint = match nearest.as_slice() {
            [] => "write a function's name, file:line or an address".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let message = format!("no function is called {name} here");
        Failure::new(Code::InvalidFunction, message)
            .hint(hint)
            .details(Details {
                nearest,
                ..Details::default()
            })
    }

    /// Refuses a line after the last one of its file that has code, as far as the available modules show.
    fn check_line(&self, file: &str, line: u32) -> Result<(), Failure> {
        let modules = self.timeline.modules();
        let moments = [self.position().seq, self.timeline.last()];
        let last = moments.iter().find_map(|seq| {
            let lines = modules.space(*seq).valid_lines(file);
            lines.ok()?.last().copied()
        });
        match last {
            Some(last) if line > last => {
                let failure = Failure::new(Code::InvalidLine, format!("no code at {file}:{line}"));
                Err(failure
                    .hint(format!("the last line with code is {last}"))
                    .details(Details {
                        valid_lines: vec![last],
                        ..Details::default()
                    }))
            }
            _ => Ok(()),
        }
    }

    /// Returns the breakpoints.
    #[must_use]
    pub fn all_breaks(&self) -> Vec<Break> {
        self.breaks().clone()
    }

    /// Removes a breakpoint, or all of them, and returns what was removed.
    ///
    /// # Errors
    /// [`Code::BreakpointNotFound`].
    pub fn remove_break(&self, id: Option<u32>) -> Result<Vec<Break>, Failure> {
        let is_meant = |known: &mut Break| id.is_none_or(|id| known.id == id);
        let removed: Vec<Break> = self.breaks().extract_if(.., is_meant).collect();
        for gone in &removed {
            self.at_stops.set(gone.id, Vec::new());
        }
        match (id, removed.is_empty()) {
            (Some(id), true) if self.watches().iter().any(|watch| watch.id == id) => {
                let message = format!("{id} is a watchpoint");
                let hint = format!("remove it with: watch remove {id}");
                Err(Failure::new(Code::BreakpointNotFound, message).hint(hint))
            }
            (Some(id), true) => Err(no_break(id)),
            _ => Ok(removed),
        }
    }

    /// Switches a breakpoint, or all of them, on or off, and returns what was switched.
    ///
    /// # Errors
    /// [`Code::BreakpointNotFound`].
    pub fn switch_break(&self, id: Option<u32>, is_on: bool) -> Result<Vec<Break>, Failure> {
        let mut switched = Vec::new();
        let mut breaks = self.breaks();
        for known in breaks
            .iter_mut()
            .filter(|known| id.is_none_or(|id| known.id == id))
        {
            known.disabled = !is_on;
            switched.push(known.clone());
        }
        match (id, switched.is_empty()) {
            (Some(id), true) => Err(no_break(id)),
            _ => Ok(switched),
        }
    }

    /// Gives a breakpoint another condition, or none.
    ///
    /// # Errors
    /// [`Code::BreakpointNotFound`], [`Code::InvalidCondition`].
    pub fn change_condition(&self, id: u32, condition: Option<&str>) -> Result<Break, Failure> {
        let judge = Judge::new(condition, self.shared_kept(), false)?;
        if condition.is_some() {
            self.refuse_catchpoint(id, "condition")?;
        }
        let known = self.all_breaks().into_iter().find(|known| known.id == id);
        if let Some(known) = known {
            let mut places = known.stops;
            places.extend(self.entries_of(&known.functions));
            self.check_names(&judge, &places)?;
        }
        self.change_break(id, |known| {
            known.condition = condition.map(str::to_owned);
            known.nth = None;
        })
    }

    /// Skips a number of hits of a breakpoint before it stops again.
    ///
    /// # Errors
    /// [`Code::BreakpointNotFound`].
    pub fn ignore_break(&self, id: u32, count: u64) -> Result<Break, Failure> {
        if self.timeline.has_every_instruction() {
            self.refuse_catchpoint(id, "ignore")?;
        }
        self.change_break(id, |known| known.ignored = count)
    }

    fn refuse_catchpoint(&self, id: u32, verb: &str) -> Result<(), Failure> {
        let breaks = self.breaks();
        let is_it = |known: &Break| known.id == id && known.caught.is_some();
        match breaks.iter().any(is_it) {
            true => Err(no_options(verb)),
            false => Ok(()),
        }
    }

    fn change_break(&self, id: u32, change: impl FnOnce(&mut Break)) -> Result<Break, Failure> {
        let mut breaks = self.breaks();
        let known = breaks.iter_mut().find(|known| known.id == id);
        let known = known.ok_or_else(|| no_break(id))?;
        change(known);
        Ok(known.clone())
    }

    /// Refuses what only a program under control or a recording of every instruction can do.
    pub(crate) fn needs_every_instruction(&self, command: &str) -> Failure {
        let refusal = self.needs_the_program(command);
        match refusal.hint {
            Some(_) => refusal,
            None => refusal
                .hint("or a recording of every instruction: hindsight record --full -- PROGRAM"),
        }
    }
}

/// Refuses a condition of a catchpoint.
pub(super) fn no_options(verb: &str) -> Failure {
    let message = format!("{verb} is not for catchpoints of a recording: they stop at each event");
    Failure::new(Code::NotAllowed, message).hint(
        "find the next matching event: continue where kind = 'syscall' and text like 'write(2,%'",
    )
}

fn no_break(id: u32) -> Failure {
    let message = format!("there is no breakpoint {id}");
    Failure::new(Code::BreakpointNotFound, message).hint("list them with: break list")
}

/// The addresses of a location; none if no function has that name.
fn places(space: &AddressSpace, location: &ParsedLocation) -> Result<Vec<StopAddress>, Failure> {
    let places = match location {
        ParsedLocation::Function(name) => space.function_places(name),
        ParsedLocation::Line(line) => space
            .resolve_line(&line.file, line.line, line.column)
            .map_err(|error| inspect::of_line_error(&error))?,
        ParsedLocation::LineHere(_) => Vec::new(),
        // Code that the program generated is in no module.
        ParsedLocation::Address(address) => {
            return Ok(vec![StopAddress {
                address: *address,
                calls_to_come: 0,
                inside: 0,
            }]);
        }
    };
    let is_line = matches!(location, ParsedLocation::Line(_));
    let stop = |place: LinePlace| {
        let address = place.address;
        let calls_to_come = space.calls_before(address, place.function.as_deref());
        let inside = match is_line {
            true => space.calls_inside_line(address, &place.file, place.line),
            false => 0,
        };
        StopAddress {
            address,
            calls_to_come,
            inside: inside.max(calls_to_come),
        }
    };
    Ok(places.into_iter().map(stop).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_breakpoint_is_told_as_before() {
        let plain = Break::new(3, "f".to_owned());
        let told = serde_json::to_value(&plain).unwrap();
        let known = serde_json::json!({"id": 3, "location": "f", "functions": []});
        assert_eq!(told, known);
        assert_eq!(serde_json::from_value::<Break>(told).unwrap(), plain);
    }
}
