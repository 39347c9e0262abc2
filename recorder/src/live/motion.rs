//! Stepping: lets a thread run until it is somewhere else, as a person counts places.
//!
//! A thread with a plan runs one instruction at a time within its line, and at full speed through what it calls: a trap
//! behind the call brings it back, as soon as its stack pointer is where it was before the call (so that only the same
//! frame counts in a recursion). The unwinder and longjmp are watched meanwhile, since they may go past that trap. Code
//! of ours is stepped through without counting.
//!
//! Inlined calls are stepped over and into like others: a thread that gets to the first instruction of an inlined copy
//! stands at the line of the call until it is told to step into it. The rules are gdb's.

use debuginfo::{Frame, Space};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use super::{
    error::{LiveError, LiveResult},
    event::Event,
    goal::{LineGoal, Look},
    hooks::shadow_of,
    machine::{LiveMachine, register_value},
    model::{Location, Motion, Reason, Tid},
    sites::User,
    thread::State,
    tracer::Tracer,
};
use crate::stop::{Registers, ptrace};

/// How a thread with a plan proceeds.
#[derive(Debug)]
pub(crate) struct Plan {
    goal: Goal,
    /// The frame that counts: the value of rsp just before it was entered. 0: not known.
    cfa: u64,
    /// Traps set for this plan.
    pub traps: Vec<u64>,
    /// What to do at a trap.
    arrivals: Vec<Arrival>,
    /// The last place in the program that it was at.
    last_pc: u64,
    /// A signal to deliver once the thread is between two of the program's instructions.
    pub deferred: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Goal {
    /// Another line.
    Line(LineGoal),
    /// Another instruction.
    Instruction { over: bool },
    /// One of the traps.
    Place,
}

/// What reaching a trap means.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    address: u64,
    /// The stack pointer must be at least this: deeper frames do not count.
    lowest_sp: u64,
    then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Stop,
    /// Look where it is, and go on stepping if need be.
    Look,
}

impl Tracer {
    /// Lets a stopped thread go on.
    pub fn resume(&mut self, tid: Tid, motion: Motion, others: bool) -> LiveResult<u64> {
        let thread = self.threads.get(&tid).ok_or(LiveError::NoThread(tid))?;
        if thread.stop.is_none() {
            return Err(LiveError::Running(tid));
        }
        let newest = self.board.newest();
        let to_come = thread.calls_to_come;
        if motion == Motion::Step && to_come > 0 {
            self.journal.resume(tid, &motion);
            self.set_calls_to_come(tid, to_come - 1);
            self.halt(tid, Reason::Step, false);
            return Ok(newest);
        }
        self.abandon_plan(tid);
        let plan = match &motion {
            Motion::Continue => None,
            motion => Some(self.plan(tid, motion)?),
        };
        self.journal.resume(tid, &motion);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.is_moved = plan.is_some() || !others;
        }
        if others {
            let stopped: Vec<Tid> = self
                .threads
                .iter()
                .filter(|(other, thread)| **other != tid && thread.stop.is_some())
                .map(|(other, _)| *other)
                .collect();
            for other in stopped {
                self.journal.resume(other, &Motion::Continue);
                self.let_run(other);
            }
        }
        match plan {
            None => self.let_run(tid),
            Some(plan) => self.begin(tid, plan),
        }
        Ok(newest)
    }

    /// Lets a stopped thread run; what it had to say meanwhile comes first.
    pub fn let_run(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if let Some(event) = thread.pending.take() {
            thread.stop = None;
            self.dispatch_later(tid, event);
        } else {
            self.go(tid, false);
        }
    }

    fn plan(&mut self, tid: Tid, motion: &Motion) -> LiveResult<Plan> {
        let machine = self.machine(tid)?;
        let space = self.space_now();
        let frames = debuginfo::backtrace(&space, &machine, 64).frames;
        let innermost = frames.first();
        let mut plan = Plan {
            goal: Goal::Place,
            cfa: innermost.and_then(|frame| frame.cfa).unwrap_or(0),
            traps: Vec::new(),
            arrivals: Vec::new(),
            last_pc: machine.stop.pc,
            deferred: 0,
        };
        let made = self.plan_motion(tid, &mut plan, motion, &machine, &frames);
        if made.is_err() {
            for trap in plan.traps.drain(..) {
                self.remove_site(trap, User::Step(tid));
            }
        }
        made.map(|()| plan)
    }

    fn plan_motion(
        &mut self,
        tid: Tid,
        plan: &mut Plan,
        motion: &Motion,
        machine: &LiveMachine,
        frames: &[Frame],
    ) -> LiveResult<()> {
        let space = self.space_now();
        let pc = machine.stop.pc;
        match motion {
            Motion::Continue => {}
            Motion::Instruction => plan.goal = Goal::Instruction { over: false },
            Motion::NextInstruction => plan.goal = Goal::Instruction { over: true },
            Motion::Next | Motion::Step => {
                let into = *motion == Motion::Step;
                let goal = LineGoal::of(&space, pc, machine.stop.calls_to_come, into);
                if goal.range.is_empty() {
                    self.out_of(tid, plan, frames, 0, "this code has no lines, and")?;
                } else {
                    plan.goal = Goal::Line(goal);
                }
            }
            Motion::Finish { frame } => match frames.get(*frame) {
                Some(inlined) if inlined.inlined => {
                    self.out_of_copy(tid, plan, frames, *frame)?;
                }
                _ => self.out_of(tid, plan, frames, *frame, "")?,
            },
            Motion::Until(location) => {
                self.until(tid, plan, machine, location)?;
                // Where nothing is known of the caller, only the place counts.
                let _ = self.out_of(tid, plan, frames, 0, "");
            }
        }
        Ok(())
    }

    /// Plans to run until frame `index` has returned.
    fn out_of(
        &mut self,
        tid: Tid,
        plan: &mut Plan,
        frames: &[Frame],
        index: usize,
        because: &str,
    ) -> LiveResult<()> {
        // Inlined calls share the physical frame: its return is what can be waited for.
        let physical = frames
            .iter()
            .enumerate()
            .skip(index)
            .find(|(_, frame)| !frame.inlined)
            .map(|(at, _)| at);
        // What was left by a jump is not returned to.
        let mut callers = physical.iter().flat_map(|at| &frames[at + 1..]);
        let caller = callers.find(|frame| !frame.is_tail_call);
        let cfa = physical.and_then(|at| frames[at].cfa);
        let (Some(caller), Some(cfa)) = (caller, cfa) else {
            let message =
                format!("{because} this frame has no caller to return to; use \"continue\"");
            return Err(LiveError::Motion(message.trim_start().to_owned()));
        };
        plan.goal = Goal::Place;
        self.trap_at(tid, plan, caller.pc, cfa, Then::Stop)?;
        plan.cfa = cfa;
        Ok(())
    }

    /// Plans to run until the inlined call that is frame `index` is done.
    fn out_of_copy(
        &mut self,
        tid: Tid,
        plan: &mut Plan,
        frames: &[Frame],
        index: usize,
    ) -> LiveResult<()> {
        let copy = &frames[index];
        // What it has called returns first.
        if let Some(callee) = frames[..index].iter().rposition(|frame| !frame.inlined) {
            self.out_of(tid, plan, frames, callee, "")?;
            if let Some(arrival) = plan.arrivals.last_mut() {
                arrival.then = Then::Look;
            }
            plan.cfa = copy.cfa.unwrap_or(0);
        }
        let space = self.space_now();
        let mut goal = LineGoal::of(&space, copy.lookup_pc, 0, false);
        goal.line = None;
        goal.range = copy.pc..copy.pc;
        goal.copies.truncate(copy.inline_depth);
        plan.goal = Goal::Line(goal);
        Ok(())
    }

    fn until(
        &mut self,
        tid: Tid,
        plan: &mut Plan,
        machine: &LiveMachine,
        location: &Location,
    ) -> LiveResult<()> {
        let places = self.places(location)?;
        for place in places {
            let lowest_sp = machine.registers.general.rsp;
            self.trap_at(tid, plan, place.address, lowest_sp, Then::Stop)?;
        }
        Ok(())
    }

    fn trap_at(
        &mut self,
        tid: Tid,
        plan: &mut Plan,
        address: u64,
        lowest_sp: u64,
        then: Then,
    ) -> LiveResult<()> {
        self.add_site(address, User::Step(tid))?;
        if !plan.traps.contains(&address) {
            plan.traps.push(address);
        }
        plan.arrivals.push(Arrival {
            address,
            lowest_sp,
            then,
        });
        Ok(())
    }

    fn begin(&mut self, tid: Tid, plan: Plan) {
        let is_stepping = plan.goal != Goal::Place && plan.arrivals.is_empty();
        let pending = self.threads.get_mut(&tid).and_then(|thread| {
            thread.plan = Some(plan);
            thread.pending.take()
        });
        self.watch_landings();
        // A trap that it has run into is where it stands, and passed; a signal is still to be delivered.
        if let Some(event @ (Event::Signal { .. } | Event::Watch { .. })) = pending {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.stop = None;
                thread.is_stepping = is_stepping;
            }
            self.dispatch_later(tid, event);
        } else if is_stepping {
            match self.step_over_one(tid) {
                Ok(()) => {}
                Err(_) => self.go(tid, true),
            }
        } else {
            self.go(tid, false);
        }
    }

    /// A thread has run one instruction.
    pub fn stepped(&mut self, tid: Tid) {
        let Ok(registers) = ptrace::registers(tid) else {
            return;
        };
        let Some(plan) = self
            .threads
            .get(&tid)
            .and_then(|thread| thread.plan.as_ref())
        else {
            self.go(tid, false);
            return;
        };
        let Some(pc) = self.exact_pc(registers.rip) else {
            self.go(tid, true);
            return;
        };
        // A hooked entry is passed twice: at the jump, and at the copy of what it replaced.
        let is_copy = registers.rip != pc && plan.last_pc == pc;
        if is_copy
            && self.memory.hooks_now().over(pc).is_some()
            && !self.stands_at_trap(registers.rip)
        {
            self.go(tid, true);
            return;
        }
        if plan.deferred != 0
            && let Some(thread) = self.threads.get_mut(&tid)
        {
            let plan = thread.plan.as_mut().expect("looked at above");
            let signal = std::mem::take(&mut plan.deferred);
            thread.state = State::Halted { signal };
        }
        if self.stands_at_trap(registers.rip) {
            let address = pc;
            if self.is_probed(address) {
                self.hit(tid, address);
                return;
            }
        }
        self.look_around(tid, &registers, pc);
    }

    fn stands_at_trap(&self, rip: u64) -> bool {
        self.sites
            .by_trap(rip)
            .is_some_and(|site| !site.users.is_empty())
    }

    fn is_probed(&self, address: u64) -> bool {
        self.sites
            .at(address)
            .is_some_and(|site| site.users.iter().any(|user| matches!(user, User::Probe(_))))
    }

    /// Decides whether a thread is where it wanted to get.
    fn look_around(&mut self, tid: Tid, registers: &Registers, pc: u64) {
        let space = self.space_now();
        let Some(plan) = self
            .threads
            .get_mut(&tid)
            .and_then(|thread| thread.plan.as_mut())
        else {
            self.go(tid, false);
            return;
        };
        plan.last_pc = pc;
        let has_returned = plan.cfa != 0 && registers.rsp >= plan.cfa;
        let into = match &mut plan.goal {
            Goal::Place => return self.go(tid, false),
            Goal::Instruction { .. } => return self.halt(tid, Reason::Step, false),
            Goal::Line(goal) if !has_returned && goal.range.contains(&pc) => {
                return self.proceed(tid);
            }
            Goal::Line(goal) => goal.into,
        };
        if has_returned {
            match space.step_line(pc) {
                Some(_) if is_system(&space, pc) => self.leave(tid),
                None => self.leave(tid),
                // What is left of the line of the call belongs to the step.
                Some(here) if here.range.start != pc || !here.is_statement => {
                    self.finish_line(tid, into);
                }
                Some(_) => self.halt_step(tid, pc),
            }
            return;
        }
        let Goal::Line(goal) = &mut plan.goal else {
            return;
        };
        if space.function_at(pc).map(|place| place.entry) != goal.function {
            self.jumped_elsewhere(tid, registers, pc, into);
            return;
        }
        match goal.look(&space, pc) {
            Look::Proceed => self.proceed(tid),
            Look::Stop { calls_to_come } => {
                self.set_calls_to_come(tid, calls_to_come);
                self.halt(tid, Reason::Step, false);
            }
        }
    }

    /// A thread has got where it wanted to; inlined calls that begin there are still to come.
    fn halt_step(&mut self, tid: Tid, pc: u64) {
        let to_come = self.space_now().calls_beginning(pc);
        self.set_calls_to_come(tid, to_come);
        self.halt(tid, Reason::Step, false);
    }

    /// A thread that steps has come to a probe that did not stop it.
    pub fn look_again(&mut self, tid: Tid, pc: u64) {
        if let Ok(registers) = ptrace::registers(tid) {
            self.look_around(tid, &registers, pc);
        }
    }

    /// Runs one more instruction, or what it calls.
    fn proceed(&mut self, tid: Tid) {
        if self.step_over_one(tid).is_err() {
            self.go(tid, true);
        }
    }

    /// A jump has led into another function: its tail call.
    fn jumped_elsewhere(&mut self, tid: Tid, registers: &Registers, pc: u64, into: bool) {
        let space = self.space_now();
        let callee = self.function_to_enter(&space, pc);
        let mut plan = self.take_plan(tid);
        let entered = into
            && callee.is_some_and(|at| self.trap_at(tid, &mut plan, at, 0, Then::Stop).is_ok());
        let slot = plan.cfa.wrapping_sub(8);
        let back = self.return_address(slot);
        let caught = plan.cfa != 0
            && back.is_some_and(|back| {
                let cfa = plan.cfa;
                self.trap_at(tid, &mut plan, back, cfa, Then::Look).is_ok()
            });
        self.put_plan(tid, plan);
        if (entered || caught) && registers.rip != 0 {
            self.go(tid, false);
        } else {
            // Nothing is known about this code: it is stepped through.
            self.go(tid, true);
        }
    }

    /// The frame has returned into the middle of a line: the step ends where the next one begins.
    fn finish_line(&mut self, tid: Tid, into: bool) {
        let Ok(machine) = self.machine(tid) else {
            return;
        };
        let space = self.space_now();
        let frames = debuginfo::backtrace(&space, &machine, 1).frames;
        let mut plan = self.take_plan(tid);
        plan.cfa = frames.first().and_then(|frame| frame.cfa).unwrap_or(0);
        plan.goal = Goal::Line(LineGoal::of_caller(
            &space,
            machine.registers.general.rip,
            into,
        ));
        self.put_plan(tid, plan);
        self.proceed(tid);
    }

    /// The frame has returned to code without lines: that is left too.
    fn leave(&mut self, tid: Tid) {
        let Ok(machine) = self.machine(tid) else {
            return;
        };
        let frames = debuginfo::backtrace(&self.space_now(), &machine, 64).frames;
        let mut plan = self.take_plan(tid);
        let out = self.out_of(tid, &mut plan, &frames, 0, "");
        if out.is_ok() {
            if let Some(arrival) = plan.arrivals.last_mut() {
                arrival.then = Then::Look;
            }
            plan.goal = Goal::Line(LineGoal {
                into: false,
                line: None,
                range: 0..0,
                function: None,
                copies: Vec::new(),
            });
            // Whatever it returns to is outside.
            plan.cfa = plan.cfa.saturating_sub(8);
        } else {
            plan.goal = Goal::Place;
        }
        self.put_plan(tid, plan);
        self.go(tid, false);
    }

    /// Runs the instruction at the thread's pc; if it is a call that is not to be entered, all of the call.
    fn step_over_one(&mut self, tid: Tid) -> LiveResult<()> {
        let registers = self.registers(tid)?;
        let pc = self.original_pc(registers.rip);
        let instruction = self.instruction_at(pc)?;
        let (is_call, enters) = match self.goal(tid) {
            Some(Goal::Line(goal)) => (is_call(&instruction), goal.into),
            Some(Goal::Instruction { over }) => (*over && is_call(&instruction), false),
            _ => return Err(LiveError::Ended),
        };
        if is_call {
            let space = self.space_now();
            let target = enters
                .then(|| self.target_of(&instruction, &registers))
                .flatten()
                .and_then(|target| self.function_to_enter(&space, target));
            let mut plan = self.take_plan(tid);
            let then = match plan.goal {
                Goal::Instruction { .. } => Then::Stop,
                _ => Then::Look,
            };
            let mut set = self.trap_at(tid, &mut plan, instruction.next_ip(), registers.rsp, then);
            if let Some(target) = target
                && set.is_ok()
            {
                set = self.trap_at(tid, &mut plan, target, 0, Then::Stop);
            }
            self.put_plan(tid, plan);
            set?;
            self.go(tid, false);
            return Ok(());
        }
        if instruction.flow_control() == FlowControl::Return {
            let slot = registers.rsp;
            let hooked = self
                .memory
                .word(slot)
                .is_ok_and(|word| self.memory.hooks_now().is_leave(word));
            if hooked && let Some(back) = self.return_address(slot) {
                let mut plan = self.take_plan(tid);
                let set = self.trap_at(tid, &mut plan, back, slot + 8, Then::Look);
                self.put_plan(tid, plan);
                set?;
                self.go(tid, false);
                return Ok(());
            }
        }
        self.go(tid, true);
        Ok(())
    }

    fn goal(&self, tid: Tid) -> Option<&Goal> {
        Some(&self.threads.get(&tid)?.plan.as_ref()?.goal)
    }

    /// A thread with a plan has run into a trap of its plan. Returns whether it stands where it is to be looked at;
    /// otherwise it is on its way.
    pub fn arrived(&mut self, tid: Tid, address: u64) -> bool {
        let Ok(registers) = ptrace::registers(tid) else {
            return true;
        };
        let Some(plan) = self
            .threads
            .get(&tid)
            .and_then(|thread| thread.plan.as_ref())
        else {
            return false;
        };
        let arrival = plan
            .arrivals
            .iter()
            .find(|arrival| arrival.address == address && registers.rsp >= arrival.lowest_sp)
            .copied();
        let Some(arrival) = arrival else {
            return false;
        };
        let mut plan = self.take_plan(tid);
        for trap in std::mem::take(&mut plan.traps) {
            self.remove_site(trap, User::Step(tid));
        }
        plan.arrivals.clear();
        let goal = Some(plan.goal.clone());
        self.put_plan(tid, plan);
        match arrival.then {
            Then::Stop if matches!(goal, Some(Goal::Instruction { .. })) => {
                self.halt(tid, Reason::Step, false);
            }
            Then::Stop => self.halt_step(tid, address),
            Then::Look => self.look_around(tid, &registers, address),
        }
        true
    }

    /// The unwinder, or longjmp, is about to go on at `target` in a thread with a plan.
    pub fn will_land(&mut self, tid: Tid, target: u64) {
        let mut plan = self.take_plan(tid);
        let lowest_sp = plan
            .arrivals
            .iter()
            .map(|arrival| arrival.lowest_sp)
            .filter(|sp| *sp != 0)
            .min()
            .unwrap_or(0);
        let then = match plan.goal {
            Goal::Place => Then::Stop,
            _ => Then::Look,
        };
        // Where no trap can be set, the thread runs on; the person sees it running.
        let _ = self.trap_at(tid, &mut plan, target, lowest_sp, then);
        self.put_plan(tid, plan);
    }

    /// A signal comes while a thread steps: its handler runs at full speed.
    pub fn signal_while_stepping(&mut self, tid: Tid, signal: i32) {
        let Ok(registers) = ptrace::registers(tid) else {
            return;
        };
        let mut plan = self.take_plan(tid);
        let run = match self.exact_pc(registers.rip) {
            Some(pc) => {
                let then = match plan.goal {
                    Goal::Place => None,
                    _ => Some(Then::Look),
                };
                then.is_none_or(|then| {
                    self.trap_at(tid, &mut plan, pc, registers.rsp, then)
                        .is_ok()
                })
            }
            None => false,
        };
        let deliver = if run {
            signal
        } else {
            plan.deferred = signal;
            0
        };
        self.put_plan(tid, plan);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Halted { signal: deliver };
        }
        if run {
            self.run_in_place(tid);
        } else {
            self.go(tid, true);
        }
    }

    pub fn has_plan(&self, tid: Tid) -> bool {
        self.threads
            .get(&tid)
            .is_some_and(|thread| thread.plan.is_some())
    }

    fn take_plan(&mut self, tid: Tid) -> Plan {
        self.threads
            .get_mut(&tid)
            .and_then(|thread| thread.plan.take())
            .unwrap_or(Plan {
                goal: Goal::Place,
                cfa: 0,
                traps: Vec::new(),
                arrivals: Vec::new(),
                last_pc: 0,
                deferred: 0,
            })
    }

    fn put_plan(&mut self, tid: Tid, plan: Plan) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.plan = Some(plan);
        }
    }

    fn instruction_at(&self, pc: u64) -> LiveResult<Instruction> {
        let mut code = [0; 15];
        let missing = |_| LiveError::Memory {
            address: pc,
            len: 1,
        };
        if self.memory.read(pc, &mut code).is_err() {
            let bytes = self.memory.read_up_to(pc, 15);
            if bytes.is_empty() {
                return Err(missing(()));
            }
            code[..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(Decoder::with_ip(64, &code, pc, DecoderOptions::NONE).decode())
    }

    /// Returns the program's own return address in a stack word.
    pub fn return_address(&self, slot: u64) -> Option<u64> {
        let word = self.memory.word(slot).ok()?;
        if self.memory.hooks_now().is_leave(word) {
            return self.memory.word(shadow_of(slot)).ok();
        }
        Some(word)
    }

    fn target_of(&self, call: &Instruction, registers: &Registers) -> Option<u64> {
        match call.op0_kind() {
            OpKind::NearBranch64 => Some(call.near_branch_target()),
            OpKind::Register => register_value(registers, call.op0_register()),
            OpKind::Memory => {
                let at = call.virtual_address(0, 0, |register, _, _| {
                    if register.is_segment_register() {
                        return Some(match register {
                            iced_x86::Register::FS => registers.fs_base,
                            iced_x86::Register::GS => registers.gs_base,
                            _ => 0,
                        });
                    }
                    register_value(registers, register)
                })?;
                self.memory.word(at).ok()
            }
            _ => None,
        }
    }

    /// Returns where to stop in the function that a call of `target` enters, if a person wants to be there.
    fn function_to_enter(&self, space: &Space, target: u64) -> Option<u64> {
        let target = self.behind_stub(space, target)?;
        if is_system(space, target) {
            return None;
        }
        let function = space.function_at(target)?;
        if function.entry != target || space.line_at(function.after_prologue).is_none() {
            return None;
        }
        Some(function.after_prologue)
    }

    /// Follows a stub of the procedure linkage table to the function behind it.
    fn behind_stub(&self, space: &Space, target: u64) -> Option<u64> {
        let Some(module) = space.at(target) else {
            return Some(target);
        };
        let svma = module.svma(target);
        let stub = module
            .module
            .plt_entries()
            .iter()
            .find(|stub| stub.svma <= svma && svma.0 < stub.svma.0 + stub.size);
        let Some(stub) = stub else {
            return Some(target);
        };
        let bound = self.memory.word(module.address(stub.slot)).ok()?;
        if !module.range.contains(&bound) || module.module.plt_entries().is_empty() {
            return Some(bound);
        }
        // Not bound yet (the slot leads back into the stubs), or a function of the module itself.
        let is_stub = space
            .function_at(bound)
            .is_none_or(|function| function.entry != bound);
        if !is_stub {
            return Some(bound);
        }
        space
            .functions_matching(&stub.symbol)
            .first()
            .map(|function| function.entry)
    }
}

fn is_system(space: &Space, pc: u64) -> bool {
    space.at(pc).is_none_or(|module| module.is_system)
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    ) && instruction.mnemonic() == iced_x86::Mnemonic::Call
}
