//! Watchpoints: the processor's debug registers, which are the same in all threads.
//!
//! A thread has run past the access when it stops. The processor cannot tell reads from writes where both count, so that
//! an access with a changed value is a write; one that writes the same value again is told of as a read.
//!
//! What stood there before and what stands there now is read when a thread has stopped: what other threads wrote in between is
//! in it, and then the stop says so.

use std::collections::BTreeSet;

use crate::{
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Access, ProbeId, Reason, Tid},
        tracee::{event::Event, hold::COPY_PATIENCE},
    },
    stop::ptrace,
};

/// How many the processor has.
const REGISTERS: usize = 4;
/// Debug register 7: "local exact", as the manuals recommend.
const CONTROL_BASE: u64 = 1 << 8;

/// One watched place.
#[derive(Clone, Debug)]
struct Watch {
    probe: ProbeId,
    address: u64,
    len: u8,
    access: Access,
    last: Vec<u8>,
    /// Threads whose access is still to be looked at, and may be in `last` already.
    seen_early: BTreeSet<Tid>,
}

/// An access that counts.
struct Told {
    probe: ProbeId,
    old: Vec<u8>,
    new: Vec<u8>,
    shared: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Watchpoints {
    watches: [Option<Watch>; REGISTERS],
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

    /// Returns those that wait for writes only, one bit each.
    pub fn of_writes(&self) -> u64 {
        self.bits(|watch| matches!(watch.access, Access::Write))
    }

    fn bits(&self, is_meant: impl Fn(&Watch) -> bool) -> u64 {
        let used = self.watches.iter().enumerate();
        used.filter(|(_, watch)| watch.as_ref().is_some_and(&is_meant))
            .fold(0, |bits, (number, _)| bits | 1 << number)
    }

    /// Sets the debug registers of one halted thread.
    pub fn set_in(&self, tid: Tid) {
        if !self.are_set() {
            return;
        }
        // A thread that was killed needs none; one whose registers cannot be set shows when nothing is ever reported.
        let _ = ptrace::set_debug_register(tid, 7, 0);
        for (number, watch) in self.watches.iter().enumerate() {
            let address = watch.as_ref().map_or(0, |watch| watch.address);
            let _ = ptrace::set_debug_register(tid, number, address);
        }
        let _ = ptrace::set_debug_register(tid, 7, self.control());
    }

    pub fn clear_in(&self, tid: Tid) {
        if self.are_set() {
            let _ = ptrace::set_debug_register(tid, 7, 0);
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
    /// Watchpoints a place in all threads.
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
            last,
            seen_early: BTreeSet::new(),
        });
        let set = self.set_watches();
        if set.is_err() {
            self.probes.watchpoints.watches[free] = None;
        }
        set
    }

    /// Watchpoints it no longer.
    pub fn remove_watch(&mut self, probe: ProbeId) {
        let place = self
            .probes
            .watchpoints
            .watches
            .iter()
            .position(|watch| watch.as_ref().is_some_and(|watch| watch.probe == probe));
        if let Some(place) = place {
            self.probes.watchpoints.watches[place] = None;
            // What does not stop keeps its register, and what it reports is nobody's.
            let _ = self.set_watches();
        }
    }

    fn set_watches(&mut self) -> LiveResult<()> {
        let held = self.hold();
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            if self.tracee.threads[&tid].is_halted() {
                if self.probes.watchpoints.are_set() {
                    self.probes.watchpoints.set_in(tid);
                } else {
                    let _ = ptrace::set_debug_register(tid, 7, 0);
                }
            }
        }
        self.release();
        held
    }

    /// What is watched was written to from outside: that is no access of the program's.
    pub fn look_at_watches(&mut self) {
        for watch in self.probes.watchpoints.watches.iter_mut().flatten() {
            let mut now = vec![0; watch.last.len()];
            if self.tracee.memory.read(watch.address, &mut now).is_ok() {
                watch.last = now;
            }
        }
    }

    /// Debug registers have fired in a thread. Others are held meanwhile: those that have written there too are known then.
    pub fn watched(&mut self, tid: Tid, bits: u64) {
        let holds = !self.tracee.is_held && self.tracee.others_run(tid);
        if holds {
            // What does not stop in time stays running; the access is told all the same.
            let _ = self.hold_within(COPY_PATIENCE);
        }
        self.accessed(tid, bits);
        if holds {
            self.release();
        }
    }

    fn accessed(&mut self, tid: Tid, bits: u64) {
        // The instruction may have run in a slot or a copy: its successor in the program is what conditions and stops name.
        // A thread that cannot be moved was killed.
        let _ = self.leave_ours(tid);
        let mut told = None;
        for number in 0..REGISTERS {
            if bits & 1 << number == 0 {
                continue;
            }
            let Some(access) = self.access(tid, number) else {
                continue;
            };
            // Each of them counts its hits, and one stop tells of the first.
            if let Some(all_threads) = self.judge_watch(tid, access.probe) {
                told.get_or_insert((access, all_threads));
            }
        }
        let is_stepping = self
            .tracee
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.is_stepping);
        if let Some((access, all_threads)) = told {
            let Told {
                probe,
                old,
                new,
                shared,
            } = access;
            let reason = Reason::Watch {
                probe,
                old,
                new,
                shared,
            };
            self.halt(tid, reason, all_threads);
        } else if is_stepping {
            self.stepped(tid);
        } else {
            self.go_on(tid);
        }
    }

    /// Looks at what a thread has accessed; `None` if that is not what is waited for.
    fn access(&mut self, tid: Tid, number: usize) -> Option<Told> {
        let writers = self.writers_besides(tid, number);
        let watch = self.probes.watchpoints.watches[number].as_mut()?;
        let mut now = vec![0; watch.last.len()];
        self.tracee.memory.read(watch.address, &mut now).ok()?;
        let old = std::mem::replace(&mut watch.last, now.clone());
        // Its write may be in what was read for another thread.
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
        })
    }

    /// Returns the other threads that have accessed the same place, and are still to be looked at.
    fn writers_besides(&self, tid: Tid, number: usize) -> Vec<Tid> {
        let accessed = |event: &Option<Event>| matches!(event, Some(Event::Watch { bits }) if bits & 1 << number != 0);
        let threads = self.tracee.threads.iter();
        threads
            .filter(|(other, thread)| {
                **other != tid && thread.halt().is_some_and(|halt| accessed(&halt.pending))
            })
            .map(|(other, _)| *other)
            .collect()
    }
}
