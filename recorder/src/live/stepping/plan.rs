//! Begins to move a stopped thread: decides its goal, and which traps bring it back.

use debuginfo::{Diagnostic, Frame, LineGoal};

use crate::live::{
    breakpoints::sites::User,
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    model::{Motion, ProbeId, Reason, Stop, Tid},
    stops::StopLog,
    tracee::{Tracee, event::Event, machine::LiveMachine, threads::Thread},
};

/// How a thread with a plan proceeds.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) goal: Goal,
    /// The frame that counts: the value of rsp just before it was entered. 0: unknown.
    pub(super) cfa: u64,
    pub traps: Vec<u64>,
    /// What to do at a trap.
    pub(super) arrivals: Vec<Arrival>,
    /// The last place in the program that the thread was at.
    pub(super) last_pc: u64,
    /// A signal to deliver once the thread is between two of the program's instructions.
    pub deferred: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    /// Another line.
    Line(LineGoal),
    /// Another instruction.
    Instruction { over: bool },
    /// One of the traps.
    ProbePlace,
    /// None: every instruction is recorded until something stops the thread.
    Record,
}

impl Plan {
    /// The plan of a thread that is recorded.
    pub fn of_recording() -> Plan {
        Plan {
            goal: Goal::Record,
            cfa: 0,
            traps: Vec::new(),
            arrivals: Vec::new(),
            last_pc: 0,
            deferred: 0,
        }
    }
}

/// What reaching a trap means.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) address: u64,
    /// The stack pointer must be at least this: deeper frames do not count.
    pub(super) lowest_sp: u64,
    pub(super) then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Stop,
    /// Check where the thread is, and keep stepping if needed.
    Look,
}

impl Tracer {
    /// Resumes a stopped thread; with `others`, also all other threads whose stop was shown. A thread whose own stop
    /// was not shown stays where it is. Returns a number below that of the next stop to show.
    pub fn resume(&mut self, tid: Tid, motion: Motion, others: bool) -> LiveResult<u64> {
        let thread = self
            .tracee
            .threads
            .get(&tid)
            .ok_or(LiveError::NoThread(tid))?;
        let Some(stop) = thread.stop() else {
            return Err(LiveError::Running(tid));
        };
        let newest = self.stops.newest();
        let to_come = thread.calls_to_come;
        let unshown = self.tracee.first_unshown(&self.stops);
        if let Some(first) = unshown
            && !self.stops.is_shown(stop.number)
        {
            return Ok(first - 1);
        }
        if motion == Motion::Step && to_come > 0 {
            self.journal.resume(tid, &motion);
            self.tracee.set_calls_to_come(tid, to_come - 1);
            self.halt(tid, Reason::Step, false);
            return Ok(newest);
        }
        self.abandon_plan(tid);
        let plan = match &motion {
            Motion::Continue => None,
            motion => Some(self.plan(tid, motion)?),
        };
        self.journal.resume(tid, &motion);
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.is_moved = plan.is_some() || !others;
        }
        let after = match unshown {
            Some(first) if others => first - 1,
            _ => newest,
        };
        if others && !self.let_others_run(tid) {
            return Ok(after);
        }
        match plan {
            None => self.let_run(tid),
            Some(plan) => self.begin(tid, plan),
        }
        Ok(after)
    }

    /// Resumes all other threads whose stop was shown. Returns whether all could be resumed: a pending event of one of
    /// them may have stopped all threads.
    fn let_others_run(&mut self, tid: Tid) -> bool {
        let newest = self.stops.newest();
        let is_shown = |thread: &Thread| {
            let stop = thread.stop();
            stop.is_some_and(|stop| self.stops.is_shown(stop.number))
        };
        let stopped: Vec<Tid> = self
            .tracee
            .threads
            .iter()
            .filter(|(other, thread)| **other != tid && is_shown(thread))
            .map(|(other, _)| *other)
            .collect();
        for other in stopped {
            self.journal.resume(other, &Motion::Continue);
            self.let_run(other);
            if self.stopped_all > newest {
                return false;
            }
        }
        true
    }

    /// Resumes all threads, whether or not their stops were shown.
    pub fn resume_all(&mut self, tid: Tid) -> LiveResult<u64> {
        for number in self.tracee.unshown(&self.stops) {
            self.stops.mark_shown(number);
        }
        self.resume(tid, Motion::Continue, true)
    }

    /// Lets up to `most` stops at a probe pass that were not shown, the oldest first: their threads go on with the others. Returns how
    /// many they are. A fault that will end the program is always shown.
    pub fn pass_stops_at(&self, probe: ProbeId, most: u64) -> u64 {
        let is_there = |stop: &Stop| {
            let is_fatal = matches!(stop.reason, Reason::Signal { fatal: true, .. });
            stop.reason.probe() == Some(probe) && !is_fatal
        };
        let stops = self.tracee.threads.values().filter_map(Thread::stop);
        let there = stops.filter(|stop| is_there(stop) && !self.stops.is_shown(stop.number));
        let mut there: Vec<u64> = there.map(|stop| stop.number).collect();
        there.sort_unstable();
        there.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        for number in &there {
            self.stops.mark_shown(*number);
        }
        there.len() as u64
    }

    /// Resumes a stopped thread. A pending event of the thread comes first.
    pub fn let_run(&mut self, tid: Tid) {
        let Some(thread) = self.tracee.threads.get_mut(&tid) else {
            return;
        };
        if let Some(event) = thread.take_pending() {
            if let Some(halt) = thread.halt_mut() {
                halt.stop = None;
            }
            self.dispatch(tid, event);
        } else {
            self.go(tid, false);
        }
    }

    fn plan(&mut self, tid: Tid, motion: &Motion) -> LiveResult<Plan> {
        let machine = self.tracee.machine(&self.breakpoints, tid)?;
        let space = self.tracee.space_now();
        let frames = debuginfo::backtrace(&space, &machine, 64).frames;
        let innermost = frames.first();
        let mut plan = Plan {
            goal: Goal::ProbePlace,
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
        let space = self.tracee.space_now();
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
            Motion::Past => {
                let past = space.statements_past(pc);
                if past.is_empty() {
                    return self.plan_motion(tid, plan, &Motion::Next, machine, frames);
                }
                for address in past {
                    let lowest_sp = machine.registers.general.rsp;
                    self.trap_at(tid, plan, address, lowest_sp, Then::Stop)?;
                }
                let _ = self.out_of(tid, plan, frames, 0, "");
            }
            Motion::Until {
                place,
                frame,
                deeper,
            } => {
                // The frame's stack pointer once all its callees have returned.
                let callee = frames.iter().take(*frame).rfind(|frame| !frame.inlined);
                let innermost = machine.registers.general.rsp;
                let lowest_sp = match deeper {
                    true => 0,
                    false => callee.and_then(|callee| callee.cfa).unwrap_or(innermost),
                };
                for place in self.tracee.places(place)? {
                    self.trap_at(tid, plan, place.address, lowest_sp, Then::Stop)?;
                }
                // If nothing is known of the caller, only the place counts.
                let _ = self.out_of(tid, plan, frames, *frame, "");
            }
        }
        Ok(())
    }

    /// Plans to run until frame `index` has returned.
    pub(super) fn out_of(
        &mut self,
        tid: Tid,
        plan: &mut Plan,
        frames: &[Frame],
        index: usize,
        because: &str,
    ) -> LiveResult<()> {
        // Inlined calls share the physical frame: only its return can be waited for.
        let physical = frames
            .iter()
            .enumerate()
            .skip(index)
            .find(|(_, frame)| !frame.inlined)
            .map(|(at, _)| at);
        // A frame left by a tail call is not returned to.
        let mut callers = physical.iter().flat_map(|at| &frames[at + 1..]);
        let caller = callers.find(|frame| !frame.is_tail_call);
        let cfa = physical.and_then(|at| frames[at].cfa);
        let (Some(caller), Some(cfa)) = (caller, cfa) else {
            let what = "this is the outermost frame that is known: it has no caller to return to";
            let message = format!("{because} {what}");
            let what = Diagnostic::new(message.trim_start()).with_hint("use \"continue\"");
            return Err(LiveError::Motion(what));
        };
        plan.goal = Goal::ProbePlace;
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
        // Its callee must return first.
        if let Some(callee) = frames[..index].iter().rposition(|frame| !frame.inlined) {
            self.out_of(tid, plan, frames, callee, "")?;
            if let Some(arrival) = plan.arrivals.last_mut() {
                arrival.then = Then::Look;
            }
            plan.cfa = copy.cfa.unwrap_or(0);
        }
        let space = self.tracee.space_now();
        let mut goal = LineGoal::of(&space, copy.lookup_pc, 0, false);
        goal.line = None;
        goal.range = copy.pc..copy.pc;
        goal.copies.truncate(copy.inline_depth);
        plan.goal = Goal::Line(goal);
        Ok(())
    }

    pub(super) fn trap_at(
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
        let is_stepping = plan.goal != Goal::ProbePlace && plan.arrivals.is_empty();
        let pending = self.tracee.threads.get_mut(&tid).and_then(|thread| {
            thread.plan = Some(plan);
            thread.take_pending()
        });
        self.find_unwind_targets();
        // A breakpoint that the thread hit while all were stopped comes first.
        if let Some(Event::Trap { address }) = pending
            && let Some(site) = self.breakpoints.sites.at(address)
        {
            let users: Vec<User> = site.users.iter().copied().collect();
            if self.stops_at(tid, address, &users) {
                return;
            }
        }
        // Any other trap is where the thread is, and is passed. A signal must still be delivered.
        if let Some(event @ (Event::Signal { .. } | Event::Watch { .. })) = pending {
            if let Some(thread) = self.tracee.threads.get_mut(&tid) {
                thread.is_stepping = is_stepping;
                if let Some(halt) = thread.halt_mut() {
                    halt.stop = None;
                }
            }
            self.dispatch(tid, event);
        } else if is_stepping {
            match self.step_over_one(tid) {
                Ok(()) => {}
                Err(_) => self.go(tid, true),
            }
        } else {
            self.go(tid, false);
        }
    }
}

impl Tracee {
    /// Returns the stops of stopped threads that were not shown, oldest first.
    pub fn unshown(&self, stops: &StopLog) -> Vec<u64> {
        let reported = self.threads.values().filter_map(Thread::stop);
        let numbers = reported.map(|stop| stop.number);
        let mut unshown: Vec<u64> = numbers.filter(|n| !stops.is_shown(*n)).collect();
        unshown.sort_unstable();
        unshown
    }

    /// Returns the oldest stop that was not shown.
    pub fn first_unshown(&self, stops: &StopLog) -> Option<u64> {
        self.unshown(stops).first().copied()
    }

    pub fn has_plan(&self, tid: Tid) -> bool {
        self.threads
            .get(&tid)
            .is_some_and(|thread| thread.plan.is_some())
    }

    pub(super) fn take_plan(&mut self, tid: Tid) -> Plan {
        self.threads
            .get_mut(&tid)
            .and_then(|thread| thread.plan.take())
            .unwrap_or(Plan {
                goal: Goal::ProbePlace,
                cfa: 0,
                traps: Vec::new(),
                arrivals: Vec::new(),
                last_pc: 0,
                deferred: 0,
            })
    }

    pub(super) fn put_plan(&mut self, tid: Tid, plan: Plan) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.plan = Some(plan);
        }
    }
}
