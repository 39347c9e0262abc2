//! Runs through all instructions: to breakpoints, to writes of watched values, and to the stops that the recording has.

use debuginfo::AddressSpace;
use replay::Instant;
use replay::moves::{Direction, Stops};

use super::{Break, Past, of_replay};
use crate::protocol::{Code, Failure};
use crate::session::{MotionReport, ReasonReport, WatchChange};

impl Past {
    /// Sets a breakpoint at addresses.
    pub(super) fn add_break_at(
        &self,
        location: &str,
        line: Option<(&str, u32)>,
    ) -> Result<Break, Failure> {
        let modules = self.timeline.modules();
        let (mut addresses, mut failed) = (Vec::new(), None);
        // Modules may be mapped later than here.
        for seq in [self.position().seq, self.timeline.last()] {
            match places(&modules.space(seq), location, line) {
                Ok(found) => addresses.extend(found),
                Err(failure) => failed = Some(failure),
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        if let Some(failure) = failed.filter(|_| addresses.is_empty()) {
            return Err(failure);
        }
        if addresses.is_empty() {
            return Err(Failure::new(
                Code::InvalidFunction,
                format!("no function is called {location} here"),
            )
            .hint("write a function's name, file:line or an address"));
        }
        let added = Break {
            id: self.next_id(),
            location: location.to_owned(),
            functions: std::collections::BTreeSet::new(),
            addresses,
        };
        self.breaks().push(added.clone());
        Ok(added)
    }

    /// Moves to the nearest breakpoint, or stop of the recording, in a direction.
    pub(super) fn run_by_instructions(
        &self,
        direction: Direction,
    ) -> Result<MotionReport, Failure> {
        let here = self.position();
        let stops = Stops {
            logpoints: true,
            ..Stops::default()
        };
        let event = self.timeline.run(here.seq, &stops, direction);
        let mut event = event.map_err(|error| of_replay(&error))?;
        if direction == Direction::Back && here.steps > 0 && self.timeline.is_stop(here.seq) {
            event = Some(here.seq);
        }
        let addresses: Vec<u64> = self
            .breaks()
            .iter()
            .flat_map(|set| set.addresses.clone())
            .collect();
        let mut found = None;
        if !addresses.is_empty() {
            let arrival = self.timeline.arrival(here.instant(), &addresses, direction);
            found = arrival.map_err(|error| of_replay(&error))?;
        }
        let (wrote, changed) = self.nearest_write(direction)?;
        let event = event.map(|seq| (Instant::at(seq), None));
        let found = found.map(|(instant, tid)| (instant, Some(tid)));
        let wrote = wrote.map(|(instant, tid)| (instant, Some(tid)));
        let all = event.into_iter().chain(found).chain(wrote);
        let nearest = match direction {
            Direction::Forward => all.min_by_key(|(instant, _)| *instant),
            Direction::Back => all.max_by_key(|(instant, _)| *instant),
        };
        let Some((instant, tid)) = nearest else {
            return Err(self.no_stop(here.seq, direction));
        };
        self.go_to_instant(instant, tid)?;
        let mut report = self.motion()?;
        let is_write = wrote.is_some_and(|(at, _)| at == instant);
        if let Some(stop) = &mut report.stop
            && let ReasonReport::Event { changed: told, .. } = &mut stop.reason
            && is_write
        {
            *told = changed;
        }
        Ok(report)
    }

    /// The nearest write to something watched: the moment after it, or before it if it is looked for backwards, its thread, and
    /// the change.
    fn nearest_write(
        &self,
        direction: Direction,
    ) -> Result<(Option<(Instant, u32)>, Vec<WatchChange>), Failure> {
        let here = self.position().instant();
        let watches: Vec<_> = {
            let all = self.watches();
            let bytes = all.iter().filter_map(|watch| {
                let (text, place) = watch.bytes()?;
                Some((watch.id, text.to_owned(), place.clone()))
            });
            bytes.collect()
        };
        let (mut nearest, mut changed) = (None, Vec::new());
        for (watch, expression, place) in watches {
            let (address, len) = (place.address, place.len);
            let found = match direction {
                Direction::Forward => self.timeline.next_write_after(here, address, len),
                Direction::Back => self.timeline.last_write_before(here, address, len),
            };
            let Some(wrote) = found.map_err(|error| of_replay(&error))? else {
                continue;
            };
            let at = match direction {
                Direction::Forward => wrote.after,
                Direction::Back => wrote.before,
            };
            let is_nearer = |best: Instant| match direction {
                Direction::Forward => at < best,
                Direction::Back => at > best,
            };
            match nearest {
                Some((best, _)) if at != best && !is_nearer(best) => continue,
                Some((best, _)) if at == best => {}
                _ => changed.clear(),
            }
            nearest = Some((at, wrote.tid));
            let change = self.written(&place, &wrote)?;
            changed.push(WatchChange {
                watch,
                expression,
                old: change.old.unwrap_or_default(),
                new: change.value,
            });
        }
        Ok((nearest, changed))
    }
}

/// The addresses of a location.
fn places(
    space: &AddressSpace,
    location: &str,
    line: Option<(&str, u32)>,
) -> Result<Vec<u64>, Failure> {
    let places = match (line, address(location)) {
        (Some((file, line)), _) => space.resolve_line(file, line, None).map_err(|error| {
            let failure = Failure::new(Code::InvalidLine, error.to_string());
            match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?,
        (None, Some(address)) => return Ok(vec![address]),
        (None, None) => space.function_places(location),
    };
    Ok(places.into_iter().map(|place| place.address).collect())
}

fn address(location: &str) -> Option<u64> {
    let digits = location.trim_start_matches('*').strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()
}
