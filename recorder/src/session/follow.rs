//! The phase in which the program runs: moves records to the log, arms new modules, and handles the end.

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use agent::shared::Shared;
use crossbeam::channel::Sender;
use store::control::Control;

use super::{
    LiveSide, RESERVE_PATIENCE, STOP_PATIENCE, Session, lay_out, lock, reserve,
    rest::{Bounds, Found, Rest},
    sealing::Wanted,
    space_of,
};
use crate::{
    Death, Error, Exit, Observer, OnFull, Result, SnapshotTimes, Target,
    arm::patch::Plan,
    clock,
    drain::Drain,
    process::{Maps, Way},
    signals,
};

/// While the program writes as fast as it can, fewer bytes than this per pass do not pay: each pass takes a cache line
/// from the writing thread.
const WORTH_A_LOOK: u64 = 128 << 10;

/// The pause until the next pass in that case, spent spinning. If all cores are busy, a sleeping thread wakes up
/// milliseconds late, when the ring is full.
const FLOOD_PAUSE: Duration = Duration::from_micros(20);

/// What users read when the log cannot be written any more, before the reason.
pub(super) const ENDS_HERE: &str = "the recording ends here, and the program keeps running: ";
/// How draining ended.
pub(super) struct Ended {
    pub exit: Exit,
    /// Where a signal has ended the program.
    pub death: Option<Death>,
    /// The program has no more hooks, or it has ended.
    pub unhooked: bool,
    pub incomplete: Option<String>,
    pub lost: u64,
    pub threads: u64,
    pub armed: u64,
    pub skipped: u64,
    pub had_children: bool,
}

impl Session {
    /// Moves records to the log until the program or the recording ends.
    pub(super) fn follow(&mut self, wanted: &Wanted, observer: &dyn Observer) -> Result<Ended> {
        let shared = Arc::clone(&self.shared);
        let mut drain = Drain::new(&shared, self.target.pid);
        let mut incomplete = None;
        let mut rest = Rest::new(&shared, self.target.pid);
        let mut had_children = false;
        let (exit, unhooked) = loop {
            rest.before_look(self.bounds());
            // Polled before the pass: what a process wrote before its end is in the rings.
            let exit = match self.target.watch.has_ended() {
                true => {
                    drain.look_at_waits();
                    had_children = self.target.watch.had_children();
                    self.target.watch.poll()
                }
                false => None,
            };
            let settling = self.settling();
            let (moved, noted) = self.pass(&mut drain, &mut incomplete, observer);
            let mut found = match moved {
                0 if settling.is_empty() && !noted => Found::Nothing,
                0 => Found::Something,
                _ => Found::Records,
            };
            if !settling.is_empty() {
                self.settle(&mut drain, settling);
            }
            if self.live.as_ref().is_some_and(LiveSide::has_become) {
                // The recorder of the next program learns how the process ends.
                self.target.watch.leave_status();
                break (Exit::Detached, true);
            }
            if let Some(exit) = exit {
                break (self.as_traced(exit), true);
            }
            if self.is_to_end() || self.has_reached_its_size(observer)? {
                break self.detach(&shared, &mut drain, &mut incomplete, observer);
            }
            if self.look_at_modules(&shared, &mut incomplete, observer)? {
                found = found.max(Found::Something);
            }
            if self.look_at_wishes(&shared, observer) {
                found = found.max(Found::Something);
            }
            self.look_at_forbidden(&shared, observer)?;
            self.look_at_room(observer)?;
            self.look_at_the_end(&mut drain, &mut incomplete, observer);
            self.copy_memory()?;
            self.look_at_sandbox(observer)?;
            wanted.set_rest(drain.is_flooded());
            if drain.take_flushed() {
                wanted.log_has_grown();
            }
            if (1..WORTH_A_LOOK).contains(&moved) && drain.is_flooded() {
                spin(FLOOD_PAUSE);
            }
            rest.after_look(found, self.bounds());
        };
        if let Some(live) = self.live.as_ref().filter(|live| !live.has_become()) {
            live.end_control(exit);
        }
        let exit = self.as_told(exit);
        self.pass(&mut drain, &mut incomplete, observer);
        self.look_at_forbidden(&shared, observer)?;
        if let Err(error) = drain.finish(&mut self.writing.log) {
            incomplete.get_or_insert(error.one_line());
        }
        if exit == Exit::Detached
            && self.live.is_none()
            && self.death.is_none()
            && matches!(self.options.target, Target::Attach { .. })
            && self.target.watch.has_ended()
        {
            let why = "the program has ended, and how is not known: before Linux 6.15 the kernel tells only the parent once the \
                       parent has asked; `hindsight attach` and `hindsight record PROGRAM` always learn it";
            observer.warning(&why.into());
        }
        self.log_end(&drain, exit, &mut incomplete);
        if let Some(live) = &self.live {
            // A client that learns of the end finds everything in the recording, although sealing takes longer. A write
            // error shows when the log is closed.
            let _ = self.writing.log.settle();
            live.stops.end(exit);
        }
        let lost = drain.lost();
        let threads = drain.threads() + shared.taken().count() as u64;
        Ok(Ended {
            exit,
            death: self.death.take(),
            unhooked,
            incomplete,
            lost,
            threads,
            armed: self.so_far.armed,
            skipped: self.so_far.skipped,
            // Of another one's program the kernel counted what happened before we came, too.
            had_children: had_children && !matches!(self.options.target, Target::Attach { .. }),
        })
    }

    /// Warns that threads no longer record anything, because the program has forbidden it.
    fn look_at_forbidden(&mut self, shared: &Shared, observer: &dyn Observer) -> Result<()> {
        let forbidden = shared.forbidden();
        if forbidden == self.so_far.forbidden {
            return Ok(());
        }
        self.so_far.forbidden = forbidden;
        let message = "a thread is not recorded from here on: the program has forbidden it to read the time stamp counter \
                       (PR_SET_TSC)";
        self.warn(&message.into(), observer)
    }

    /// Returns what bounds the sleep between two passes.
    fn bounds(&self) -> Bounds {
        let copy = match self.options.snapshots {
            SnapshotTimes::Every(interval) => {
                Some(interval.saturating_sub(self.copies.last.elapsed()))
            }
            _ => None,
        };
        let end = match self.options.target {
            Target::Attach { duration, .. } => duration,
            Target::Spawn { .. } | Target::Parked(_) => None,
        };
        let end = end.map(|duration| duration.saturating_sub(self.so_far.began.elapsed()));
        let live = self.live.as_ref();
        Bounds {
            at_most: [copy, end].into_iter().flatten().min(),
            is_standing: live.is_some_and(|live| live.counts.is_standing()),
            may_wait: self.options.on_full == OnFull::Block
                && matches!(
                    self.options.snapshots,
                    SnapshotTimes::Never | SnapshotTimes::AtPauses
                ),
            // A program that makes its own system calls, as Go's do, can enter a sandbox without our functions
            // noticing.
            is_opaque: self.target.way == Way::LoaderForGo || self.shared.asks_about_sandbox(),
        }
    }

    /// Moves available records to the log. Returns how many bytes threads have written, and whether live control has
    /// noted anything.
    pub(super) fn pass(
        &mut self,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> (u64, bool) {
        let noted = self.take_journal(observer);
        let passed = noted.and_then(|noted| {
            let log = &mut self.writing.log;
            Ok((drain.pass(log, noted)?, noted || log.has_news()))
        });
        passed.unwrap_or_else(|error| {
            drain.discard();
            let warning = Error::from(error).diagnostic();
            let warning = warning.map(|why| format!("{ENDS_HERE}{why}"));
            observer.warning(&warning);
            incomplete.get_or_insert(warning.one_line());
            (0, false)
        })
    }

    /// Makes the records of the last pass visible to readers, and notifies threads that wait for that. A watermark
    /// promises nothing about records that arrive during its pass, so another pass is needed. A write error shows in
    /// the next pass.
    fn settle(&mut self, drain: &mut Drain<'_>, settling: Vec<Sender<()>>) {
        let _ = drain
            .pass(&mut self.writing.log, true)
            .and_then(|_| self.writing.log.settle());
        for waiting in settling {
            // The caller may have timed out.
            let _ = waiting.send(());
        }
    }

    fn log_end(&mut self, drain: &Drain<'_>, exit: Exit, incomplete: &mut Option<String>) {
        // Calls that had not returned end here: the time until the kernel reported the end is not theirs.
        let ticks = drain.end();
        let end = match exit {
            Exit::Code(code) => Control::ProcessExit {
                ticks,
                code: Some(code),
                signal: None,
            },
            Exit::Signal(signal) => Control::ProcessExit {
                ticks,
                code: None,
                signal: Some(signal),
            },
            Exit::Detached if self.target.watch.has_ended() => self.end_of_another(ticks),
            Exit::Detached => Control::Detached { ticks },
        };
        // The next program of the process belongs to another recording: this one ends with its event `exec`.
        let end = (!self.live.as_ref().is_some_and(LiveSide::has_become)).then_some(end);
        if incomplete.is_none() {
            let written = self
                .note_death(exit)
                .and_then(|()| self.account_for_copies(0))
                .and_then(|()| self.writing.log.end_journal())
                .and_then(|()| end.map_or(Ok(()), |end| self.writing.log.append_control(&end)))
                .and_then(|()| self.writing.log.append_watermark(clock::ticks()));
            *incomplete = written.err().map(|error| error.one_line());
        }
    }

    /// Returns the end of a process that is not our child. If the kernel does not tell its status, it may have waited for us at its
    /// end.
    fn end_of_another(&self, ticks: u64) -> Control {
        let (code, signal) = match self.target.watch.told() {
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            Some(Exit::Detached) | None => (None, self.death.as_ref().map(|death| death.signal)),
        };
        Control::ProcessExit {
            ticks,
            code,
            signal,
        }
    }

    /// Returns how a process that is not our child has ended, if the kernel tells. A session that a user controls has its own way to
    /// learn it, and the next program of the process has a recorder of its own.
    fn as_told(&self, exit: Exit) -> Exit {
        let is_told = |live: &LiveSide| live.is_unattended && !live.has_become();
        match exit {
            Exit::Detached if self.live.as_ref().is_none_or(is_told) => {
                self.target.watch.told().unwrap_or(exit)
            }
            _ => exit,
        }
    }

    /// Returns how a process of a set has ended, according to its tracer.
    fn as_traced(&self, exit: Exit) -> Exit {
        match (&self.options.target, &self.live) {
            (Target::Parked(_), Some(live)) => {
                live.end_control(Exit::Code(0));
                live.stops.seen().unwrap_or(exit)
            }
            _ => exit,
        }
    }

    /// Returns whether the user, or the time limit, has ended the recording. Passes signals on to a program that we
    /// started.
    fn is_to_end(&self) -> bool {
        if let Some(live) = self.live.as_ref().filter(|live| !live.is_unattended) {
            return live.is_to_end();
        }
        let signal = signals::take();
        match (&self.options.target, signal) {
            (Target::Spawn { .. }, Some(signal @ (libc::SIGTERM | libc::SIGHUP))) => {
                self.target.watch.signal(signal);
                false
            }
            (Target::Spawn { .. } | Target::Parked(_), _) => false,
            (Target::Attach { .. }, Some(_)) => true,
            (Target::Attach { duration, .. }, None) => {
                duration.is_some_and(|duration| self.so_far.began.elapsed() >= duration)
            }
        }
    }

    /// Undoes all patches and leaves the program running. Returns false if some could not be undone.
    fn detach(
        &mut self,
        shared: &Shared,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> (Exit, bool) {
        let armer = Arc::clone(&self.arming.armer);
        // A tracer does not let threads run our code.
        let catching = self.runtime.code.catching;
        let catching = catching.filter(|_| self.live.is_none());
        let taken_back =
            self.stopper
                .while_stopped(self.target.pid, STOP_PATIENCE, move |process| {
                    let taken_back = lock(&armer).take_back(process);
                    // Handlers that stay have no effect.
                    let _ = catching.map(|code| code.end(process));
                    taken_back
                });
        self.pass(drain, incomplete, observer);
        shared.stop();
        match taken_back {
            Ok(Ok(())) => (Exit::Detached, true),
            Ok(Err(error)) | Err(error) => {
                if self.target.watch.poll().is_none() {
                    let why = Error::Stop(error).diagnostic();
                    observer.warning(&why.map(|why| {
                        format!("the program could not be unhooked and keeps running with inactive hooks: {why}")
                    }));
                }
                (Exit::Detached, false)
            }
        }
    }

    /// Arms modules that a thread has just loaded; the thread waits for this. Returns whether there were any.
    fn look_at_modules(
        &mut self,
        shared: &Shared,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> Result<bool> {
        let asked = shared.modules_asked();
        if asked == shared.modules_answered() {
            return Ok(false);
        }
        let result = self.arm_new_modules(shared, observer);
        let done = clock::ticks();
        let waited = shared.waits_for_modules();
        shared.answer_modules(asked);
        let result = result.and_then(|modules| {
            let Some((tid, since)) = waited.filter(|_| !modules.is_empty()) else {
                return Ok(());
            };
            Ok(self.writing.log.append_control(&Control::Arming {
                ticks: done,
                tid,
                since,
                modules,
            })?)
        });
        match result {
            Err(Error::Store(error)) => {
                incomplete.get_or_insert(error.one_line());
            }
            // A module that cannot be armed must not end the recording.
            Err(error) => {
                let warning = error.diagnostic();
                let warning = warning
                    .map(|why| format!("a module that was just loaded is not traced: {why}"));
                self.warn(&warning, observer)?;
            }
            Ok(()) => {}
        }
        Ok(true)
    }

    /// Arms modules that have been loaded since the last time. Returns their paths.
    fn arm_new_modules(&mut self, shared: &Shared, observer: &dyn Observer) -> Result<Vec<String>> {
        let Ok(maps) = Maps::read(self.target.pid) else {
            return Ok(Vec::new());
        };
        let change = self.arming.modules.update(
            self.target.pid,
            maps.files(),
            &self.target.exe,
            &self.runtime.path,
        );
        for module in change.removed {
            self.armer().forget(&module.file.range);
            self.writing.log.append_control(&Control::ModuleUnload {
                ticks: clock::ticks(),
                module: module.number,
            })?;
        }
        if change.added.is_empty() {
            self.tell_modules();
            return Ok(Vec::new());
        }
        if self.arming.modules.have_go() {
            shared.pass_signals();
        }
        self.log_modules(&change.added)?;
        self.watch_sandbox_of(&change.added);
        let mut plan = Plan::default();
        let mut skipped = Vec::new();
        let mut paths = Vec::new();
        for number in change.added {
            let Some(module) = self.arming.modules.by_number(number) else {
                continue;
            };
            paths.push(module.file.path.display().to_string());
            let mut prepared = self.armer().prepare(module);
            self.armer()
                .leave_out_stubs(slice::from_ref(module), slice::from_mut(&mut prepared));
            self.armer().prepare_replacements(module, &mut prepared);
            let base = reserve(&prepared, self.target.pid, |address, bytes| {
                Ok(shared
                    .reserve(address, bytes, RESERVE_PATIENCE)
                    .unwrap_or(false))
            })?;
            lay_out(&mut self.armer(), &mut prepared, base, &mut plan, observer);
            skipped.append(&mut prepared.skipped);
        }
        self.watch_more(shared, &plan, observer);
        self.log_probes(skipped, &plan)?;
        self.release(plan)?;
        self.tell_modules();
        Ok(paths)
    }
}

impl Session {
    /// Looks for watched expressions in new modules.
    pub(super) fn watch_more(&mut self, shared: &Shared, plan: &Plan, observer: &dyn Observer) {
        if !self.arming.watches.may_find_more() {
            return;
        }
        let space = space_of(&self.arming.modules);
        if let Err(error) = self.arming.watches.resolve(&space, &plan.functions, shared) {
            observer.warning(&error.diagnostic());
        }
    }
}

fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}
