//! How calls of functions end: they return, receive a signal, take too long or are interrupted. The thread is then where it
//! was before.

use std::{
    io,
    time::{Duration, Instant},
};

use debuginfo::{Diagnostic, Frame, backtrace, short_name};
use exact::abi::float_results;

use super::{Calling, syscall::is_within_call};
use crate::{
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Reason, Returned, Tid},
        probes::hits::FAULTS,
        tracee::{event::Event, stopped::Stopped, threads::State},
    },
    process::status,
};

/// Most frames that are searched for the function's place.
const MOST_FRAMES: usize = 64;

impl Tracer {
    pub fn call_returned(&mut self, tid: Tid) {
        let stopped = self.tracee.stopped(tid);
        let result = stopped.and_then(|stopped| {
            returned(&stopped).map_err(|source| LiveError::System {
                action: "read what the function returned",
                source,
            })
        });
        self.end_call(tid, result);
    }

    /// Ends a call whose function is about to receive a signal that would not have occurred without the call.
    pub fn call_failed(&mut self, tid: Tid, signal: i32) {
        let why = format!("the function did not return: it received signal {signal}");
        let why = Diagnostic::new(why).with_hint("the thread is as it was before the call");
        self.end_call(tid, Err(LiveError::Call(why)));
    }

    /// Abandons all calls whose threads are halted.
    pub fn interrupt_calls(&mut self) {
        let threads = self.tracee.threads.iter();
        let calling = threads.filter(|(_, thread)| thread.calling.is_some());
        let tids: Vec<Tid> = calling.map(|(tid, _)| *tid).collect();
        for tid in tids {
            self.abandon_call(tid, interrupted);
        }
    }

    /// Abandons the call of a thread, if there is one.
    ///
    /// # Errors
    /// The thread does not stop.
    pub fn interrupt_call(&mut self, tid: Tid) -> LiveResult<()> {
        if !self.tracee.has_call(tid) {
            return Ok(());
        }
        let held = self.hold();
        let is_ended = self.abandon_call(tid, interrupted);
        self.release();
        match is_ended {
            true => Ok(()),
            false => held.and(Err(LiveError::NotStopping)),
        }
    }

    /// Abandons calls that have exceeded their time limits.
    pub fn end_late_calls(&mut self) {
        if self.calls.deadlines.is_empty() {
            return;
        }
        let now = Instant::now();
        let deadlines = self.calls.deadlines.iter();
        let late = deadlines.filter(|(_, until)| **until <= now);
        let late: Vec<Tid> = late.map(|(tid, _)| *tid).collect();
        if late.is_empty() {
            return;
        }
        // Threads that do not stop do not matter, unless one of them makes the call.
        let _ = self.hold();
        for tid in late {
            self.calls.deadlines.remove(&tid);
            if !self.abandon_call(tid, too_late) {
                self.leave_call(tid);
            }
        }
        self.release();
    }

    /// Moves a halted thread back to where it was before its call. `why` receives the time since then, and where the
    /// function stands. If the function has just returned, this is the usual end of the call. Returns false if the thread is
    /// not halted, or where it cannot be moved.
    fn abandon_call(&mut self, tid: Tid, why: fn(Duration, String) -> LiveError) -> bool {
        let stopped = self.tracee.stopped(tid);
        if !stopped.is_ok_and(|stopped| !is_within_call(&stopped)) {
            return false;
        }
        let Some(thread) = self.tracee.threads.get_mut(&tid) else {
            return false;
        };
        let Some(calling) = &thread.calling else {
            return true;
        };
        let passed = calling.began.elapsed();
        match thread.take_pending() {
            Some(Event::CallReturned) => {
                self.call_returned(tid);
                return true;
            }
            Some(Event::Signal { signal, .. }) if !FAULTS.contains(&signal) => {
                thread.set_signal(signal);
            }
            _ => {}
        }
        // Our own code is not left half done. On failure the thread was killed.
        let _ = self.breakpoints.leave_ours(&mut self.tracee, tid);
        let stood = self.place_of_call(tid);
        self.end_call(tid, Err(why(passed, stood)));
        true
    }

    /// Says where the function stands that a halted thread was made to call: the innermost frame and, if that is a library's,
    /// the nearest caller within the call that is the program's own code.
    fn place_of_call(&self, tid: Tid) -> String {
        let frames = self.frames_of_call(tid);
        let Some(innermost) = frames.first() else {
            return "in code whose address cannot be read".to_owned();
        };
        let space = self.tracee.space_now();
        let own = frames.iter().find(|frame| space.is_own_code(frame));
        match own.filter(|_| !space.is_own_code(innermost)) {
            Some(caller) => format!("in {}, called by {}", place(innermost), place(caller)),
            None => format!("in {}", place(innermost)),
        }
    }

    /// The frames of the function that a thread was made to call, and of what it calls, innermost first.
    fn frames_of_call(&self, tid: Tid) -> Vec<Frame> {
        let thread = self.tracee.threads.get(&tid);
        let calling = thread.and_then(|thread| thread.calling.as_ref());
        let (Some(calling), Ok(machine)) = (calling, self.tracee.machine(&self.breakpoints, tid))
        else {
            return Vec::new();
        };
        let mut frames = backtrace(&self.tracee.space_now(), &machine, MOST_FRAMES).frames;
        // The frames further out are those that the thread had before.
        let end = calling.registers.rsp;
        let inner = frames.iter();
        let inner = inner.take_while(|frame| frame.cfa.is_some_and(|cfa| cfa <= end));
        let count = inner.count();
        frames.truncate(count.max(1));
        frames
    }

    /// Tells the caller that the thread cannot be stopped. Once the function returns, the thread is where it was before.
    fn leave_call(&self, tid: Tid) {
        let thread = self.tracee.threads.get(&tid);
        if let Some(calling) = thread.and_then(|thread| thread.calling.as_ref()) {
            let _ = calling.reply.send(Err(LiveError::NotStopping));
        }
    }

    fn end_call(&mut self, tid: Tid, result: LiveResult<Returned>) {
        self.calls.deadlines.remove(&tid);
        // The goal of a thread that was moved within the function no longer counts.
        self.abandon_plan(tid);
        let thread = self.tracee.threads.get_mut(&tid);
        let Some(calling) = thread.and_then(|thread| thread.calling.take()) else {
            return;
        };
        let Calling {
            mut stood,
            signal_info,
            registers,
            extended,
            reply,
            was_stopped,
            ..
        } = *calling;
        // A failure here means that the thread was killed.
        if let Ok(stopped) = self.tracee.stopped(tid) {
            let _ = stopped.set_extended_state(&extended);
            let _ = stopped.set_registers(&registers);
        }
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            // It came during the call, and is still to be delivered.
            let came = thread.halt().map_or(0, |halt| halt.signal);
            match (stood.signal, came) {
                (0, 1..) => stood.signal = came,
                (1.., 1..) => {
                    // Only one can be delivered at a time: the other one is sent anew.
                    status::send_signal(self.tracee.pid, tid, came);
                    thread.signal_info = signal_info;
                }
                _ => thread.signal_info = signal_info,
            }
            thread.state = State::Halted(stood);
        }
        let _ = reply.send(result);
        self.stops.wake();
        if was_stopped {
            // The caller that resumed the thread waits for a stop.
            self.halt(tid, Reason::User, false);
        }
    }
}

/// Describes a frame: the function, the line and the address.
fn place(frame: &Frame) -> String {
    let function = frame.function.as_deref().map(short_name);
    let function = function.unwrap_or_else(|| "an unnamed function".to_owned());
    match &frame.source {
        Some(source) => format!(
            "{function} at {}:{} ({:#x})",
            source.file, source.line, frame.pc
        ),
        None => format!("{function} ({:#x})", frame.pc),
    }
}

fn interrupted(after: Duration, stood: String) -> LiveError {
    LiveError::Interrupted { after, stood }
}

fn too_late(_: Duration, stood: String) -> LiveError {
    let what = format!("the function did not return in time; it was abandoned {stood}");
    LiveError::Call(Diagnostic::new(what).with_hint(
        "the thread is as it was before the call, what the function has changed in memory stays",
    ))
}

/// Returns the registers in which a function has returned its result.
fn returned(stopped: &Stopped<'_>) -> io::Result<Returned> {
    let registers = stopped.registers()?;
    let [xmm0, xmm1] = float_results(&stopped.extended_state()?);
    Ok(Returned {
        rax: registers.rax,
        rdx: registers.rdx,
        xmm0,
        xmm1,
    })
}
