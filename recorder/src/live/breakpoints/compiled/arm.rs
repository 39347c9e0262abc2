//! Decides which probes the program evaluates itself, and installs their code and jumps.
//!
//! A probe is compiled when it is set or changed. Its jump is written when the probe is the only user of its site and
//! the five bytes hold no other trap. As soon as another trap is needed there, a trap replaces the jump. While a jump
//! is not possible, the trap has the same effect.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};

use agent::shared::{COUNTERS_BYTES, COUNTERS_OFFSET, Shared, TRACER_OFFSET};
use debuginfo::Mapped;

use super::plan::Surveys;
use crate::{
    displace::PATCH_BYTES,
    live::{
        breakpoints::{Breakpoints, sites::User},
        error::LiveResult,
        event_loop::Tracer,
        model::{EvaluatedBy, ProbeId, Tid},
        probes::{Probe, Probes},
        tracee::{Tracee, stopped::Stopped},
    },
};

/// Number of faults at one site after which its code is no longer used.
const MOST_FAULTS: u32 = 16;

/// The state of compiled probes.
#[derive(Debug)]
pub(crate) struct Compiling {
    /// Whether probes are compiled.
    pub is_on: bool,
    /// Whether this program rules out compiling: its stacks may end right below the part in use.
    pub is_unfit: bool,
    /// Addresses in the program's runtime that compiled code calls.
    pub runtime: Option<Runtime>,
    /// Probes to compile or recompile.
    dirty: BTreeSet<ProbeId>,
    /// Sites with code whose jump is not in place, with their probes.
    waiting: BTreeMap<u64, Waiting>,
    /// Those of the waiting sites whose jump may have become possible.
    look_at: BTreeSet<u64>,
    /// Threads that hit missing memory on their way to the trap.
    faulted: BTreeSet<Tid>,
    /// Number of such faults, by site.
    faults: BTreeMap<u64, u32>,
    pub(super) surveys: Surveys,
    /// The memory that the program shares with us. Its counters outlive the program.
    pub shared: Option<Arc<Shared>>,
    /// Number of counters handed out.
    counters: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    probe: ProbeId,
    /// Wait until this many events are in the log.
    after_events: u64,
}

/// Addresses in the program's runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    /// `hs_log`.
    pub log: u64,
    /// `hs_ask`.
    pub ask: u64,
    /// The instruction that reads strings, and where the runtime continues if it faults.
    pub text_load: u64,
    pub text_fault: u64,
    /// The load that finds out whether memory of the program can be read, and where it goes on if not. The runtime of static
    /// programs asks the kernel.
    pub touch: Option<(u64, u64)>,
    /// The word that is marked when we die. Before the runtime is queried, `hs_runtime_at`, which leads there.
    pub tracer: u64,
}

impl Runtime {
    /// Finds the addresses in the runtime's library.
    pub fn find(runtime: &Mapped) -> Option<Runtime> {
        let symbols = runtime.module.symbols();
        let address = |name: &str| {
            let symbol = symbols.iter().find(|symbol| symbol.linkage == name)?;
            Some(runtime.address(symbol.svma))
        };
        Some(Runtime {
            log: address("hs_log")?,
            ask: address("hs_ask")?,
            text_load: address("hs_text_load")?,
            text_fault: address("hs_text_fault")?,
            touch: address("hs_readable_load").zip(address("hs_readable_fault")),
            tracer: address("hs_runtime_at")?,
        })
    }
}

impl Default for Compiling {
    fn default() -> Self {
        Self {
            is_on: true,
            is_unfit: false,
            runtime: None,
            dirty: BTreeSet::new(),
            waiting: BTreeMap::new(),
            look_at: BTreeSet::new(),
            faulted: BTreeSet::new(),
            faults: BTreeMap::new(),
            surveys: Surveys::default(),
            shared: None,
            counters: 0,
        }
    }
}

impl Compiling {
    /// Returns where the runtime continues after its load at `pc` has faulted.
    pub fn after_fault(&self, pc: u64) -> Option<u64> {
        let runtime = self.runtime?;
        (runtime.text_load == pc).then_some(runtime.text_fault)
    }

    /// Notes that a thread has hit missing memory.
    pub fn has_faulted(&mut self, tid: Tid) {
        self.faulted.insert(tid);
    }

    /// Starts over after the program has executed another program.
    pub fn clear(&mut self) {
        *self = Self {
            is_on: self.is_on,
            is_unfit: self.is_unfit,
            ..Self::default()
        };
    }

    /// Returns a word of the counters by its address in the program, which may have ended.
    fn count(&self, at: u64) -> Option<&AtomicU64> {
        let counters = self.counters_at()?;
        let shared = self.shared.as_ref()?;
        let offset = at.checked_sub(counters)?;
        (offset < COUNTERS_BYTES).then(|| shared.counter(offset))
    }

    /// Returns the address of the counters in the program.
    fn counters_at(&self) -> Option<u64> {
        let control = self.runtime?.tracer - TRACER_OFFSET;
        Some(control + COUNTERS_OFFSET)
    }

    /// Takes a counter and the word after it, which holds the number to stop at. Returns its address in the program.
    pub(super) fn take_counter(&mut self) -> Option<u64> {
        let at = self.counters_at()? + self.counters * COUNTER_BYTES;
        let is_there = self.counters < COUNTERS_BYTES / COUNTER_BYTES;
        self.counters += u64::from(is_there);
        is_there.then_some(at)
    }

    /// Returns whether there is nothing to compile and no jump to write.
    pub fn is_settled(&self) -> bool {
        self.dirty.is_empty() && self.look_at.is_empty()
    }
}

/// A word that counts, and a word with the limit.
const COUNTER_BYTES: u64 = 16;

impl Breakpoints {
    /// Notes that the runtime is in the program and has started.
    pub fn runtime_found(&mut self, tracee: &Tracee, runtime: Runtime) {
        let distance = tracee.memory.word(runtime.tracer).unwrap_or(0);
        let control = tracee.memory.word(runtime.tracer.wrapping_add(distance));
        let control = control.ok().filter(|at| *at != 0);
        self.compiling.runtime = control.map(|control| Runtime {
            tracer: control + TRACER_OFFSET,
            ..runtime
        });
    }

    pub fn compile_later(&mut self, id: ProbeId) {
        self.compiling.dirty.insert(id);
    }

    /// Notes that a site has changed: its jump, or that of a nearby site, may now be possible.
    pub fn site_changed(&mut self, address: u64) {
        // If a hook has moved the instruction, its trap or jump is elsewhere.
        let Some(at) = self.sites.at(address).map(|site| site.patched_at) else {
            return;
        };
        let near = self
            .sites
            .near(at.saturating_sub(PATCH_BYTES as u64)..=at + PATCH_BYTES as u64);
        let waiting = near.filter(|near| self.compiling.waiting.contains_key(near));
        let waiting: Vec<u64> = waiting.collect();
        self.compiling.look_at.extend(waiting);
    }

    /// Recompiles messages after modules were loaded or unloaded: the addresses in them may have changed.
    pub fn compile_messages_anew(&mut self, probes: &Probes) {
        self.compiling.surveys.clear();
        let messages = probes.by_id.values().filter(|probe| probe.logs());
        let ids: Vec<ProbeId> = messages.map(|probe| probe.view.id).collect();
        self.compiling.dirty.extend(ids);
    }

    /// Returns the hits including those that the program has counted.
    pub fn total_hits(&self, probe: &Probe) -> u64 {
        let counted = probe.counter_at.and_then(|at| self.compiling.count(at));
        let counted = counted.map_or(0, |word| word.load(Acquire));
        probe.view.hits.wrapping_add(counted)
    }

    /// Lowers the program's count limit after the tracer has counted a hit.
    pub fn tell_count(&self, probe: &Probe) {
        if let Some(at) = probe.counter_at
            && probe.view.spec.hit_count != 0
        {
            let until = probe.view.spec.hit_count.wrapping_sub(probe.view.hits);
            if let Some(word) = self.compiling.count(at + 8) {
                word.store(until, Release);
            }
        }
    }

    /// Returns whether a halted thread is in compiled probe code.
    pub fn is_judging(&self, stopped: &Stopped<'_>) -> bool {
        let Ok(registers) = stopped.registers() else {
            return false;
        };
        let pc = registers.rip;
        let runtime = self.compiling.runtime;
        let reads_text = runtime.is_some_and(|r| (r.text_load..r.text_fault).contains(&pc));
        reads_text || self.sites.is_judging(pc)
    }

    /// Runs a halted thread out of our code: the code that records or evaluates, and the code after a displaced
    /// instruction. Its registers and frames are then the program's. It may reach the trap; then it is at its site.
    pub fn leave_ours(&mut self, tracee: &mut Tracee, tid: Tid) -> LiveResult<()> {
        self.dismiss(tid);
        // The thread may be waiting there for a copy of memory whose maker waits for the tracer.
        let shared = self.compiling.shared.clone();
        let pass = |passes| {
            if let Some(shared) = &shared {
                shared.pass_copies(passes);
            }
        };
        pass(true);
        let left = self.step_out_of_ours(tracee, tid);
        pass(false);
        left
    }

    fn step_out_of_ours(&mut self, tracee: &mut Tracee, tid: Tid) -> LiveResult<()> {
        const MOST_STEPS: usize = 20_000;
        let mut pc = tracee.registers(tid)?.rip;
        for _ in 0..MOST_STEPS {
            let is_ours = self.sites.is_judging(pc) || self.exact_pc(tracee, pc).is_none();
            if !is_ours || self.sites.by_trap(pc).is_some() {
                return Ok(());
            }
            let signal = tracee.step_once(tid)?;
            pc = tracee.registers(tid)?.rip;
            let target = self
                .compiling
                .after_fault(pc)
                .or(self.sites.no_answer_at(pc));
            match (signal, target) {
                (libc::SIGTRAP, _) => {}
                (libc::SIGSEGV | libc::SIGBUS, Some(target)) => {
                    tracee.stopped(tid)?.move_to_pc(target)?;
                    pc = target;
                }
                // The signal is delivered when the thread resumes.
                (signal, _) => tracee.keep_signal(tid, signal),
            }
        }
        Ok(())
    }
}

impl Tracer {
    /// Switches compiling on or off, also for existing probes.
    pub fn compile_probes(&mut self, on: bool) {
        self.breakpoints.compiling.is_on = on;
        let all: Vec<ProbeId> = self.probes.by_id.keys().copied().collect();
        self.breakpoints.compiling.dirty.extend(all);
        self.settle_compiled();
    }

    /// Compiles what is scheduled, and writes the jumps that are possible. Must be called while no thread is being
    /// handled.
    pub fn settle_compiled(&mut self) {
        if self.tracee.is_held || self.breakpoints.compiling.is_settled() {
            return;
        }
        for id in std::mem::take(&mut self.breakpoints.compiling.dirty) {
            self.compile_probe(id);
        }
        self.arm_waiting();
    }

    fn compile_probe(&mut self, id: ProbeId) {
        let Some(probe) = self.probes.by_id.get(&id) else {
            return;
        };
        let spec = probe.view.spec.clone();
        let wanted = probe.is_enabled && probe.may_be_compiled();
        let places = probe.view.places.iter();
        let addresses: Vec<u64> = places
            .filter(|place| place.problem.is_none())
            .map(|place| place.address)
            .collect();
        let mut judged = BTreeMap::new();
        for address in addresses {
            self.give_up_code(address, id);
            if !wanted {
                continue;
            }
            let made =
                match self.breakpoints.compiling.is_on && !self.breakpoints.compiling.is_unfit {
                    true => self.make_code(id, &spec, address),
                    false => Err("compiling is switched off".to_owned()),
                };
            judged.insert(address, made.unwrap_or_else(EvaluatedBy::ByTracer));
        }
        // The formats of messages must be in the log before the first record.
        let after_events = self.journal.sent();
        let made = judged
            .iter()
            .filter(|(_, j)| !matches!(j, EvaluatedBy::ByTracer(_)));
        let waiting = made.map(|(address, _)| {
            (
                *address,
                Waiting {
                    probe: id,
                    after_events,
                },
            )
        });
        let waiting: Vec<(u64, Waiting)> = waiting.collect();
        let addresses = waiting.iter().map(|(address, _)| *address);
        self.breakpoints.compiling.look_at.extend(addresses);
        self.breakpoints.compiling.waiting.extend(waiting);
        if let Some(probe) = self.probes.by_id.get_mut(&id) {
            for place in &mut probe.view.places {
                place.judged = judged.get(&place.address).cloned();
            }
        }
    }

    /// Removes a probe's jump and code at a site.
    fn give_up_code(&mut self, address: u64, id: ProbeId) {
        let is_its = self
            .breakpoints
            .compiling
            .waiting
            .get(&address)
            .is_some_and(|w| w.probe == id);
        let site = self.breakpoints.sites.at(address);
        let alone = site.is_some_and(|site| site.users.iter().all(|user| *user == User::Probe(id)));
        if is_its || alone {
            self.disarm(address);
            self.breakpoints.compiling.waiting.remove(&address);
            self.breakpoints.sites.detach_code(address);
        }
    }

    fn arm_waiting(&mut self) {
        let written = self.journal.written();
        let (mut ready, mut later) = (Vec::new(), BTreeSet::new());
        for address in std::mem::take(&mut self.breakpoints.compiling.look_at) {
            let Some(waiting) = self.breakpoints.compiling.waiting.get(&address) else {
                continue;
            };
            if self
                .breakpoints
                .sites
                .may_arm(address, User::Probe(waiting.probe))
            {
                match waiting.after_events <= written {
                    true => ready.push(address),
                    false => _ = later.insert(address),
                }
            }
        }
        self.breakpoints.compiling.look_at = later;
        if ready.is_empty() {
            return;
        }
        if self.hold().is_err() {
            self.release();
            // The sites need no change nearby before the next attempt.
            self.breakpoints.compiling.look_at.extend(ready);
            return;
        }
        let mut armed = Vec::new();
        for address in ready {
            let waiting = self.breakpoints.compiling.waiting.get(&address).copied();
            // Two sites that block each other are both ready; the first one wins.
            let may = waiting.is_some_and(|w| {
                self.breakpoints
                    .sites
                    .may_arm(address, User::Probe(w.probe))
            });
            if may
                && self
                    .breakpoints
                    .sites
                    .arm(&self.tracee.memory, address)
                    .is_ok()
            {
                self.breakpoints.compiling.waiting.remove(&address);
                armed.push(address);
            }
        }
        let memory = self.tracee.memory.clone();
        let sites = std::mem::take(&mut self.breakpoints.sites);
        // A thread that cannot be read now shows this when it resumes.
        let _ = self.with_stopped(|process| sites.move_threads(&memory, process, &armed));
        self.breakpoints.sites = sites;
        self.release();
    }

    /// Replaces the jump of a site, if it has one, by a trap.
    pub fn disarm(&mut self, address: u64) {
        let Some(site) = self
            .breakpoints
            .sites
            .at(address)
            .filter(|site| site.is_armed())
        else {
            return;
        };
        let probe = site.users.iter().find_map(|user| match user {
            User::Probe(id) => Some(*id),
            _ => None,
        });
        let was_holding = self.tracee.is_held;
        if !was_holding {
            // A thread that does not stop is in the kernel, and executes none of these bytes.
            let _ = self.hold();
        }
        self.breakpoints.sites.disarm(&self.tracee.memory, address);
        if !was_holding {
            self.release();
        }
        if let Some(probe) = probe {
            let waiting = Waiting {
                probe,
                after_events: 0,
            };
            self.breakpoints.compiling.waiting.insert(address, waiting);
        }
    }

    /// Counts a fault if the thread at the trap of a site has hit missing memory. If this happens often, the tracer
    /// takes over: if we were killed while a thread is halted for such a fault, the kernel would deliver the signal.
    pub fn look_at_faults(&mut self, tid: Tid, address: u64) {
        if !self.breakpoints.compiling.faulted.remove(&tid) {
            return;
        }
        let faults = self
            .breakpoints
            .compiling
            .faults
            .entry(address)
            .or_default();
        *faults += 1;
        if *faults < MOST_FAULTS {
            return;
        }
        self.disarm(address);
        let Some(waiting) = self.breakpoints.compiling.waiting.remove(&address) else {
            return;
        };
        if let Some(probe) = self.probes.by_id.get_mut(&waiting.probe) {
            let places = probe.view.places.iter_mut();
            for place in places.filter(|place| place.address == address) {
                let why = "memory that it reads is often not there".to_owned();
                place.judged = Some(EvaluatedBy::ByTracer(why));
            }
        }
    }

    /// Makes way for a trap of `user` at `address`: jumps that begin there or cover it become traps.
    pub fn make_way(&mut self, address: u64, user: User) {
        let site = self.breakpoints.sites.at(address);
        let is_its = site.is_some_and(|site| site.users.contains(&user));
        if !is_its {
            self.disarm(address);
        }
        let at = self
            .breakpoints
            .sites
            .trap_address(&self.tracee.memory, address);
        if let Some(other) = self.breakpoints.sites.jump_over(at) {
            self.disarm(other);
        }
    }
}
