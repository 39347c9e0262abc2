//! Watchpoints: the processor's debug registers, set identically in all threads.
//!
//! A thread stops after the access. The processor cannot tell reads from writes if both count, so an access that
//! changed the value is a write. A write of the same value is reported as a read.
//!
//! The old and new values are read when a thread has stopped. They include what other threads wrote in between; the
//! stop then says so.
//!
//! A watched variable lasts as long as its call. Calls of one function in one place of the stack look the same afterwards, so a
//! trap where the call returns tells its end.

use std::collections::{BTreeMap, BTreeSet};

use debuginfo::{AddressSpace, Diagnostic};

use super::logged_place::{Found, LoggedRange};
use crate::live::{
    breakpoints::sites::User,
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    model::{Access, Action, ProbeId, ProbeState, Reason, Tid, WatchedCall},
    probes::Probes,
    tracee::{Tracee, hold::COPY_PATIENCE, stopped::Stopped},
};

/// Number of watchpoints that the processor has.
pub(super) const REGISTERS: usize = 4;
/// Debug register 7: "local exact", as the manuals recommend.
const CONTROL_BASE: u64 = 1 << 8;

#[derive(Clone, Debug)]
struct Watch {
    probe: ProbeId,
    address: u64,
    len: u8,
    access: Access,
    /// The number of the module that it is in.
    module: Option<u32>,
    /// The number of the place that it is a part of, if its writes are logged: nothing stops.
    logged: Option<u64>,
    last: Vec<u8>,
    /// Threads with a pending access whose write may already be in `last`.
    seen_early: BTreeSet<Tid>,
}

/// An access to report.
struct Told {
    probe: ProbeId,
    old: Vec<u8>,
    new: Vec<u8>,
    shared: bool,
    /// The call whose variable was watched has returned.
    left: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Watchpoints {
    watches: [Option<Watch>; REGISTERS],
    /// The calls whose variables are watched, also by watchpoints that are disabled.
    calls: BTreeMap<ProbeId, WatchedCall>,
    /// The watchpoints whose call has returned.
    left: BTreeSet<ProbeId>,
}

impl Watchpoints {
    pub fn are_set(&self) -> bool {
        self.watches.iter().any(Option::is_some)
    }

    pub fn address(&self, probe: ProbeId) -> Option<u64> {
        let watches = self.watches.iter().flatten();
        watches
            .filter(|watch| watch.probe == probe)
            .map(|watch| watch.address)
            .next()
    }

    /// Returns the debug registers in use, one bit each.
    pub fn all(&self) -> u64 {
        self.bits(|_| true)
    }

    /// Returns the debug registers that watch writes only, one bit each.
    pub fn of_writes(&self) -> u64 {
        self.bits(|watch| matches!(watch.access, Access::Write))
    }

    /// Returns those of a probe, one bit each.
    pub fn of_probe(&self, probe: ProbeId) -> u64 {
        self.bits(|watch| watch.probe == probe)
    }

    /// Returns those of a place whose writes are logged, one bit each.
    pub fn of_logged(&self, number: u64) -> u64 {
        self.bits(|watch| watch.logged == Some(number))
    }

    /// Returns those that stop threads, one bit each.
    fn that_stop(&self) -> u64 {
        self.bits(|watch| watch.logged.is_none())
    }

    fn bits(&self, is_meant: impl Fn(&Watch) -> bool) -> u64 {
        let used = self.watches.iter().enumerate();
        used.filter(|(_, watch)| watch.as_ref().is_some_and(&is_meant))
            .fold(0, |bits, (number, _)| bits | 1 << number)
    }

    /// Forgets the calls whose variables are watched, after their traps are gone.
    pub fn forget_calls(&mut self) {
        self.calls.clear();
        self.left.clear();
    }

    /// Sets the debug registers of one halted thread.
    pub fn set_in(&self, stopped: &Stopped<'_>) {
        if !self.are_set() {
            return;
        }
        // A killed thread needs no debug registers. A thread whose registers cannot be set never reports an access.
        let _ = stopped.set_debug_register(7, 0);
        for (number, watch) in self.watches.iter().enumerate() {
            let address = watch.as_ref().map_or(0, |watch| watch.address);
            let _ = stopped.set_debug_register(number, address);
        }
        let _ = stopped.set_debug_register(7, self.control());
    }

    pub fn clear_in(&self, stopped: &Stopped<'_>) {
        if self.are_set() {
            let _ = stopped.set_debug_register(7, 0);
        }
    }

    fn control(&self) -> u64 {
        let mut control = 0;
        for (number, watch) in self.watches.iter().enumerate() {
            let Some(watch) = watch else {
                continue;
            };
            let kind = match watch.access {
                Access::Write => 0b01,
                Access::Read | Access::Both => 0b11,
            };
            let len = match watch.len {
                1 => 0b00,
                2 => 0b01,
                8 => 0b10,
                _ => 0b11,
            };
            control |= 1 << (2 * number) | (len << 2 | kind) << (16 + 4 * number);
        }
        if control == 0 {
            0
        } else {
            control | CONTROL_BASE
        }
    }
}

impl Tracer {
    /// Watches a range in all threads.
    pub fn add_watch(
        &mut self,
        probe: ProbeId,
        address: u64,
        len: u8,
        access: Access,
    ) -> LiveResult<()> {
        if !matches!(len, 1 | 2 | 4 | 8) || !address.is_multiple_of(u64::from(len)) {
            let len = u64::from(len);
            return Err(LiveError::Unwatchable { address, len });
        }
        let free = self
            .probes
            .watchpoints
            .watches
            .iter()
            .position(Option::is_none)
            .ok_or(LiveError::NoWatchpointLeft)?;
        let mut last = vec![0; usize::from(len)];
        self.tracee
            .memory
            .read(address, &mut last)
            .map_err(|_| LiveError::Memory {
                address,
                len: usize::from(len),
            })?;
        self.probes.watchpoints.watches[free] = Some(Watch {
            probe,
            address,
            len,
            access,
            module: self
                .tracee
                .space_now()
                .at(address)
                .map(|module| module.number),
            logged: None,
            last,
            seen_early: BTreeSet::new(),
        });
        let set = self.set_watches();
        if set.is_err() {
            self.probes.watchpoints.watches[free] = None;
        }
        set
    }

    /// Watches all bytes of a place whose writes are logged: all or nothing.
    pub fn watch_to_log(
        &mut self,
        (probe, number): (ProbeId, u64),
        target: &str,
        place: LoggedRange,
    ) -> LiveResult<()> {
        let pieces = place.pieces();
        let watches = &mut self.probes.watchpoints.watches;
        let free = watches.iter().filter(|watch| watch.is_none()).count();
        if pieces.len() > free {
            return Err(LiveError::Evaluate(too_few(
                target,
                &Found::Fixed(place),
                free,
            )));
        }
        let mut pieces = pieces.into_iter();
        for watch in watches.iter_mut().filter(|watch| watch.is_none()) {
            *watch = pieces.next().map(|(address, len)| Watch {
                probe,
                address,
                len,
                access: Access::Write,
                module: None,
                logged: Some(number),
                last: Vec::new(),
                seen_early: BTreeSet::new(),
            });
        }
        let set = self.set_watches();
        if set.is_err() {
            self.remove_logged_watches(&[number]);
        }
        set
    }

    /// Removes the watchpoints of places whose writes are logged.
    pub fn remove_logged_watches(&mut self, numbers: &[u64]) {
        for watch in &mut self.probes.watchpoints.watches {
            watch.take_if(|watch| watch.logged.is_some_and(|number| numbers.contains(&number)));
        }
        // A thread that does not stop keeps its register; what it reports is ignored.
        let _ = self.set_watches();
    }

    /// Ends the watchpoints in libraries that are no longer mapped: something else may be at their addresses.
    pub fn end_watches_of_unloaded(&mut self, space: &AddressSpace) {
        let watches = self.probes.watchpoints.watches.iter().flatten();
        let is_gone = |watch: &&Watch| {
            let now = space.at(watch.address).map(|module| module.number);
            watch.module.is_some() && now != watch.module
        };
        let gone: Vec<ProbeId> = watches.filter(is_gone).map(|watch| watch.probe).collect();
        for id in gone {
            self.remove_watch(id);
            let Some(probe) = self.probes.by_id.get_mut(&id) else {
                continue;
            };
            probe.is_enabled = false;
            probe.view.state = ProbeState::Disabled;
            probe.view.message =
                Some("its library was unloaded: set it again once that is loaded".to_owned());
            let view = probe.view.clone();
            self.journal.probe(&self.tracee.space_now(), &view);
        }
    }

    /// Removes the watchpoints of a probe.
    pub fn remove_watch(&mut self, probe: ProbeId) {
        if self.probes.watchpoints.of_probe(probe) == 0 {
            return;
        }
        for watch in &mut self.probes.watchpoints.watches {
            watch.take_if(|watch| watch.probe == probe);
        }
        // A thread that does not stop keeps its register; what it reports is ignored.
        let _ = self.set_watches();
    }

    /// Sets a trap where the call returns whose variable a watchpoint watches.
    pub fn watch_until_return(&mut self, id: ProbeId, call: WatchedCall) -> LiveResult<()> {
        if !self.probes.by_id.contains_key(&id) {
            return Err(LiveError::NoProbe(id));
        }
        self.forget_watched_call(id);
        self.add_site(call.returns_to, User::Return(id))?;
        self.probes.watchpoints.calls.insert(id, call);
        Ok(())
    }

    /// Removes the trap where the call of a watchpoint returns.
    pub fn forget_watched_call(&mut self, id: ProbeId) {
        let watchpoints = &mut self.probes.watchpoints;
        watchpoints.left.remove(&id);
        if let Some(call) = watchpoints.calls.remove(&id) {
            self.remove_site(call.returns_to, User::Return(id));
        }
    }

    /// A thread is where calls return whose variables are watched.
    pub fn leave_watched(&mut self, tid: Tid, address: u64) {
        let Ok(registers) = self.tracee.registers(tid) else {
            return;
        };
        let returned = WatchedCall {
            tid,
            cfa: registers.rsp,
            returns_to: address,
        };
        let calls = self.probes.watchpoints.calls.iter();
        let left = calls.filter(|(_, call)| **call == returned);
        let left: Vec<ProbeId> = left.map(|(id, _)| *id).collect();
        for id in left {
            self.forget_watched_call(id);
            self.probes.watchpoints.left.insert(id);
        }
    }

    /// A thread has executed one instruction and is at `rip`: if that was a return, the thread does not run into the trap there.
    pub fn may_have_left_watched(&mut self, tid: Tid, rip: u64) {
        if self.probes.watchpoints.calls.is_empty() {
            return;
        }
        if let Some(pc) = self.breakpoints.exact_pc(&self.tracee, rip) {
            self.leave_watched(tid, pc);
        }
    }

    /// Forgets the traps in modules that are gone.
    pub fn forget_unmapped_calls(&mut self, space: &AddressSpace) {
        let Tracer {
            tracee,
            breakpoints,
            probes,
            ..
        } = self;
        probes.watchpoints.calls.retain(|_, call| {
            let at = call.returns_to;
            let is_mapped = space.at(at).is_some();
            if !is_mapped {
                breakpoints.sites.forget(&tracee.memory, &(at..at + 1));
            }
            is_mapped
        });
    }

    /// Returns whether a probe stops all threads.
    fn halts_all(&self, id: ProbeId) -> bool {
        let probe = self.probes.by_id.get(&id);
        probe.is_some_and(|probe| {
            matches!(
                probe.view.spec.action,
                Action::Break {
                    all_threads: true,
                    ..
                }
            )
        })
    }

    fn set_watches(&mut self) -> LiveResult<()> {
        let was_holding = self.tracee.is_held;
        let held = self.hold();
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            let Ok(stopped) = self.tracee.stopped(tid) else {
                continue;
            };
            if self.probes.watchpoints.are_set() {
                self.probes.watchpoints.set_in(&stopped);
            } else {
                let _ = stopped.set_debug_register(7, 0);
            }
        }
        if !was_holding {
            self.release();
        }
        held
    }

    /// Handles debug registers that have fired in a thread. Holds the other threads meanwhile, to learn which of them
    /// have also written there.
    pub fn watched(&mut self, tid: Tid, bits: u64) {
        let holds = !self.tracee.is_held && self.tracee.others_run(tid);
        if holds {
            // A thread that does not stop in time keeps running. The access is reported anyway.
            let _ = self.hold_within(COPY_PATIENCE);
        }
        self.accessed(tid, bits);
        if holds {
            self.release();
        }
    }

    fn accessed(&mut self, tid: Tid, bits: u64) {
        self.log_writes(tid, bits);
        let bits = bits & self.probes.watchpoints.that_stop();
        let bits = bits & !self.of_our_accesses(tid, bits);
        if bits == 0 {
            self.go_on_unless_stepping(tid);
            return;
        }
        // The instruction may have run in a slot or a copy; conditions and stops name its successor in the program. A
        // thread that cannot be moved was killed.
        let _ = self.breakpoints.leave_ours(&mut self.tracee, tid);
        let mut told = None;
        for number in 0..REGISTERS {
            if bits & 1 << number == 0 {
                continue;
            }
            let Some(access) = self.probes.access(&self.tracee, tid, number) else {
                continue;
            };
            // Each watchpoint counts its hits; one stop reports the first. What was meant by the condition is gone with the call.
            let judged = match access.left {
                true => Some(self.halts_all(access.probe)),
                false => self.judge_watch(tid, access.probe),
            };
            if let Some(all_threads) = judged {
                told.get_or_insert((access, all_threads));
            }
        }
        if let Some((access, all_threads)) = told {
            let Told {
                probe,
                old,
                new,
                shared,
                left,
            } = access;
            let reason = Reason::Watch {
                probe,
                old,
                new,
                shared,
                left,
            };
            self.halt(tid, reason, all_threads);
        } else {
            self.go_on_unless_stepping(tid);
        }
    }

    /// Returns which of the debug registers our own code has fired, one bit each. For the user nothing has happened: the
    /// stack of a call that has ended still has its variables.
    fn of_our_accesses(&mut self, tid: Tid, bits: u64) -> u64 {
        let (breakpoints, tracee) = (&self.breakpoints, &self.tracee);
        let mut ours = 0;
        for (number, watch) in self.probes.watchpoints.watches.iter_mut().enumerate() {
            let bit = bits & 1 << number;
            let Some(watch) = watch.as_mut().filter(|_| bit != 0) else {
                continue;
            };
            let range = watch.address..watch.address + u64::from(watch.len);
            if breakpoints.is_own_access(tracee, tid, &range) {
                watch.seen_early.remove(&tid);
                ours |= bit;
            }
        }
        ours
    }

    /// No user wants the thread stopped: it continues, or has finished its step.
    fn go_on_unless_stepping(&mut self, tid: Tid) {
        let thread = self.tracee.threads.get(&tid);
        match thread.is_some_and(|thread| thread.is_stepping) {
            true => self.stepped(tid),
            false => self.go_on(tid),
        }
    }
}

impl Probes {
    /// Updates the watched values after a write from outside, which is not an access of the program.
    pub fn look_at_watches(&mut self, tracee: &Tracee) {
        for watch in self.watchpoints.watches.iter_mut().flatten() {
            let mut now = vec![0; watch.last.len()];
            if tracee.memory.read(watch.address, &mut now).is_ok() {
                watch.last = now;
            }
        }
        self.look_at_logged(tracee);
    }

    /// Evaluates an access of a thread; `None` if it is not of the watched kind.
    fn access(&mut self, tracee: &Tracee, tid: Tid, number: usize) -> Option<Told> {
        let writers = tracee.others_that_accessed(tid, 1 << number);
        let watch = self.watchpoints.watches[number].as_mut()?;
        let mut now = vec![0; watch.last.len()];
        tracee.memory.read(watch.address, &mut now).ok()?;
        let old = std::mem::replace(&mut watch.last, now.clone());
        // The value read for another thread may already include this thread's write.
        let was_read = watch.seen_early.remove(&tid);
        watch.seen_early.extend(&writers);
        let counts = match watch.access {
            Access::Write => old != now || was_read,
            Access::Read => old == now,
            Access::Both => true,
        };
        counts.then(|| Told {
            probe: watch.probe,
            old,
            new: now,
            shared: watch.access != Access::Read && (was_read || !writers.is_empty()),
            left: self.watchpoints.left.contains(&watch.probe),
        })
    }
}

/// Returns the error that the processor has too few watchpoints left for a place.
pub(crate) fn too_few(target: &str, found: &Found, free: usize) -> Diagnostic {
    let needed = found.needed();
    let what = Diagnostic::new(format!(
        "{target} ({}) takes {needed} of the processor's four watchpoints of eight bytes, and {} left",
        found.told(),
        match free {
            0 => "none is".to_owned(),
            1 => "one is".to_owned(),
            free => format!("{free} are"),
        }
    ));
    what.with_hint("log fewer places, or a member or an element of them")
}
