//! What the program becomes, if the user follows it: a forked copy, which waits where fork has returned in it, without our
//! traps and patches, for a session of its own, and from then on the program runs on without stops; or the program that it
//! executes, which waits at its entry point for a session of its own.

use std::{
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use store::manifest::{Lineage, RecordingId};

use super::{
    Live,
    error::LiveResult,
    event_loop::Tracer,
    family::{AtEntry, park_copy, process_memory},
    model::{Action, Motion, ProbeId, Tid},
    probes::happenings::Done,
    tracee::{Tracee, hooks::Hooks},
};
use crate::{
    Member, Result, Target,
    process::{Maps, Parked, status::Seccomp},
    return_trampoline::unhook,
    stop::{StopError, procfs, while_stopped},
};

/// How long to try to let go of a child, which a failed session may still trace.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Who follows the next copy that the program makes of itself, or the program that it executes. The tracer calls it, and must
/// not be kept waiting.
pub trait Follower: Send + Sync {
    /// The program has made this copy, and neither of them runs; or it has executed another one.
    fn made(&self, child: Tid);

    /// The process waits for a session of its own. On failure it runs on by itself, or has ended; the text says why.
    fn waits(&self, child: std::result::Result<Waiting, String>);
}

/// A process that waits for a session of its own: a copy of the program, or what it has become.
#[derive(Clone, Debug)]
pub struct Waiting {
    parked: Parked,
    /// It was made by fork, and executes the program itself.
    is_copy: bool,
}

impl Waiting {
    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> Tid {
        self.parked.pid
    }

    /// Returns the path of its program.
    #[must_use]
    pub fn exe(&self) -> &Path {
        &self.parked.exe
    }

    /// Returns it as a process to record. `parent` is its parent's recording.
    #[must_use]
    pub fn target(&self, parent: Option<RecordingId>) -> Target {
        let pid = self.pid();
        Target::Parked(Arc::new(Member {
            parked: self.parked.clone(),
            lineage: Lineage {
                pid,
                parent_pid: procfs::parent(pid).unwrap_or(0),
                parent_run: parent,
            },
            is_copy: self.is_copy,
            records_copies: false,
            set: PathBuf::new(),
            recorder: Vec::new(),
        }))
    }

    /// Lets it run on by itself: nobody follows it.
    ///
    /// # Errors
    /// It cannot be stopped, or has ended.
    pub fn release(&self) -> Result<()> {
        let pid = self.pid();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let released = while_stopped(pid, PATIENCE, |process| {
                process.write(self.parked.entry, &self.parked.original)?;
                process.set_regs(pid, &self.parked.registers)
            });
            match released {
                Err(StopError::Gone { .. } | StopError::Zombie { .. }) => return Ok(()),
                Err(_) if Instant::now() < deadline => thread::sleep(PAUSE),
                released => return Ok(released??),
            }
        }
    }
}

/// Following the next fork, and the next exec.
#[derive(Default)]
pub(crate) struct Following {
    /// Who follows a fork.
    follower: Option<Arc<dyn Follower>>,
    /// Who follows an exec.
    of_images: Option<Arc<dyn Follower>>,
    /// The program that was executed is on its way to this entry point.
    loading: Option<AtEntry>,
    /// Set when it waits there: the recording of the program before it is over.
    pub became: Arc<AtomicBool>,
    /// The copy that is to be followed, until it waits.
    awaited: Option<(Tid, Arc<dyn Follower>)>,
    /// The user has followed a copy: nothing stops the program, unless the user returns to it.
    pub has_let_go: bool,
}

impl Following {
    /// Returns whether a copy is to be parked.
    pub fn is_awaiting(&self) -> bool {
        self.awaited.is_some()
    }
}

impl Live {
    /// Makes `follower` follow the next copy that the program makes of itself by fork; `None`: nobody does.
    ///
    /// # Errors
    /// [`LiveError::Ended`](super::LiveError::Ended).
    pub fn follow_fork(&self, follower: Option<Arc<dyn Follower>>) -> Result<()> {
        Ok(self.ask(move |tracer| tracer.tracee.following.follower = follower)?)
    }

    /// Makes `follower` follow the program that this one executes.
    ///
    /// # Errors
    /// [`LiveError::Ended`](super::LiveError::Ended).
    pub fn follow_exec(&self, follower: Arc<dyn Follower>) -> Result<()> {
        Ok(self.ask(move |tracer| tracer.tracee.following.of_images = Some(follower))?)
    }

    /// Has a thread at the entry point of a program that was just executed go on, unless `catch exec` stops it.
    ///
    /// # Errors
    /// [`LiveError::Ended`](super::LiveError::Ended).
    pub fn has_executed(&self, tid: Tid) -> Result<()> {
        Ok(self.ask(move |tracer| tracer.has_done(tid, Done::Executed))?)
    }

    /// Switches off all probes that stop the program, and resumes it: the user has turned to a copy of it.
    ///
    /// # Errors
    /// [`LiveError::Ended`](super::LiveError::Ended).
    pub fn let_go(&self) -> Result<()> {
        Ok(self.ask(Tracer::let_go)??)
    }
}

impl Tracee {
    /// Returns whether this new copy of the program is to be followed, and says so to who follows it.
    pub fn begins_to_follow(&mut self, child: Tid) -> bool {
        let Some(follower) = self.following.follower.take() else {
            return false;
        };
        follower.made(child);
        self.following.awaited = Some((child, follower));
        true
    }

    /// Parks a copy that has stopped for the first time, and hands it over. Its traps are gone.
    pub fn hand_to_follower(&mut self, child: Tid) {
        let parked = {
            let hooks = self.memory.hooks_now();
            unhook_returns(child, &hooks).and_then(|()| park_copy(child, &hooks))
        };
        if parked.is_err() {
            // A failure means that it was killed.
            let _ = crate::stop::ptrace::detach(child, 0);
        }
        let parked = parked.map(|parked| Waiting {
            parked,
            is_copy: true,
        });
        self.tell_follower(child, parked.map_err(|error| error.to_string()));
    }

    /// A child has ended, which may have been about to be followed.
    pub fn lost_child(&mut self, child: Tid) {
        self.tell_follower(child, Err("it was killed at once".to_owned()));
    }

    /// Returns whether the program that this one has executed is followed: it runs to its entry point, where it gets a session
    /// of its own. If it cannot be recorded, it stays in this one.
    pub fn begins_to_follow_image(&mut self, tid: Tid) -> bool {
        let Some(follower) = &self.following.of_images else {
            return false;
        };
        // What the daemon itself may not do is no sandbox of the program's.
        let usual = Seccomp::of(std::process::id() as i32);
        match AtEntry::set(tid, usual) {
            Ok(at) => {
                follower.made(tid);
                self.following.loading = Some(at);
                true
            }
            Err(_) => false,
        }
    }

    fn tell_follower(&mut self, child: Tid, parked: std::result::Result<Waiting, String>) {
        let awaited = self.following.awaited.take_if(|(pid, _)| *pid == child);
        if let Some((_, follower)) = awaited {
            follower.waits(parked);
        }
    }
}

impl Tracer {
    /// Hands the program over that was executed, if this stop is at its entry point. Returns whether it was.
    pub fn hands_over_image(&mut self, tid: Tid, signal: i32) -> bool {
        let is_there = |at: &mut AtEntry| signal == libc::SIGTRAP && at.is_reached(tid);
        let Some(at) = self.tracee.following.loading.take_if(is_there) else {
            return false;
        };
        let parked = at.park(tid);
        if parked.is_ok() {
            self.tracee.threads.clear();
            self.tracee.following.became.store(true, Ordering::Release);
            self.journal.wake_recorder();
        } else {
            self.go_on(tid);
        }
        if let Some(follower) = self.tracee.following.of_images.take() {
            follower.waits(parked.map(|parked| Waiting {
                parked,
                is_copy: false,
            }));
        }
        true
    }

    fn let_go(&mut self) -> LiveResult<()> {
        self.tracee.following.has_let_go = true;
        let stopping = self.probes.by_id.values().filter(|probe| {
            probe.is_enabled && matches!(probe.view.spec.action, Action::Break { .. })
        });
        let ids: Vec<ProbeId> = stopping.map(|probe| probe.view.id).collect();
        for id in ids {
            self.enable_probe(id, false)?;
        }
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            if self.tracee.has_call(tid) {
                continue;
            }
            self.abandon_plan(tid);
            let stop = self.tracee.threads.get(&tid).and_then(|t| t.stop());
            if let Some(number) = stop.map(|stop| stop.number) {
                self.stops.mark_shown(number);
                self.journal.resume(tid, &Motion::Continue);
                self.let_run(tid);
            }
        }
        Ok(())
    }
}

/// Puts the program's own return addresses on the stack of a copy, in the place of ours: those lead to a runtime that the
/// copy's session does not know.
fn unhook_returns(child: Tid, hooks: &Hooks) -> io::Result<()> {
    let sp = crate::stop::ptrace::registers(child)?.rsp & !7;
    let maps = Maps::read(child)?;
    let stack = maps.mappings.iter().find(|had| had.range.contains(&sp));
    let end = stack.map_or(sp, |stack| stack.range.end);
    let memory = process_memory(child)?;
    let mut bytes = vec![0; (end - sp) as usize];
    memory.read_exact_at(&mut bytes, sp)?;
    let before = bytes.clone();
    unhook(&memory, hooks.leave(), sp, &mut bytes);
    let words = bytes.chunks_exact(8).zip(before.chunks_exact(8));
    for (number, (word, before)) in words.enumerate() {
        if word != before {
            memory.write_all_at(word, sp + number as u64 * 8)?;
        }
    }
    Ok(())
}
