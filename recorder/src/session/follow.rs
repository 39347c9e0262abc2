//! The time while the program runs: records to the log, new modules, the end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Release},
    },
    thread,
    time::Duration,
};

use agent::shared::Shared;
use store::control::Control;

use super::{RESERVE_PATIENCE, STOP_PATIENCE, Session, chain, lay_out, reserve};
use crate::{
    Error, Exit, Observer, Result, Target, arm::patch::Plan, clock, drain::Drain, process::Maps,
    signals, stop::while_stopped,
};

/// A look that finds more than this in the rings finds a program that writes as fast as it can.
const FLOOD_BYTES: u64 = 256 << 10;
/// The longest pause between two looks into the rings.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// How the draining ended.
pub(super) struct Ended {
    pub exit: Exit,
    /// Nothing of ours is left in the program, or it has ended.
    pub unhooked: bool,
    pub incomplete: Option<String>,
    pub lost: u64,
    pub threads: u64,
    pub armed: u64,
    pub skipped: u64,
}

impl Session {
    /// Moves records to the log until the program has ended or the recording is to end.
    pub(super) fn follow(
        &mut self,
        flooded: &AtomicBool,
        observer: &dyn Observer,
    ) -> Result<Ended> {
        let shared = Arc::clone(&self.shared);
        let mut drain = Drain::new(&shared, self.target.pid);
        let mut incomplete = None;
        let mut pause = Duration::ZERO;
        let (exit, unhooked) = loop {
            // Asked before the pass: what a process wrote before it ended is in the rings.
            let exit = self.target.watch.poll();
            let moved = self.pass(&mut drain, &mut incomplete, observer);
            if let Some(exit) = exit {
                break (exit, true);
            }
            if self.is_to_end() {
                break self.detach(&shared, &mut drain, &mut incomplete, observer);
            }
            self.look_at_modules(&shared, &mut incomplete, observer)?;
            flooded.store(moved > FLOOD_BYTES, Release);
            pause = if moved == 0 {
                (pause * 2).clamp(Duration::from_micros(20), LONGEST_PAUSE)
            } else {
                Duration::ZERO
            };
            if !pause.is_zero() {
                thread::sleep(pause);
            }
        };
        self.pass(&mut drain, &mut incomplete, observer);
        if let Err(error) = drain.finish(&mut self.log) {
            incomplete.get_or_insert(chain(&error));
        }
        self.log_end(exit, &mut incomplete);
        let lost = drain.lost();
        let threads = drain.threads() + shared.taken().count() as u64;
        Ok(Ended {
            exit,
            unhooked,
            incomplete,
            lost,
            threads,
            armed: self.armed,
            skipped: self.skipped,
        })
    }

    fn pass(
        &mut self,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> u64 {
        drain.pass(&mut self.log).unwrap_or_else(|error| {
            drain.discard();
            let message = format!(
                "the recording ends here, the program goes on: {}",
                chain(&error)
            );
            observer.warning(&message);
            incomplete.get_or_insert(message);
            0
        })
    }

    fn log_end(&mut self, exit: Exit, incomplete: &mut Option<String>) {
        let ticks = clock::ticks();
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
            Exit::Detached if self.target.watch.poll().is_some() => Control::ProcessExit {
                ticks,
                code: None,
                signal: None,
            },
            Exit::Detached => Control::Detached { ticks },
        };
        if incomplete.is_none() {
            let written = self
                .log
                .append_control(&end)
                .and_then(|()| self.log.append_watermark(clock::ticks()));
            *incomplete = written.err().map(|error| chain(&error));
        }
    }

    /// Has the user, or the time asked for, ended the recording? Passes signals on to a program that we started.
    fn is_to_end(&self) -> bool {
        let signal = signals::take();
        match (&self.options.target, signal) {
            (Target::Spawn { .. }, Some(signal @ (libc::SIGTERM | libc::SIGHUP))) => {
                self.target.watch.signal(signal);
                false
            }
            (Target::Spawn { .. }, _) => false,
            (Target::Attach { .. }, Some(_)) => true,
            (Target::Attach { duration, .. }, None) => {
                duration.is_some_and(|duration| self.began.elapsed() >= duration)
            }
        }
    }

    /// Takes all patches back and leaves the program running. False: not all could be taken back.
    fn detach(
        &mut self,
        shared: &Shared,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> (Exit, bool) {
        let armer = &mut self.armer;
        let taken_back = while_stopped(self.target.pid, STOP_PATIENCE, |process| {
            armer.take_back(process)
        });
        self.pass(drain, incomplete, observer);
        shared.stop();
        match taken_back {
            Ok(Ok(())) => (Exit::Detached, true),
            Ok(Err(error)) | Err(error) => {
                if self.target.watch.poll().is_none() {
                    observer.warning(&format!(
                        "the program could not be unhooked and goes on with inactive hooks: {}",
                        chain(&error)
                    ));
                }
                (Exit::Detached, false)
            }
        }
    }

    /// Arms modules that a thread has just loaded; the thread waits until then.
    fn look_at_modules(
        &mut self,
        shared: &Shared,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> Result<()> {
        let asked = shared.modules_asked();
        if asked == shared.modules_answered() {
            return Ok(());
        }
        let result = self.arm_new_modules(shared, observer);
        shared.answer_modules(asked);
        match result {
            Err(Error::Store(error)) => {
                incomplete.get_or_insert(chain(&error));
                Ok(())
            }
            // A module that cannot be armed is no reason to lose the recording.
            Err(error) => {
                let message = format!(
                    "a module that was just loaded is not traced: {}",
                    chain(&error)
                );
                observer.warning(&message);
                Ok(self.log.append_control(&Control::Warning {
                    ticks: clock::ticks(),
                    message,
                })?)
            }
            Ok(()) => Ok(()),
        }
    }

    fn arm_new_modules(&mut self, shared: &Shared, observer: &dyn Observer) -> Result<()> {
        let Ok(maps) = Maps::read(self.target.pid) else {
            return Ok(());
        };
        let change = self.modules.update(
            self.target.pid,
            maps.files(),
            &self.target.exe,
            &self.runtime,
        );
        for module in change.removed {
            self.armer.forget(&module.file.range);
            self.log.append_control(&Control::ModuleUnload {
                ticks: clock::ticks(),
                module: module.number,
            })?;
        }
        if change.added.is_empty() {
            return Ok(());
        }
        self.log_modules(&change.added)?;
        let mut plan = Plan::default();
        let mut skipped = Vec::new();
        for number in change.added {
            let Some(module) = self.modules.by_number(number) else {
                continue;
            };
            let mut prepared = self.armer.prepare(module);
            self.armer.prepare_replacements(module, &mut prepared);
            let base = reserve(&prepared, self.target.pid, |address, bytes| {
                Ok(shared
                    .reserve(address, bytes, RESERVE_PATIENCE)
                    .unwrap_or(false))
            })?;
            lay_out(&mut self.armer, &mut prepared, base, &mut plan, observer);
            skipped.append(&mut prepared.skipped);
        }
        self.log_probes(skipped, &plan)?;
        self.release(&plan)
    }
}
