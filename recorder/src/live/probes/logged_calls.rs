//! Logged writes of a function's variables: armed when a call begins, disarmed when it ends.
//!
//! A call ends where it returns, which has a trap. A call that an exception, longjmp or the end of its thread ended is found to be over
//! at the next write to its memory, or when its watchpoint is needed.

use std::collections::BTreeSet;

use debuginfo::{AddressSpace, Frame, backtrace};

use super::{
    evaluate::MOST_FRAMES, logged::Role, logged_place::LoggedRange, logged_variable::CallVariable,
};
use crate::live::{
    breakpoints::{Breakpoints, sites::User},
    event_loop::Tracer,
    guard::guarded,
    model::{Location, LoggedPlace, ProbeId, Tid},
    probes::{Probes, evaluate::Evaluator},
    tracee::Tracee,
};

/// Most frames of a call that begins: its own with the inlined ones, and its caller's behind tail calls.
const FIRST_FRAMES: usize = 24;
/// Most frames that are searched for a call.
const ALL_FRAMES: usize = 1 << 14;

/// A call whose variable is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OpenCall {
    tid: Tid,
    /// The stack pointer just before it was called, and after it has returned.
    cfa: u64,
    /// Where it returns.
    returns_to: u64,
    /// The first instruction of its function.
    entry: u64,
}

/// How a call stands at a write to its memory.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// The write is its variable's.
    Writes,
    /// It is one of another variable that has the memory at this moment.
    Lends,
    /// It is over.
    Over,
    /// It is not on the stack any more.
    Gone,
    Unknown,
}

impl Probes {
    /// Whether a probe logs a variable of each call of a function.
    pub fn logs_in_calls(&self, id: ProbeId) -> bool {
        let probe = self.by_id.get(&id);
        probe.is_some_and(|probe| matches!(probe.view.spec.location, Location::Logged(_)))
    }

    fn presume_over(&mut self, call: OpenCall) {
        self.write_log.presumed_over.insert(call);
    }

    /// Forgets the traps in modules that are gone.
    pub(super) fn forget_unmapped_returns(
        &mut self,
        breakpoints: &mut Breakpoints,
        tracee: &Tracee,
        space: &AddressSpace,
    ) {
        let returns = &mut self.write_log.returns;
        let gone: Vec<u64> = returns.keys().copied().collect();
        for address in gone.into_iter().filter(|at| space.at(*at).is_none()) {
            returns.remove(&address);
            breakpoints
                .sites
                .forget(&tracee.memory, &(address..address + 1));
        }
    }
}

impl Tracer {
    /// Sets the traps of a probe at the entries of its function.
    pub(super) fn bind_calls(&mut self, id: ProbeId, place: &LoggedPlace) {
        let places = self.tracee.places(&Location::Logged(place.clone()));
        let bound = places.and_then(|places| self.bind(id, places));
        if let Err(error) = bound {
            let why = error.one_line();
            self.warn_of_logged(id, &format!("not logged in every call: {why}"));
        }
    }

    /// A thread is at the beginning of a call whose variable is logged.
    pub fn enter_logged(&mut self, tid: Tid, id: ProbeId) {
        let probe = self.probes.by_id.get(&id);
        let Some(Location::Logged(place)) = probe.map(|probe| &probe.view.spec.location) else {
            return;
        };
        let target = place.to_string();
        let entered = guarded(|| self.evaluator().entered(tid, id));
        let entered = entered.unwrap_or_else(|error| Err(error.one_line()));
        let armed = entered.and_then(|(call, place)| self.arm_call(id, &target, call, place));
        if let Err(why) = armed {
            self.warn_of_logged(
                id,
                &format!("not logged in every call: {why}; record --full has every write"),
            );
        }
    }

    fn arm_call(
        &mut self,
        id: ProbeId,
        target: &str,
        call: OpenCall,
        place: LoggedRange,
    ) -> Result<(), String> {
        self.probes.write_log.presumed_over.remove(&call);
        // Where this call is on the stack, no other one is.
        self.end_calls(|of, other| {
            other.tid == call.tid && other.cfa == call.cfa && (of == id || other != &call)
        });
        self.stop_at_return(id, call.returns_to)?;
        let role = Role::InCall(call.clone());
        if self.watch_logged(id, target, place, role.clone()).is_ok() {
            return Ok(());
        }
        self.end_calls_below(call.tid, call.cfa);
        self.watch_logged(id, target, place, role).map_err(|_| {
            "the processor's four watchpoints were taken by calls that had not returned, or by other places".to_owned()
        })
    }

    /// Sets a trap where a call returns.
    fn stop_at_return(&mut self, id: ProbeId, returns_to: u64) -> Result<(), String> {
        let returns = self.probes.write_log.returns.entry(returns_to).or_default();
        let is_new = returns.is_empty();
        returns.insert(id);
        if is_new && let Err(error) = self.add_site(returns_to, User::Leave) {
            self.probes.write_log.returns.remove(&returns_to);
            return Err(error.one_line());
        }
        Ok(())
    }

    /// A thread is where logged calls return.
    pub fn leave_logged(&mut self, tid: Tid, address: u64) {
        let Ok(registers) = self.tracee.registers(tid) else {
            return;
        };
        let returns = |call: &OpenCall| {
            call.tid == tid && call.returns_to == address && call.cfa == registers.rsp
        };
        self.end_calls(|_, call| returns(call));
        let presumed = self.probes.write_log.presumed_over.iter();
        if let Some(call) = presumed.clone().find(|call| returns(call)).cloned() {
            self.probes.write_log.presumed_over.remove(&call);
            let probes = self.probes.write_log.variables.iter();
            let probes: Vec<ProbeId> = probes
                .filter(|(_, variables)| variables.iter().any(|one| one.entry == call.entry))
                .map(|(probe, _)| *probe)
                .collect();
            for probe in probes {
                self.warn_of_logged(
                    probe,
                    "not logged in every call: a thread that changes its stack returned from one that seemed to be over",
                );
            }
        }
    }

    /// Whether a write to a call's memory is one to its variable. Ends what is over.
    pub(super) fn is_of_call(
        &mut self,
        tid: Tid,
        number: u64,
        (call, place): (&OpenCall, LoggedRange),
        pc: Option<u64>,
    ) -> bool {
        let probe = {
            let places = self.probes.write_log.places.iter();
            let mut found = places.filter(|logged| logged.number == number);
            found.next().map(|logged| logged.probe)
        };
        let Some(probe) = probe else {
            return false;
        };
        let standing = guarded(|| self.evaluator().standing(tid, probe, call, place, pc));
        match standing.unwrap_or(Standing::Unknown) {
            Standing::Writes => return true,
            Standing::Lends => {}
            Standing::Over => self.end_places(|logged| logged.number == number),
            Standing::Gone => {
                self.probes.presume_over(call.clone());
                self.end_places(|logged| logged.number == number);
            }
            Standing::Unknown => self.warn_of_logged(
                probe,
                "not logged where the stack could not be walked: whether the call lasted is not known",
            ),
        }
        false
    }

    /// Ends the calls that seem to be over, because their thread is now in one that began further up its stack; and those of
    /// threads that have ended.
    fn end_calls_below(&mut self, tid: Tid, cfa: u64) {
        let places = self.probes.write_log.places.iter();
        let below = places.filter_map(|logged| match &logged.role {
            Role::InCall(call) if call.tid == tid && call.cfa < cfa => Some(call.clone()),
            _ => None,
        });
        let below: Vec<OpenCall> = below.collect();
        self.end_calls(|_, call| below.contains(call));
        for call in below {
            self.probes.presume_over(call);
        }
        let alive: BTreeSet<Tid> = self.tracee.threads.keys().copied().collect();
        self.end_calls(|_, call| !alive.contains(&call.tid));
    }

    fn end_calls(&mut self, is_over: impl Fn(ProbeId, &OpenCall) -> bool) {
        self.end_places(|logged| match &logged.role {
            Role::InCall(call) => is_over(logged.probe, call),
            Role::Target | Role::Pointer => false,
        });
    }

    /// Removes the traps where the calls of a probe return.
    pub(super) fn forget_returns(&mut self, probe: ProbeId) {
        let mut unused = Vec::new();
        self.probes.write_log.returns.retain(|address, probes| {
            probes.remove(&probe);
            if probes.is_empty() {
                unused.push(*address);
            }
            !probes.is_empty()
        });
        for address in unused {
            self.remove_site(address, User::Leave);
        }
    }
}

impl Evaluator<'_> {
    /// Finds the call that begins, and its variable.
    fn entered(&self, tid: Tid, id: ProbeId) -> Result<(OpenCall, LoggedRange), String> {
        let variables = self.probes.write_log.variables.get(&id);
        let variables = variables.ok_or("its variable is not known")?;
        self.in_frames(tid, FIRST_FRAMES, |context| {
            let frames = context.frames;
            let physical = frames.iter().position(|frame| !frame.inlined);
            let physical = physical.ok_or("where it is called is not known")?;
            let frame = &frames[physical];
            let callers = frames.get(physical + 1..).unwrap_or_default();
            let caller = callers.iter().find(|frame| !frame.is_tail_call);
            let (Some(cfa), Some(caller)) = (frame.cfa, caller) else {
                return Err("where it returns is not known".to_owned());
            };
            let is_it = |variable: &&CallVariable| frame.function_entry == Some(variable.entry);
            let variable = variables.iter().find(is_it);
            let variable = variable.ok_or("its variable is not known")?;
            let call = OpenCall {
                tid,
                cfa,
                returns_to: caller.pc,
                entry: variable.entry,
            };
            let place = variable.place_in(frame, context.space, context.machine)?;
            Ok((call, place))
        })?
    }

    /// Finds out how a call stands after the instruction at `pc` of thread `tid` has written to its memory.
    fn standing(
        &self,
        tid: Tid,
        probe: ProbeId,
        call: &OpenCall,
        place: LoggedRange,
        pc: Option<u64>,
    ) -> Standing {
        let variables = self.probes.write_log.variables.get(&probe);
        let variable =
            variables.and_then(|variables| variables.iter().find(|one| one.entry == call.entry));
        if !self.tracee.threads.contains_key(&call.tid) {
            return Standing::Over;
        }
        let (Some(variable), Ok(mut machine)) = (variable, self.judged_machine(call.tid)) else {
            return Standing::Unknown;
        };
        let wrote_at = pc.filter(|_| tid == call.tid);
        if let Some(pc) = wrote_at {
            machine.registers.general.rip = pc;
        }
        let space = self.tracee.space_now();
        for most in [2, MOST_FRAMES, ALL_FRAMES] {
            let found = backtrace(&space, &machine, most);
            let frames = &found.frames;
            let is_it = |frame: &Frame| !frame.inlined && !frame.is_tail_call;
            let at = frames
                .iter()
                .position(|frame| is_it(frame) && frame.cfa == Some(call.cfa));
            if let Some(at) = at {
                let inlined = frames[..at].iter().rev().take_while(|frame| frame.inlined);
                let first = at - inlined.count();
                let begins = |pc: u64| (variable.entry..variable.at).contains(&pc);
                let is_another = frames[at].function_entry != Some(call.entry)
                    || first == 0 && wrote_at.is_some_and(begins);
                let owns = || variable.owns(place, (frames, first..=at), &space, &machine);
                return match is_another {
                    true => Standing::Over,
                    false if owns() => Standing::Writes,
                    false => Standing::Lends,
                };
            }
            let ends = frames.len() < most;
            if let Some(standing) = absent(frames, call, ends, found.end.is_none()) {
                return standing;
            }
        }
        Standing::Unknown
    }
}

/// How a call stands that none of these frames is; `None`: more frames must be seen. `ends`: there are no more; `is_whole`: the
/// walk has reached the outermost one.
fn absent(frames: &[Frame], call: &OpenCall, ends: bool, is_whole: bool) -> Option<Standing> {
    if !ends {
        return None;
    }
    // A signal may have come on a stack of its own.
    let since = frames.iter().rposition(|frame| frame.is_signal);
    let mut frames = frames[since.map_or(0, |at| at + 1)..].iter();
    let is_further = frames.any(|frame| frame.cfa.is_some_and(|cfa| cfa > call.cfa));
    Some(match (is_further, is_whole) {
        (true, _) => Standing::Gone,
        // Its thread is on another stack.
        (false, true) => Standing::Writes,
        (false, false) => Standing::Unknown,
    })
}
