//! Recording parts of a run: the program runs by itself, is taken over, and is left again.

use std::ffi::OsString;
use std::time::Instant;

use super::breakpoints::entry_point;
use super::goal::Goal;
use super::inject::Quiet;
use super::known::Known;
use super::linker::Linker;
use super::native::{Came, Native, Until};
use super::take::Beginning;
use super::{Ended, Recorder, Summary, When};
use crate::error::{Error, Result};
use crate::log::{Entry, MappedFile, Writer};

use super::image;
use super::vdso;

/// Records parts of the run of a program that is about to begin.
pub(super) fn record(pid: i32, log: Writer, args: &[OsString], when: When) -> Result<Summary> {
    let parts = Parts {
        native: Native::new(pid),
        pid,
        command: args
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        when,
        since: Instant::now(),
        entry: None,
        is_first: true,
        linker: None,
        files: Vec::new(),
    };
    parts.record(log)
}

struct Parts {
    native: Native,
    pid: i32,
    command: Vec<String>,
    when: When,
    /// When the program began, or was left.
    since: Instant,
    /// The entry point of the program, until it has been passed.
    entry: Option<u64>,
    /// Nothing has been recorded yet.
    is_first: bool,
    /// Who says that libraries have come or gone, if functions are waited for.
    linker: Option<Linker>,
    /// The files among which functions were chosen.
    files: Vec<MappedFile>,
}

/// Where the program was stopped.
struct Stop {
    /// The thread that goes on first.
    first: i32,
    came: Came,
}

impl Parts {
    fn record(mut self, log: Writer) -> Result<Summary> {
        self.set_entry()?;
        self.native.resume()?;
        let stop = match self.next()? {
            Ok(stop) => stop,
            Err(ended) => return Err(nothing(&ended)),
        };
        let quiet = Quiet::new(self.pid)?;
        let mut recorder = Recorder::new(self.pid, log)?;
        quiet.end()?;
        if let Some(span) = Known::vdso(self.pid) {
            recorder.part.vdso = Some(span);
            recorder.process.overlay = vdso::overlay(&recorder.process, span);
        }
        let ended = self.stretches(&mut recorder, stop);
        recorder.finish(ended)
    }

    /// Before functions are chosen, the program comes to its entry point.
    fn set_entry(&mut self) -> Result<()> {
        if let When::Calls(_) = &self.when {
            self.entry = entry_point(self.pid)?;
            let entry: Vec<u64> = self.entry.into_iter().collect();
            self.native.breakpoints.choose(&entry)?;
        }
        Ok(())
    }

    /// Records and leaves, until the program ends.
    fn stretches(&mut self, recorder: &mut Recorder, mut stop: Stop) -> Result<Ended> {
        let mut known = None;
        loop {
            let beginning = self.beginning(known.as_ref());
            self.is_first = false;
            let refused = self.take(recorder, &stop, beginning)?;
            if let Some(why) = refused {
                return Ok(Ended::Lost(why));
            }
            match recorder.run()? {
                Ended::Enough => {}
                ended => return Ok(ended),
            }
            let is_over = match &mut self.when {
                When::After { times, .. } => {
                    *times = times.saturating_sub(1);
                    *times == 0
                }
                When::Always | When::Calls(_) => false,
            };
            known = recorder.leave(is_over)?;
            let at = recorder.count;
            recorder.log.add(&Entry::Gap { at })?;
            self.native.tids = recorder.threads.tids().collect();
            // Libraries may have come while all was recorded.
            self.choose()?;
            self.since = Instant::now();
            self.native.resume()?;
            stop = match self.next()? {
                Ok(stop) => stop,
                Err(ended) => {
                    recorder.signals.fatal = self.native.fatal;
                    return Ok(ended);
                }
            };
        }
    }

    fn beginning<'a>(&self, known: Option<&'a Known>) -> Beginning<'a> {
        let nanoseconds = self.since.elapsed().as_nanos() as u64;
        match known {
            Some(known) => Beginning::Again { known, nanoseconds },
            None => Beginning::First {
                command: self.command.clone(),
                nanoseconds,
            },
        }
    }

    fn take(
        &mut self,
        recorder: &mut Recorder,
        stop: &Stop,
        beginning: Beginning,
    ) -> Result<Option<String>> {
        let mut tids: Vec<i32> = self.native.tids.iter().copied().collect();
        tids.sort_unstable();
        recorder.part.goal = match &self.when {
            When::After {
                instructions: u64::MAX,
                ..
            }
            | When::Always => None,
            When::After { instructions, .. } => Some(Goal::Count(recorder.count + instructions)),
            When::Calls(_) => Some(Goal::calls(self.functions())),
        };
        if let When::Calls(_) = self.when {
            for entry in self.functions() {
                recorder.translator.add_stop(entry);
            }
        }
        let refused = recorder.take_over(&tids, stop.first, &stop.came, beginning)?;
        if refused.is_none() && matches!(self.when, When::Calls(_)) {
            let registers = crate::ptrace::registers(stop.first);
            let registers = registers.map_err(|source| Error::System {
                what: "read registers",
                source,
            })?;
            let own = recorder.own(stop.first, &registers)?;
            if recorder.entered(stop.first, own.rip, own.rsp)? {
                recorder.enter(stop.first, &own)?;
            }
        }
        Ok(refused)
    }

    /// Lets the program run to where recording begins, and stops it.
    fn next(&mut self) -> Result<Result<Stop, Ended>> {
        loop {
            let deadline = match &self.when {
                When::After { times: 0, .. } | When::Always | When::Calls(_) => None,
                When::After { time, .. } => Some(self.since + *time),
            };
            let first = match self.native.wait(deadline)? {
                Until::Time => None,
                Until::Breakpoint(tid, at) if self.entry == Some(at) => {
                    // It has no other thread yet, or one of a library's that nobody has sent a signal.
                    if let Err(ended) = self.native.stop(Some(tid))? {
                        return Ok(Err(ended));
                    }
                    self.entry = None;
                    self.linker = Linker::of(self.pid)?;
                    self.choose()?;
                    self.native.resume()?;
                    continue;
                }
                Until::Breakpoint(tid, at) if self.is_linker(at) => {
                    self.loaded(tid)?;
                    continue;
                }
                Until::Executed if self.is_first => {
                    self.linker = None;
                    self.files.clear();
                    self.set_entry()?;
                    self.native.resume()?;
                    continue;
                }
                Until::Executed => {
                    // What is known is that of another program.
                    self.when = When::Always;
                    self.native.resume()?;
                    continue;
                }
                Until::Breakpoint(tid, _) => Some(tid),
                Until::Ended(ended) => return Ok(Err(ended)),
            };
            let came = match self.native.stop(first)? {
                Ok(came) => came,
                Err(ended) => return Ok(Err(ended)),
            };
            let lowest = self.native.tids.iter().copied().min();
            let first = first.or(lowest).unwrap_or(self.pid);
            return Ok(Ok(Stop { first, came }));
        }
    }

    /// The functions at whose entries the program stops.
    fn functions(&self) -> impl Iterator<Item = u64> {
        let all = self.native.breakpoints.addresses();
        all.filter(|at| !self.is_linker(*at))
    }

    fn is_linker(&self, at: u64) -> bool {
        self.linker.as_ref().is_some_and(|linker| linker.at == at)
    }

    /// The dynamic linker says something, on this thread; others run.
    fn loaded(&mut self, tid: i32) -> Result<()> {
        if let Some(linker) = &self.linker {
            linker.pass(tid)?;
            if linker.has_loaded() {
                self.choose()?;
            }
        }
        self.native.go_on(tid, 0)
    }

    /// Chooses the functions among the libraries that are there, if others were there before.
    fn choose(&mut self) -> Result<()> {
        let When::Calls(choose) = &mut self.when else {
            return Ok(());
        };
        let files: Vec<MappedFile> = image::files(self.pid)?;
        if files == self.files {
            return Ok(());
        }
        let mut addresses = choose(&files);
        addresses.extend(self.linker.as_ref().map(|linker| linker.at));
        self.files = files;
        self.native.breakpoints.choose(&addresses)
    }
}

/// The program has ended before anything was recorded.
fn nothing(ended: &Ended) -> Error {
    let (code, signal) = match ended {
        Ended::Exited(code) => (Some(*code), None),
        Ended::Killed(signal) => (None, Some(*signal)),
        Ended::Lost(_) | Ended::Executed(_) | Ended::Full | Ended::Enough => (None, None),
    };
    Error::Nothing { code, signal }
}
