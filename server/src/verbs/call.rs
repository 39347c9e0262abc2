//! A request on its way: who asks, about which session, and what the verb finds there.
//!
//! What a verb needs is checked here, by its own description, before it runs: a refusal reads the same for all verbs.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};

use super::{Does, Needs, ProbeKind, Verb};
use crate::config::Config;
use crate::gone::Gone;
use crate::inspect::View;
use crate::past::Past;
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::push::Push;
use crate::session::{LiveSession, Session, Sessions};

/// A request on its way.
#[derive(Clone)]
pub struct Call<'a> {
    /// All sessions.
    pub sessions: &'a Arc<Sessions>,
    /// The user's settings.
    pub config: &'a Config,
    /// Who asks, and about what.
    pub asked: Asked,
    /// Tells the client something before the answer.
    pub notify: Arc<dyn Fn(Notice) + Send + Sync>,
    /// The client has gone, or wants no answer any more.
    pub gone: Arc<Gone>,
    /// Takes what is pushed to the client; `None` where nothing can be.
    pushes: Option<&'a dyn Fn() -> Weak<SyncSender<Push>>>,
    verb: &'static str,
    needs: Needs,
    does: Does,
}

/// Which session is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The one that was named.
    pub session: Option<u32>,
    /// The client's folder: where no session is named, those that were begun there come first.
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
            verb: "",
            needs: Needs::Daemon,
            does: Does::Look,
        }
    }

    /// Says where what is pushed to the client goes.
    #[must_use]
    pub fn pushing(self, pushes: &'a dyn Fn() -> Weak<SyncSender<Push>>) -> Call<'a> {
        Call {
            pushes: Some(pushes),
            ..self
        }
    }

    /// Returns where what is pushed to the client goes.
    ///
    /// # Errors
    /// [`Code::NotAllowed`]: nothing can be pushed to it.
    pub fn pushes(&self) -> Result<Weak<SyncSender<Push>>, Failure> {
        let pushes = self.pushes.map(|pushes| pushes());
        pushes.ok_or_else(|| Failure::new(Code::NotAllowed, "nothing can be pushed to this client"))
    }

    /// Runs verb `V`, if what it needs is there.
    ///
    /// # Errors
    /// The verb's, or what is missing.
    pub fn run<V: Verb>(&self, args: V::Args) -> Result<V::Reply, Failure> {
        let call = Call {
            verb: V::NAME,
            needs: V::NEEDS,
            does: V::DOES,
            ..self.clone()
        };
        let reply = call.check().and_then(|()| V::run(&call, args));
        call.tell_failures();
        reply.map_err(|failure| call.with_the_way_back(failure))
    }

    fn check(&self) -> Result<(), Failure> {
        match self.needs {
            Needs::Daemon => match (self.sessions.alone(), self.past_of_prompt()) {
                (Some(past), _) | (None, Some(past)) => Err(past.needs_the_program(self.verb)),
                (None, None) => Ok(()),
            },
            Needs::Session | Needs::Recording => self.session().map(drop),
            Needs::Program => self.live().map(drop),
            Needs::RunningProgram => self.live()?.must_run(),
            Needs::StoppedProgram => self.live()?.stopped().map(drop),
            Needs::Stop | Needs::Frame => match self.target()? {
                Session::Live(session) => session.stopped().map(drop),
                Session::Recorded(_) => Ok(()),
            },
        }
    }

    /// Returns the past that is looked at where a prompt asks for another session: it would lose sight of its program.
    fn past_of_prompt(&self) -> Option<Arc<Past>> {
        self.asked.session.filter(|_| self.does == Does::Change)?;
        match self.target() {
            Ok(Session::Recorded(past)) if past.is_of_a_session() => Some(past),
            _ => None,
        }
    }

    /// Returns the session that is meant.
    ///
    /// # Errors
    /// [`Code::NoSession`].
    pub fn session(&self) -> Result<Session, Failure> {
        self.sessions.get(&self.asked)
    }

    /// Returns the client's folder; ours where it does not say.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let folder = self.asked.folder.clone();
        folder
            .or_else(|| std::env::current_dir().ok())
            .unwrap_or_default()
    }

    /// Returns what is looked at: the session that is meant, or the past of a live one.
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
    /// [`Code::NoSession`]; [`Code::NotAllowed`] for a recording, and where the past is looked at.
    pub fn live(&self) -> Result<Arc<LiveSession>, Failure> {
        match self.target()? {
            Session::Live(session) => Ok(session),
            Session::Recorded(past) => Err(past.needs_the_program(self.verb)),
        }
    }

    /// Returns the recording to look at once: that of a live session shows where the program stands.
    ///
    /// # Errors
    /// [`Code::NoSession`], [`Code::NotStopped`] while the program runs; the recording cannot be read.
    pub fn recording(&self) -> Result<Arc<Past>, Failure> {
        match self.target()? {
            Session::Live(session) => session.past(),
            Session::Recorded(past) => Ok(past),
        }
    }

    /// Goes through the recording: a live session's past is looked at from then on, if the move leads anywhere.
    ///
    /// # Errors
    /// As [`Call::recording`], and the move's.
    pub fn travel<T>(&self, go: impl FnOnce(&Past) -> Result<T, Failure>) -> Result<T, Failure> {
        match self.target()? {
            Session::Recorded(past) => go(&past),
            Session::Live(session) => {
                let past = session.past()?;
                let went = go(&past)?;
                session.enter_past();
                Ok(went)
            }
        }
    }

    /// Looks at the moment: the chosen frame of a stopped thread or of a recorded event; of a program that runs, memory alone.
    /// A recorded moment has at least `limit` frames, if there are so many.
    ///
    /// # Errors
    /// What `work` fails with; [`Code::NotRunning`]; there is no frame, and the verb needs one.
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
        match self.target()? {
            Session::Live(session) => session.look(checked),
            Session::Recorded(past) => past.look(limit, |looked| checked(&looked.view())),
        }
    }

    /// Says whether the client has gone, or does not want the answer any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.is_set()
    }

    /// Where the past of a session ends, its program is.
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

    /// Tells of conditions and messages of the session that have failed since the last verb.
    fn tell_failures(&self) {
        let Ok(Session::Live(session)) = self.session() else {
            return;
        };
        let untold = session.live.untold_failures();
        if untold.is_empty() {
            return;
        }
        let probes = session.live.probes();
        for (id, failed) in untold {
            let view = probes.iter().find(|view| view.id == id);
            let what = view.map_or("probe", |view| ProbeKind::of(&view.spec).word());
            // Where the program judges too, the list knows better how often it was.
            let failed = view.and_then(|view| view.failed.clone()).unwrap_or(failed);
            (self.notify)(Notice {
                kind: NoticeKind::Warning,
                text: format!("{what} {id}: {}", failed.words()),
            });
        }
    }
}
