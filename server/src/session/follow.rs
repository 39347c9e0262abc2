//! Follows the copies that a program makes of itself by fork (`set follow-fork-mode child`): each gets a session of its
//! own, in which the probes of the first one are set again, and the first program runs on without stops. A program that the
//! process executes gets one, too, and the session before it has ended.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use recorder::live::{
    Follower, Happening, Live, LiveOptions, Location, Motion, ProbeState, ProbeView, Stdio, Tid,
    Waited, Waiting,
};
use serde::{Deserialize, Serialize};
use store::recording::with_suffix;

use super::begin::Announcer;
use super::{LiveSession, Origin, Sessions, of_recorder};
use crate::gone::Gone;
use crate::inspect;
use crate::protocol::{Code, Failure};

/// How long the kernel may take to stop a copy that waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which process a session stays with at a fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowMode {
    /// With the program.
    #[default]
    Parent,
    /// With the copy that it makes of itself.
    Child,
}

/// What became of following a session's program.
#[derive(Default)]
enum State {
    /// There was no fork to follow.
    #[default]
    Idle,
    /// A copy was made, and its session is about to begin.
    Begins,
    /// A copy was followed.
    Followed(Followed),
    /// A copy could not be followed: why. It is not told yet.
    Failed(String),
}

/// The session of a copy.
#[derive(Clone)]
pub struct Followed {
    session: Weak<LiveSession>,
    /// A number below that of its first stop to show.
    pub after: u64,
    /// A client has learnt of it.
    is_told: bool,
}

/// Whether and how a session follows the copies of its program.
#[derive(Default)]
pub struct Follow {
    mode: Mutex<FollowMode>,
    state: Mutex<State>,
    changed: Condvar,
    /// How many clients wait for a stop of the program, or of the copy that is followed.
    waiting: AtomicUsize,
    /// What the process executes now, in words.
    executed: OnceLock<String>,
}

/// A client that waits for a stop. Dropping it ends the wait.
pub struct Waits<'a>(&'a Follow);

/// The session of a copy, as it is on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedReport {
    /// The program's name.
    pub program: String,
    /// The copy's process id.
    pub pid: i32,
}

impl Follow {
    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> FollowMode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the process executes now, if that is another program, which has a session of its own.
    #[must_use]
    pub fn executed(&self) -> Option<&str> {
        self.executed.get().map(String::as_str)
    }

    fn set_mode(&self, mode: FollowMode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Returns whether a wait for the session's program has to turn to a copy, now or later.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(&*self.state(), State::Followed(followed) if followed.is_told)
    }

    /// Returns whether a copy is followed, or is about to be.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !matches!(&*self.state(), State::Idle)
    }

    /// Notes that a client waits for a stop.
    pub fn wait_begins(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Waits(self)
    }

    /// Returns whether a client waits for a stop.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Returns the session of the copy that is followed, once that has begun. Waits for this at most until `until`, or until
    /// `gone` is set.
    #[must_use]
    pub fn followed(&self, until: Instant, gone: &Gone) -> Option<(Arc<LiveSession>, u64)> {
        let mut state = self.state();
        loop {
            match &mut *state {
                State::Begins if !gone.is_set() => {}
                State::Followed(followed) => {
                    followed.is_told = true;
                    let found = (followed.session.upgrade(), followed.after);
                    if found.0.is_none() {
                        // It was stopped: nothing is left to turn to.
                        *state = State::Idle;
                    }
                    return found.0.map(|session| (session, found.1));
                }
                _ => return None,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // The client may go meanwhile: nothing wakes us for this.
            let slice = left.min(Duration::from_millis(50));
            let waited = self.changed.wait_timeout(state, slice);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns why a copy was not followed, once.
    #[must_use]
    pub fn take_failure(&self) -> Option<String> {
        let mut state = self.state();
        match std::mem::take(&mut *state) {
            State::Failed(why) => Some(why),
            other => {
                *state = other;
                None
            }
        }
    }

    fn become_(&self, state: State) {
        *self.state() = state;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is a single assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl LiveSession {
    /// Chooses with which process the session stays at the next fork.
    ///
    /// # Errors
    /// [`Code::NotRunning`].
    pub fn set_follow_mode(
        self: &Arc<Self>,
        sessions: &Arc<Sessions>,
        mode: FollowMode,
    ) -> Result<(), Failure> {
        let follower: Option<Arc<dyn Follower>> = match mode {
            FollowMode::Parent => None,
            FollowMode::Child => Some(Arc::new(Next {
                sessions: Arc::downgrade(sessions),
                session: Arc::downgrade(self),
                turn: Turn::Copy,
            })),
        };
        let set = self.live.follow_fork(follower);
        set.map_err(|error| of_recorder(&error))?;
        self.follow.set_mode(mode);
        Ok(())
    }

    /// Gives a program that this one executes a session of its own. A program that has ended executes none.
    pub(super) fn follow_exec(self: &Arc<Self>, sessions: &Arc<Sessions>) {
        let next = Next {
            sessions: Arc::downgrade(sessions),
            session: Arc::downgrade(self),
            turn: Turn::Image,
        };
        _ = self.live.follow_exec(Arc::new(next));
    }
}

/// What a session's program is followed to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The next copy that it makes of itself.
    Copy,
    /// The program that it executes.
    Image,
}

/// Follows a session's program.
struct Next {
    sessions: Weak<Sessions>,
    session: Weak<LiveSession>,
    turn: Turn,
}

impl Follower for Next {
    fn made(&self, _: Tid) {
        if let Some(session) = self.session.upgrade() {
            session.follow.become_(State::Begins);
        }
    }

    fn waits(&self, child: Result<Waiting, String>) {
        let (sessions, session, turn) = (self.sessions.clone(), self.session.clone(), self.turn);
        // The program's tracer calls this, and what follows asks it.
        std::thread::spawn(move || {
            let (Some(sessions), Some(session)) = (sessions.upgrade(), session.upgrade()) else {
                if let Ok(child) = child {
                    release(&child);
                }
                return;
            };
            turn_to(&sessions, &session, child, turn);
            session.live.wake();
        });
    }
}

/// Begins the session of a copy, and lets the program go; or that of the program that it has executed.
fn turn_to(
    sessions: &Arc<Sessions>,
    old: &Arc<LiveSession>,
    child: Result<Waiting, String>,
    turn: Turn,
) {
    let begun = child.and_then(|child| {
        let begun = begin(sessions, old, &child, turn);
        begun.map_err(|failure| {
            release(&child);
            format!("process {} is not followed: {failure}", child.pid())
        })
    });
    match begun {
        Ok((session, after)) => {
            if turn == Turn::Copy {
                // It may have ended.
                if let Err(error) = old.live.let_go() {
                    tracing::debug!(%error, "the program is not let go");
                }
                old.follow.set_mode(FollowMode::Parent);
            } else {
                let text = format!("has executed {}: session {}", session.program, session.id);
                _ = old.follow.executed.set(text);
            }
            old.follow.become_(State::Followed(Followed {
                session: Arc::downgrade(&session),
                after,
                is_told: false,
            }));
        }
        Err(why) => {
            tracing::warn!(why, "a process is not followed");
            old.warn(why.clone().into());
            if turn == Turn::Copy {
                // The next one may be. A program that has ended makes none.
                _ = old.set_follow_mode(sessions, old.follow.mode());
            }
            old.follow.become_(State::Failed(why));
        }
    }
}

fn release(child: &Waiting) {
    if let Err(error) = child.release() {
        tracing::warn!(%error, pid = child.pid(), "a copy of a program cannot be released");
    }
}

/// Begins the session of a copy, and lets it run. Returns a number below that of the first stop to show.
fn begin(
    sessions: &Arc<Sessions>,
    old: &LiveSession,
    child: &Waiting,
    turn: Turn,
) -> Result<(Arc<LiveSession>, u64), Failure> {
    let observer = Arc::new(Announcer::for_nobody());
    let live = open(sessions, old, child, (turn, &observer))?;
    let entry = match live.peek(0, None, None, PATIENCE) {
        Waited::Stopped(stop) => stop,
        _ => return Err(Failure::new(Code::NotStarted, "it has ended")),
    };
    let probes = old.live.probes();
    let is_caught = turn == Turn::Image && probes.iter().any(catches_exec);
    live.mark_shown(entry.number);
    let program = match turn {
        Turn::Copy => old.program.clone(),
        Turn::Image => child.exe().to_string_lossy().into_owned(),
    };
    let session = LiveSession::of_process((sessions.next_id(), live), program, old, &observer);
    for shown in old.live.displays() {
        // It was read and added once. In another program its names may mean nothing.
        let parsed = inspect::displayable(&shown.expression)?;
        match session.live.display(parsed) {
            Err(error) if turn == Turn::Copy => return Err(of_recorder(&error)),
            _ => {}
        }
    }
    for probe in probes {
        if let Err(failure) = set_again(old, &session, &probe) {
            let (id, location) = (probe.id, &probe.spec.location);
            session.warn(format!("{id} ({location}) was not set again: {failure}").into());
        }
    }
    session.at_stops.take_over(&old.at_stops);
    session.live.kept().take_over(old.live.kept());
    let session = sessions.insert(session);
    session.set_follow_mode(
        sessions,
        match turn {
            Turn::Copy => FollowMode::Child,
            Turn::Image => old.follow.mode(),
        },
    )?;
    session.follow_exec(sessions);
    if is_caught {
        let went = session.live.has_executed(entry.tid);
        went.map_err(|error| of_recorder(&error))?;
        return Ok((session, entry.number));
    }
    let after = session.live.resume(entry.tid, Motion::Continue, true);
    Ok((session, after.map_err(|error| of_recorder(&error))?))
}

/// Returns whether a probe is `catch exec`.
fn catches_exec(probe: &ProbeView) -> bool {
    probe.state != ProbeState::Disabled
        && matches!(probe.spec.location, Location::Event(Happening::Exec))
}

/// Opens the recording of a copy, or of a program that was executed, next to that of the program.
fn open(
    sessions: &Sessions,
    old: &LiveSession,
    child: &Waiting,
    (turn, observer): (Turn, &Arc<Announcer>),
) -> Result<Live, Failure> {
    let recording = old.live.recording();
    let parent = store::Recording::open(recording).ok();
    let parent = parent.map(|parent| parent.manifest().recording_id);
    let file_name = |path: &Path| {
        let name = path.file_name().unwrap_or("program".as_ref());
        name.to_string_lossy().into_owned()
    };
    let path = match turn {
        // Not `program-2`, which would be a later run of it.
        Turn::Copy => {
            let name = format!("{}.{}", file_name(Path::new(&old.program)), child.pid());
            recording.with_file_name(with_suffix(Path::new(&name)))
        }
        Turn::Image => first_free(recording, &file_name(child.exe())),
    };
    let target = child.target(parent);
    let guardian = sessions.guardian.clone();
    let options = LiveOptions {
        record: old.origin.record_options(target, Some(path), guardian)?,
        stop_on_entry: true,
        stdio: Stdio::Inherit,
        // They are among the program's probes.
        first: Default::default(),
    };
    let observer = Arc::clone(observer) as Arc<dyn recorder::Observer + Send + Sync>;
    super::begin::started(options, observer).map_err(|error| of_recorder(&error))
}

/// Returns the first name for a recording beside another one that is not taken.
fn first_free(beside: &Path, program: &str) -> PathBuf {
    let named = |number: u32| match number {
        1 => program.to_owned(),
        number => format!("{program}-{number}"),
    };
    let path = |number| beside.with_file_name(with_suffix(Path::new(&named(number))));
    let free = (1..).map(path).find(|path| !path.exists());
    free.expect("there are more numbers than files")
}

/// Sets a probe of a program in a copy of it, whose memory is the same, or in what it has become.
fn set_again(old: &LiveSession, new: &LiveSession, probe: &ProbeView) -> Result<(), Failure> {
    let failed = |error| of_recorder(&error);
    let added = new.live.add_probe_as(probe.id, probe.spec.clone());
    let id = added.map_err(failed)?.id;
    if let Location::Memory { .. } = probe.spec.location
        && let Some(watched) = old.watched().get(&probe.id)
    {
        let pid = new.live.pid();
        new.remember_watched(id, watched.in_copy(pid));
    }
    if probe.state == ProbeState::Disabled {
        new.live.enable_probe(id, false).map_err(failed)?;
    }
    Ok(())
}

impl Origin {
    /// Returns how a copy of the program began. It can be started again as the program was.
    pub(super) fn of_copy(&self, pid: i32) -> Origin {
        let mut origin = self.clone();
        match &mut origin {
            // The name is that of the program's recording.
            Origin::Started(launch) => launch.recording.output = None,
            Origin::Attached(attach) => {
                attach.pid = pid;
                attach.recording.output = None;
            }
        }
        origin
    }
}
