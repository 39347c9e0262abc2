//! A request being served: the client, the session it asks about, and what the verb finds there.
//!
//! A verb declares what it needs. The needs are checked here before the verb runs, so that a refusal reads the same for
//! all verbs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};

use recorder::Outcome;
use recorder::live::{Live, LiveError, Tid};

use super::{Does, Needs, ProbeKind, Verb};
use crate::config::Config;
use crate::gone::Gone;
use crate::inspect::View;
use crate::past::Past;
use crate::progress::{Told, told};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::push::Push;
use crate::session::{LiveSession, MAX_FRAMES, Session, Sessions, of_recorder};

/// A request being served.
#[derive(Clone)]
pub struct Call<'a> {
    /// All sessions.
    pub sessions: &'a Arc<Sessions>,
    /// The user's settings.
    pub config: &'a Config,
    /// The session that the client asks about.
    pub asked: Asked,
    /// Sends the client a notice before the answer.
    pub notify: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Set when the client has gone or no longer wants the answer.
    pub gone: Arc<Gone>,
    /// Returns the queue of pushes to the client; `None` if the client cannot receive any.
    pushes: Option<&'a dyn Fn() -> Weak<SyncSender<Push>>>,
    /// The thread to look at, in place of the selected one.
    thread: Option<OtherThread>,
    verb: &'static str,
    needs: Needs,
    does: Does,
}

/// A thread to look at, in place of the selected one.
#[derive(Clone)]
struct OtherThread {
    tid: Tid,
    /// The verb has asked which one it is.
    was_asked: Arc<AtomicBool>,
}

/// The session that a client asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The session's number, if given.
    pub session: Option<u32>,
    /// The client's folder. Without a number, sessions begun in this folder come first.
    pub folder: Option<PathBuf>,
}

impl<'a> Call<'a> {
    /// Makes the call of a client.
    pub fn new(
        sessions: &'a Arc<Sessions>,
        config: &'a Config,
        asked: Asked,
        notify: Arc<dyn Fn(Notice) + Send + Sync>,
        gone: Arc<Gone>,
    ) -> Call<'a> {
        Call {
            sessions,
            config,
            asked,
            notify,
            gone,
            pushes: None,
            thread: None,
            verb: "",
            needs: Needs::Daemon,
            does: Does::Look,
        }
    }

    /// Sets the queue of pushes to the client.
    #[must_use]
    pub fn pushing(self, pushes: &'a dyn Fn() -> Weak<SyncSender<Push>>) -> Call<'a> {
        Call {
            pushes: Some(pushes),
            ..self
        }
    }

    /// Returns the queue of pushes to the client.
    ///
    /// # Errors
    /// [`Code::NotAllowed`]: the client cannot receive pushes.
    pub fn pushes(&self) -> Result<Weak<SyncSender<Push>>, Failure> {
        let pushes = self.pushes.map(|pushes| pushes());
        pushes.ok_or_else(|| Failure::new(Code::NotAllowed, "nothing can be pushed to this client"))
    }

    /// Runs verb `V` if its needs are met.
    ///
    /// # Errors
    /// The verb fails, or a need is not met.
    pub fn run<V: Verb>(&self, args: V::Args) -> Result<V::Reply, Failure> {
        let call = Call {
            verb: V::NAME,
            needs: V::NEEDS,
            does: V::DOES,
            ..self.clone()
        };
        let time = call.config.question_time();
        let work = || replay::with_question_time(time, || V::run(&call, args));
        let reply = call.check().and_then(|()| call.overseen(work));
        call.tell_failures();
        reply.map_err(|failure| call.with_the_way_back(failure))
    }

    /// Does `work`. Where it runs through a recording, the client receives its progress, and may end it.
    fn overseen<T>(&self, work: impl FnOnce() -> T) -> T {
        let past = match self.session() {
            Ok(Session::Recorded(past)) => past,
            _ => return work(),
        };
        let timeline = past.timeline();
        let passed = match timeline.has_every_instruction() {
            true => (
                "instruction",
                u64::try_from(timeline.last_ts_ns()).unwrap_or(0),
            ),
            false => ("event", timeline.last()),
        };
        let told = Told::new(passed, Arc::clone(&self.gone), Arc::clone(&self.notify));
        replay::overseen(told.overseer(), work)
    }

    fn check(&self) -> Result<(), Failure> {
        match self.needs {
            Needs::Daemon => match (self.sessions.alone(), self.past_of_prompt()) {
                (Some(past), _) | (None, Some(past)) => Err(past.needs_the_program(self.verb)),
                (None, None) => Ok(()),
            },
            Needs::Session | Needs::Recording => self.session().map(drop),
            Needs::Control => self.controlled().map(drop),
            Needs::Program => self.live().map(drop),
            Needs::RunningProgram => self.live()?.must_run(),
            Needs::StoppedProgram => self.live()?.stopped().map(drop),
            Needs::Stop | Needs::Frame => match self.target()? {
                Session::Live(session) => session.stopped().map(drop),
                Session::Recorded(_) => Ok(()),
            },
        }
    }

    /// Returns the past that the user has entered, if a prompt there tries to change another session: the prompt would
    /// lose its program.
    fn past_of_prompt(&self) -> Option<Arc<Past>> {
        self.asked.session.filter(|_| self.does == Does::Change)?;
        match self.target() {
            Ok(Session::Recorded(past)) if past.is_of_a_session() => Some(past),
            _ => None,
        }
    }

    /// Returns the session that the client asks about.
    ///
    /// # Errors
    /// [`Code::NoSession`].
    pub fn session(&self) -> Result<Session, Failure> {
        self.sessions.get(&self.asked)
    }

    /// Returns the client's folder, or this process's folder if the client did not send one.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let folder = self.asked.folder.clone();
        folder
            .or_else(|| std::env::current_dir().ok())
            .unwrap_or_default()
    }

    /// Returns the session that the client asks about, or its past if the user has entered it.
    ///
    /// # Errors
    /// [`Code::NoSession`].
    pub fn target(&self) -> Result<Session, Failure> {
        Ok(match self.session()? {
            Session::Live(session) => match session.entered_past() {
                Some(past) => Session::Recorded(past),
                None => Session::Live(session),
            },
            recorded => recorded,
        })
    }

    /// Returns the program under control.
    ///
    /// # Errors
    /// [`Code::NoSession`]. [`Code::NotAllowed`] for a recording, or if the user is in the past.
    pub fn live(&self) -> Result<Arc<LiveSession>, Failure> {
        match self.target()? {
            Session::Live(session) => Ok(session),
            Session::Recorded(past) => Err(past.needs_the_program(self.verb)),
        }
    }

    /// Returns the program under control, also if the user is in its past.
    ///
    /// # Errors
    /// [`Code::NoSession`]. [`Code::NotAllowed`] for a recording.
    pub fn controlled(&self) -> Result<Arc<LiveSession>, Failure> {
        match self.session()? {
            Session::Live(session) => Ok(session),
            Session::Recorded(past) => Err(past.needs_the_program(self.verb)),
        }
    }

    /// Returns the recording, without entering the past. For a live session it is positioned where the program is.
    ///
    /// # Errors
    /// [`Code::NoSession`]. [`Code::NotStopped`] while the program runs. The recording cannot be read.
    pub fn recording(&self) -> Result<Arc<Past>, Failure> {
        match self.target()? {
            Session::Live(session) => self.past_of(&session),
            Session::Recorded(past) => Ok(past),
        }
    }

    /// As [`Call::recording`], in the selected frame, in which an expression is to be understood.
    ///
    /// # Errors
    /// As there, and the recording does not show that frame.
    pub fn recording_in_frame(&self, expression: &str) -> Result<Arc<Past>, Failure> {
        match self.target()? {
            Session::Live(session) => {
                let past = self.past_of(&session)?;
                past.go_over_own_writes()?;
                session.select_frame_in(&past, expression)?;
                Ok(past)
            }
            Session::Recorded(past) => Ok(past),
        }
    }

    /// Opens the past of a program. What was recorded since the last time is converted first.
    fn past_of(&self, session: &LiveSession) -> Result<Arc<Past>, Failure> {
        self.told("reading what was recorded", || session.past())
    }

    /// Does `work` that may take long; the client learns that it goes on.
    pub(super) fn told<T: Send>(&self, what: &str, work: impl FnOnce() -> T + Send) -> T {
        told(what, &self.notify, work)
    }

    /// Closes a session's recording with `end`, however long that takes, and forgets the session.
    pub(super) fn close(
        &self,
        session: &LiveSession,
        end: impl Fn(&Live) -> recorder::Result<Outcome> + Send + Sync,
    ) -> Result<Outcome, Failure> {
        let gone = &self.gone;
        let outcome = self.told("closing the recording", || {
            loop {
                match end(&session.live) {
                    Err(recorder::Error::Live(LiveError::Closing)) if !gone.is_set() => {}
                    ended => break ended,
                }
            }
        });
        let outcome = outcome.map_err(|error| of_recorder(&error))?;
        self.sessions.remove(session.id);
        self.sessions.end_if_none_are_left();
        Ok(outcome)
    }

    /// Moves through the recording. In a live session, a successful move enters the past.
    ///
    /// # Errors
    /// As [`Call::recording`], and the errors of the move.
    pub fn travel<T>(&self, go: impl FnOnce(&Past) -> Result<T, Failure>) -> Result<T, Failure> {
        match self.target()? {
            Session::Recorded(past) => go(&past),
            Session::Live(session) => {
                let past = self.past_of(&session)?;
                let went = go(&past)?;
                session.enter_past();
                Ok(went)
            }
        }
    }

    /// Returns this call for a verb that is to look at thread `tid`, in place of the selected one.
    pub(super) fn of_thread(&self, tid: Tid) -> Call<'a> {
        let thread = OtherThread {
            tid,
            was_asked: Arc::default(),
        };
        Call {
            thread: Some(thread),
            ..self.clone()
        }
    }

    /// Returns the thread to look at, if it is not the selected one.
    pub(super) fn other_thread(&self) -> Option<Tid> {
        let thread = self.thread.as_ref()?;
        thread.was_asked.store(true, Ordering::Relaxed);
        Some(thread.tid)
    }

    /// Returns whether a verb has looked at the thread of [`Call::of_thread`].
    pub(super) fn has_looked(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| thread.was_asked.load(Ordering::Relaxed))
    }

    /// Runs `work` on the selected frame of a stopped thread or of a recorded event, or on the memory alone of a
    /// running program. A recorded moment has at least `limit` frames if the stack is that deep.
    ///
    /// # Errors
    /// The errors of `work`. [`Code::NotRunning`]. The verb needs a frame, and there is none.
    pub fn look<T>(
        &self,
        limit: usize,
        work: impl FnOnce(&View<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let checked = |view: &View<'_>| {
            if self.needs == Needs::Frame {
                view.frame()?;
            }
            work(view)
        };
        match (self.target()?, self.other_thread()) {
            (Session::Live(session), None) => session.look(checked),
            (Session::Live(session), Some(tid)) => {
                let stop = session.stopped_thread(tid)?;
                checked(&session.moment_of(stop, MAX_FRAMES)?.view())
            }
            (Session::Recorded(past), None) => past.look(limit, |looked| checked(&looked.view())),
            (Session::Recorded(past), Some(tid)) => {
                let position = past.position_of(past.known_thread(tid)?);
                past.look_at(position, limit, |looked| checked(&looked.view()))
            }
        }
    }

    /// As [`Call::look`], for an answer about types: a program that has ended has them too.
    ///
    /// # Errors
    /// As there.
    pub fn look_at_types<T>(
        &self,
        limit: usize,
        work: impl FnOnce(&View<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match (self.target()?, self.other_thread()) {
            (Session::Live(session), None) => session.look_at_types(work),
            _ => self.look(limit, work),
        }
    }

    /// Returns whether the client has gone or no longer wants the answer.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.is_set()
    }

    /// At the end of a session's past, the hint names the way to its program.
    fn with_the_way_back(&self, failure: Failure) -> Failure {
        if failure.code != Code::NoEvent || !self.is_in_past() {
            return failure;
        }
        let way = "to the program as it is now: goto live";
        let hint = match &failure.hint {
            None => way.to_owned(),
            Some(hint) => format!("{hint}; {way}"),
        };
        failure.hint(hint)
    }

    fn is_in_past(&self) -> bool {
        match self.target() {
            Ok(Session::Recorded(past)) => past.is_of_a_session(),
            _ => false,
        }
    }

    /// Reports the session's new warnings, and conditions and messages that have failed since the last verb. A client that
    /// has gone leaves them to the next one.
    fn tell_failures(&self) {
        if self.is_gone() {
            return;
        }
        let session = match self.session() {
            Ok(Session::Live(session)) => session,
            Ok(Session::Recorded(past)) => {
                for text in past.take_untold() {
                    (self.notify)(Notice::new(NoticeKind::Warning, text));
                }
                return;
            }
            Err(_) => return,
        };
        for warning in session.take_untold_warnings() {
            (self.notify)(Notice::warning(warning));
        }
        let untold = session.live.untold_failures();
        if untold.is_empty() {
            return;
        }
        let probes = session.live.probes();
        for (id, failed) in untold {
            let view = probes.iter().find(|view| view.id == id);
            let what = view.map_or("probe", |view| ProbeKind::of(&view.spec).word());
            // If code in the program evaluates the condition too, the list has the more complete count.
            let failed = view.and_then(|view| view.failed.clone()).unwrap_or(failed);
            let text = format!("{what} {id}: {}", failed.words());
            (self.notify)(Notice::new(NoticeKind::Warning, text));
        }
    }
}
