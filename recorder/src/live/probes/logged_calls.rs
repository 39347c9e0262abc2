//! Logged writes of a function's variables: armed when a call begins, disarmed when it ends.
//!
//! A call ends where it returns, which has a trap. A call that an exception, longjmp or the end of its thread ended is found to be over
//! at the next write to its memory, or at the next call of that thread.

use std::collections::BTreeSet;

use super::{
    evaluate::MOST_FRAMES,
    logged::Role,
    logged_place::{self, Place},
};
use crate::{
    live::{
        breakpoints::sites::User,
        event_loop::Tracer,
        guard::guarded,
        model::{Location, LoggedPlace, ProbeId, Tid},
    },
    stop::ptrace,
};

/// A call whose variable is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenCall {
    tid: Tid,
    /// The stack pointer just before it was called, and after it has returned.
    cfa: u64,
    /// Where it returns.
    returns_to: u64,
}

/// A call that begins.
struct Entered {
    call: OpenCall,
    place: Result<Place, String>,
}

impl Tracer {
    /// Whether a probe logs a variable of each call of a function.
    pub fn logs_in_calls(&self, id: ProbeId) -> bool {
        let probe = self.probes.by_id.get(&id);
        probe.is_some_and(|probe| matches!(probe.view.spec.location, Location::Logged(_)))
    }

    /// Sets the traps of a probe at the entries of its function.
    pub(super) fn bind_calls(&mut self, id: ProbeId, place: &LoggedPlace) {
        let places = self.places(&Location::Logged(place.clone()));
        let bound = places.and_then(|places| self.bind(id, places));
        if let Err(error) = bound {
            let why = error.one_line();
            self.warn_of_logged(id, &format!("not logged: {why}"));
        }
    }

    /// A thread is at the beginning of a call whose variable is logged.
    pub fn enter_logged(&mut self, tid: Tid, id: ProbeId) {
        let probe = self.probes.by_id.get(&id);
        let Some(Location::Logged(place)) = probe.map(|probe| &probe.view.spec.location) else {
            return;
        };
        let target = place.to_string();
        let entered = guarded(|| self.entered(tid, &target));
        let entered = entered.unwrap_or_else(|error| Err(error.one_line()));
        if let Err(why) = entered.and_then(|entered| self.arm_call(id, &target, entered)) {
            self.warn_of_logged(
                id,
                &format!("not logged in every call: {why}; record --full has every write"),
            );
        }
    }

    fn entered(&self, tid: Tid, target: &str) -> Result<Entered, String> {
        self.in_context(tid, |context| {
            let frame = context.frames.first();
            let callers = context.frames.get(1..).unwrap_or_default();
            let caller = callers.iter().find(|frame| !frame.is_tail_call);
            let (Some(cfa), Some(caller)) = (frame.and_then(|frame| frame.cfa), caller) else {
                return Err("where it returns is not known".to_owned());
            };
            Ok(Entered {
                call: OpenCall {
                    tid,
                    cfa,
                    returns_to: caller.pc,
                },
                place: logged_place::in_call(target, context),
            })
        })?
    }

    fn arm_call(&mut self, id: ProbeId, target: &str, entered: Entered) -> Result<(), String> {
        let Entered { call, place } = entered;
        self.end_calls(|other| {
            other.tid == call.tid && other.cfa <= call.cfa && other != &call
        });
        self.end_dead_calls();
        let is_armed = self.probes.write_log.places.iter().any(|logged| {
            logged.probe == id && logged.role == Role::InCall(call.clone())
        });
        if is_armed {
            // The same stack, from the same place: the earlier call is over.
            self.end_calls_of(id, &call);
        }
        let place = place?;
        let returns = self.probes.write_log.returns.entry(call.returns_to);
        let known = returns.or_default();
        let is_new = known.is_empty();
        known.insert(id);
        if is_new && let Err(error) = self.add_site(call.returns_to, User::Leave) {
            self.probes.write_log.returns.remove(&call.returns_to);
            return Err(error.one_line());
        }
        self.watch_logged(id, target, place, Role::InCall(call))
            .map_err(|error| error.one_line())
    }

    /// A thread is where logged calls return.
    pub fn leave_logged(&mut self, tid: Tid, address: u64) {
        let Ok(registers) = ptrace::registers(tid) else {
            return;
        };
        self.end_calls(|call| {
            call.tid == tid && call.returns_to == address && registers.rsp >= call.cfa
        });
    }

    /// Whether a call is not over, at a write to its memory by a thread.
    pub(super) fn is_open(&self, tid: Tid, call: &OpenCall) -> bool {
        if !self.tracee.threads.contains_key(&call.tid) {
            return false;
        }
        if tid != call.tid {
            return true;
        }
        for most in [1, MOST_FRAMES] {
            let found = guarded(|| {
                self.in_frames(tid, most, |context| {
                    let mut places = context.frames.iter().filter_map(|frame| frame.cfa);
                    places.find(|cfa| *cfa >= call.cfa)
                })
            });
            match found {
                Ok(Ok(Some(cfa))) => return cfa == call.cfa,
                Ok(Ok(None)) => {}
                // Nothing shows that it is over.
                _ => return true,
            }
        }
        true
    }

    /// Ends a watched place.
    pub(super) fn end_logged(&mut self, number: u64) {
        self.remove_logged_watch(number);
        let places = &mut self.probes.write_log.places;
        places.retain(|logged| logged.number != number);
    }

    fn end_calls_of(&mut self, id: ProbeId, call: &OpenCall) {
        let places = self.probes.write_log.places.iter();
        let ended: Vec<u64> = places
            .filter(|logged| logged.probe == id && logged.role == Role::InCall(call.clone()))
            .map(|logged| logged.number)
            .collect();
        for number in ended {
            self.end_logged(number);
        }
    }

    fn end_calls(&mut self, is_over: impl Fn(&OpenCall) -> bool) {
        let places = self.probes.write_log.places.iter();
        let ended: Vec<u64> = places
            .filter(|logged| matches!(&logged.role, Role::InCall(call) if is_over(call)))
            .map(|logged| logged.number)
            .collect();
        for number in ended {
            self.end_logged(number);
        }
    }

    /// Ends the calls of threads that have ended.
    fn end_dead_calls(&mut self) {
        let alive: BTreeSet<Tid> = self.tracee.threads.keys().copied().collect();
        self.end_calls(|call| !alive.contains(&call.tid));
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
