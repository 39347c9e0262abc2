//! Answers threads that ask the tracer to evaluate a probe without being stopped (docs/wire.md, Questions).
//!
//! A ptrace-stop and the way back take tens of microseconds. While the program produces events, the tracer does not
//! sleep between two checks. During this time threads publish their state in shared memory, and the tracer evaluates
//! probes for them as for threads at a trap. Only threads that are to stop run into the trap; the decision about them
//! is kept until then.

use std::{collections::BTreeMap, sync::Arc};

use agent::shared::{Asked, Verdict};
use debuginfo::AddressSpace;

use crate::{
    live::{
        breakpoints::{Breakpoints, sites::User},
        event_loop::Tracer,
        guard::guarded,
        model::{Action, ProbeId, Tid},
        probes::Probes,
        tracee::Tracee,
    },
    stop::Registers,
};

/// Number of polls without a question, some 10 us, before returning to other work.
const LOOKS: u32 = 400;
/// Number of questions to answer before returning to other work.
const MOST_ANSWERS: u32 = 32;

/// The questions of threads.
#[derive(Debug, Default)]
pub(crate) struct StoplessQueries {
    /// Whether there is code that asks.
    pub are_expected: bool,
    /// Threads that were directed into the trap.
    decided: Vec<Decided>,
    /// By probe and address: how many inlined calls are still to come, and how many lie inside the function whose
    /// variables the probe refers to. Valid as long as the modules are the same.
    before: BTreeMap<(ProbeId, u64), (usize, usize)>,
    modules: Arc<AddressSpace>,
}

/// A thread that is to be stopped at a probe.
#[derive(Clone, Copy, Debug)]
struct Decided {
    tid: Tid,
    probe: ProbeId,
    address: u64,
    /// The thread's stack pointer, to distinguish it from a signal handler that runs into the same trap first.
    stack: u64,
    hits: u64,
}

/// Returns the general registers of a thread that asks.
fn registers_of(asked: &Asked) -> Registers {
    let [rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, others @ ..] = asked.registers;
    let [r8, r9, r10, r11, r12, r13, r14, r15] = others;
    Registers {
        rax,
        rdx,
        rcx,
        rbx,
        rsi,
        rdi,
        rbp,
        rsp,
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        rip: asked.site,
        eflags: asked.flags,
        fs_base: asked.thread_block,
        // The thread is in no system call.
        orig_rax: u64::MAX,
        cs: 0,
        ss: 0,
        ds: 0,
        es: 0,
        fs: 0,
        gs: 0,
        gs_base: 0,
    }
}

impl StoplessQueries {
    /// Returns, once, how often the probe was hit, if it was already evaluated for a thread that is now at the trap.
    pub fn take_decided(
        &mut self,
        tid: Tid,
        probe: ProbeId,
        at: impl FnOnce() -> Option<(u64, u64)>,
    ) -> Option<u64> {
        if self.decided.is_empty() {
            return None;
        }
        let is_its = |decided: &Decided| decided.tid == tid && decided.probe == probe;
        let index = self.decided.iter().position(is_its)?;
        let decided = self.decided.swap_remove(index);
        (at() == Some((decided.address, decided.stack))).then_some(decided.hits)
    }
}

impl Tracer {
    /// Answers threads as long as they ask, and a little longer. Returns whether one did.
    pub fn answer_queries(&mut self) -> bool {
        let Some(shared) = self.breakpoints.compiling.shared.clone() else {
            return false;
        };
        shared.listen(true);
        let (mut answered, mut idle) = (0, 0);
        while answered < MOST_ANSWERS && idle < LOOKS {
            match shared.take_ask() {
                Some(asked) => {
                    let number = asked.number;
                    shared.answer(number, self.asked(asked));
                    answered += 1;
                    idle = 0;
                }
                None => {
                    std::hint::spin_loop();
                    idle += 1;
                }
            }
        }
        answered != 0
    }

    /// Makes threads run into traps from now on. Earlier questions are still answered.
    pub fn stop_listening(&mut self) {
        let Some(shared) = self.breakpoints.compiling.shared.clone() else {
            return;
        };
        shared.listen(false);
        while let Some(asked) = shared.take_ask() {
            let number = asked.number;
            shared.answer(number, self.asked(asked));
        }
    }

    fn asked(&mut self, asked: Asked) -> Verdict {
        let registers = registers_of(&asked);
        let tid = asked.tid as Tid;
        let (address, stack) = (registers.rip, registers.rsp);
        self.tracee.asking = Some((registers, Arc::new(asked)));
        let verdict = guarded(|| self.judge_asked(tid, address, stack));
        self.tracee.asking = None;
        verdict.unwrap_or_else(|error| {
            self.journal.log_panic(&error);
            Verdict::Stop
        })
    }

    /// Decides about a thread that has reached `address`.
    fn judge_asked(&mut self, tid: Tid, address: u64, stack: u64) -> Verdict {
        self.probes
            .stopless
            .decided
            .retain(|decided| decided.tid != tid);
        // The users of the site have changed in the meantime: leave it to the trap.
        let probe = self.breakpoints.sites.at(address).and_then(|site| {
            let mut users = site.users.iter();
            match (users.next(), users.next()) {
                (Some(User::Probe(id)), None) => Some(*id),
                _ => None,
            }
        });
        let (Some(id), true) = (probe, self.tracee.threads.contains_key(&tid)) else {
            return Verdict::Stop;
        };
        self.look_at_faults(tid, address);
        let (_, inside) = self.probes.known_calls(&self.tracee, id, address);
        self.tracee.set_calls_to_come(tid, inside);
        let wanted = self.judging().evaluate_probe(tid, id);
        self.tracee.set_calls_to_come(tid, 0);
        let Some(wanted) = wanted else {
            return Verdict::Pass;
        };
        let probe = self.probes.by_id.get(&id);
        if probe.is_some_and(|probe| matches!(probe.view.spec.action, Action::Log { .. })) {
            return Verdict::Pass;
        }
        self.probes.stopless.decided.push(Decided {
            tid,
            probe: id,
            address,
            stack,
            hits: wanted.hits,
        });
        Verdict::Stop
    }
}

impl Breakpoints {
    /// Makes a thread that waits for an answer run into the trap. Returns whether it had asked.
    pub fn dismiss(&self, tid: Tid) -> bool {
        let shared = self.compiling.shared.as_ref();
        shared.is_some_and(|shared| shared.dismiss(tid as u32))
    }
}

impl Probes {
    /// Forgets a thread that has ended.
    pub fn forget_queries(&mut self, breakpoints: &Breakpoints, tid: Tid) {
        self.stopless.decided.retain(|decided| decided.tid != tid);
        if let Some(shared) = &breakpoints.compiling.shared {
            shared.forget_asks(tid as u32);
        }
    }

    /// Returns how many of the inlined calls at a place of a probe are still to come, and in how many its names are not
    /// looked up.
    pub fn known_calls(&mut self, tracee: &Tracee, id: ProbeId, address: u64) -> (usize, usize) {
        let space = tracee.space_now();
        if !Arc::ptr_eq(&space, &self.stopless.modules) {
            self.stopless.modules = space;
            self.stopless.before.clear();
        }
        if let Some(before) = self.stopless.before.get(&(id, address)) {
            return *before;
        }
        let before = (
            self.calls_before(id, address),
            self.calls_inside(tracee, id, address),
        );
        self.stopless.before.insert((id, address), before);
        before
    }
}
