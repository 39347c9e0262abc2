//! What a session's user asks it to stop at, to log and to display.

use super::{
    Condition, Display, Displaying, Failed, Live, LiveError, ProbeId, ProbeSpec, ProbeState,
    ProbeView, WatchedCall, probes::names::check_names,
};
use crate::Result;

impl Live {
    /// Adds a probe. If there is one at the same location with the same kind of action, changes and returns that one.
    ///
    /// # Errors
    /// A condition or template is invalid, a line has no code (the error lists the valid ones), or no watchpoint is
    /// left.
    pub fn add_probe(&self, spec: ProbeSpec) -> Result<ProbeView> {
        Ok(self.ask(|tracer| {
            tracer.tracee.following.has_let_go = false;
            tracer.add_probe(spec)
        })??)
    }

    /// As [`add_probe`](Live::add_probe). The probe gets this number, or a higher one if it is taken.
    ///
    /// # Errors
    /// As there.
    pub fn add_probe_as(&self, id: ProbeId, spec: ProbeSpec) -> Result<ProbeView> {
        Ok(self.ask(move |tracer| {
            let before = id.saturating_sub(1);
            tracer.probes.newest = tracer.probes.newest.max(before);
            tracer.add_probe(spec)
        })??)
    }

    /// Returns all probes, by number. Once the program has ended, returns their final state.
    pub fn probes(&self) -> Vec<ProbeView> {
        self.ask(|tracer| tracer.probes.views(&tracer.breakpoints, &tracer.stops))
            .unwrap_or_else(|_| self.inner.stops.kept_probes())
    }

    /// Returns the conditions and messages that have failed since the last call.
    pub fn untold_failures(&self) -> Vec<(ProbeId, Failed)> {
        self.inner.stops.failures.untold()
    }

    /// Adds a probe for the next run of a program that has ended.
    #[must_use]
    pub fn keep_probe(&self, spec: ProbeSpec) -> ProbeView {
        self.inner.stops.change_probes(|probes| {
            let newest = probes.iter().map(|probe| probe.id).max();
            let view = ProbeView {
                id: newest.unwrap_or(0) + 1,
                spec,
                state: ProbeState::Pending,
                places: Vec::new(),
                hits: 0,
                passed_until: 0,
                message: Some("the program has ended: restart sets it".to_owned()),
                existed: false,
                failed: None,
            };
            probes.push(view.clone());
            view
        })
    }

    /// Gives a probe of a program that has ended another condition for the next run, or none.
    ///
    /// # Errors
    /// There is no such probe, or the condition has a name that exists at none of its places.
    pub fn keep_condition(&self, id: ProbeId, condition: Option<Condition>) -> Result<ProbeView> {
        let known = self.probes().into_iter().find(|probe| probe.id == id);
        let known = known.ok_or(LiveError::NoProbe(id))?;
        let spec = ProbeSpec {
            condition,
            ..known.spec
        };
        check_names(&self.space(), self.kept(), &spec, &known.places)?;
        self.change_kept(id, |probes, at| {
            probes[at].spec = spec;
            for_the_next_run(&mut probes[at])
        })
    }

    /// Changes a probe of a program that has ended.
    fn change_kept(
        &self,
        id: ProbeId,
        change: impl FnOnce(&mut Vec<ProbeView>, usize) -> ProbeView,
    ) -> Result<ProbeView> {
        let changed = self.inner.stops.change_probes(|probes| {
            let at = probes.iter().position(|probe| probe.id == id)?;
            Some(change(probes, at))
        });
        Ok(changed.ok_or(LiveError::NoProbe(id))?)
    }

    /// Removes a probe. Threads stopped at it stay stopped, and stops at it that were not shown count as shown. Once the program has
    /// ended, `restart` does not set it again.
    ///
    /// # Errors
    /// There is no such probe.
    pub fn remove_probe(&self, id: ProbeId) -> Result<ProbeView> {
        let removed = self.ask(move |tracer| {
            tracer.pass_stops_at(id, u64::MAX);
            tracer.remove_probe(id)
        });
        match removed {
            Err(LiveError::Ended) => self.change_kept(id, |probes, at| probes.remove(at)),
            removed => Ok(removed??),
        }
    }

    /// Switches a probe on or off. Stops at it that were not shown count as shown when it is off.
    ///
    /// # Errors
    /// There is no such probe, or no debug register left.
    pub fn enable_probe(&self, id: ProbeId, on: bool) -> Result<ProbeView> {
        let enabled = self.ask(move |tracer| {
            tracer.tracee.following.has_let_go &= !on;
            if !on {
                tracer.pass_stops_at(id, u64::MAX);
            }
            tracer.enable_probe(id, on)
        });
        match enabled {
            Err(LiveError::Ended) => self.change_kept(id, |probes, at| {
                probes[at].state = match on {
                    true => ProbeState::Pending,
                    false => ProbeState::Disabled,
                };
                probes[at].clone()
            }),
            enabled => Ok(enabled??),
        }
    }

    /// Lets a probe act only after `times` more hits, which are counted as others are; 0: at the next one. Once the program has
    /// ended, they are hits of the next run.
    ///
    /// # Errors
    /// There is no such probe.
    pub fn pass_probe(&self, id: ProbeId, times: u64) -> Result<ProbeView> {
        let passed = self.ask(move |tracer| tracer.pass_probe(id, times));
        match passed {
            Err(LiveError::Ended) => self.change_kept(id, |probes, at| {
                probes[at].passed_until = match times {
                    0 => 0,
                    times => probes[at].hits.saturating_add(times),
                };
                for_the_next_run(&mut probes[at])
            }),
            passed => Ok(passed??),
        }
    }

    /// As [`pass_probe`](Self::pass_probe); the stops at the probe that were not shown are the first of these hits, and count as shown.
    ///
    /// # Errors
    /// There is no such probe.
    pub fn pass_arrivals(&self, id: ProbeId, times: u64) -> Result<ProbeView> {
        let passed = self.ask(move |tracer| {
            let passed = tracer.pass_stops_at(id, times);
            tracer.pass_probe(id, times.saturating_sub(passed))
        });
        Ok(passed??)
    }

    /// Ends a watchpoint with the call whose variable it watches: an access after that call has returned is reported as such, whatever
    /// the condition. This replaces the call of that watchpoint, if there was one.
    ///
    /// # Errors
    /// There is no such probe, or no thread can be stopped where the call returns.
    pub fn watch_until_return(&self, probe: ProbeId, call: WatchedCall) -> Result<()> {
        Ok(self.ask(move |tracer| tracer.watch_until_return(probe, call))??)
    }

    /// Displays an expression: its value in the innermost frame is reported with every stop of a thread and recorded in
    /// the event of the stop. Returns it with its number. An expression that is already displayed keeps its number.
    ///
    /// # Errors
    /// [`MAX_DISPLAYS`](super::MAX_DISPLAYS) expressions are already displayed.
    pub fn display(&self, what: Displaying) -> Result<Display> {
        Ok(self.ask(move |tracer| tracer.probes.displays.add(what))??)
    }

    /// Returns the displayed expressions, in order. Once the program has ended, returns the final list.
    pub fn displays(&self) -> Vec<Display> {
        self.ask(|tracer| tracer.probes.displays.all())
            .unwrap_or_else(|_| self.inner.stops.kept_displays())
    }

    /// Stops displaying these expressions. Returns them.
    ///
    /// # Errors
    /// A number does not exist: all expressions stay displayed.
    pub fn undisplay(&self, ids: &[u32]) -> Result<Vec<Display>> {
        let ids = ids.to_owned();
        Ok(self.ask(move |tracer| tracer.probes.displays.remove(&ids))??)
    }

    /// Makes the program evaluate what can be compiled (the default), or the tracer evaluate everything. The results
    /// are the same; this exists to compare them.
    ///
    /// # Errors
    /// [`LiveError::Ended`].
    pub fn compile_probes(&self, on: bool) -> Result<()> {
        Ok(self.ask(move |tracer| tracer.compile_probes(on))?)
    }
}

/// Marks a probe that has changed after the end as one that the next run sets, unless it is off.
fn for_the_next_run(probe: &mut ProbeView) -> ProbeView {
    if probe.state != ProbeState::Disabled {
        probe.state = ProbeState::Pending;
    }
    probe.clone()
}
