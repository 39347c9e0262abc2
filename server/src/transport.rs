//! How a client sends requests for verbs: typed, in this process or over the daemon's socket. The client never sees the
//! JSON.

use std::sync::Arc;

use crate::client::{Client, Wait};
use crate::config::Config;
use crate::error::Result;
use crate::gone::Gone;
use crate::past::Past;
use crate::protocol::Notice;
use crate::session::Sessions;
use crate::verbs::{Asked, Call, Verb};

/// Something that answers verbs.
pub trait Transport {
    /// Sends a request for verb `V` and waits for its reply.
    ///
    /// # Errors
    /// The verb or the connection fails.
    fn call<V: Verb>(
        &mut self,
        args: &V::Args,
        session: Option<u32>,
        wait: Wait<'_>,
    ) -> Result<V::Reply>;
}

impl Transport for Client {
    fn call<V: Verb>(
        &mut self,
        args: &V::Args,
        session: Option<u32>,
        wait: Wait<'_>,
    ) -> Result<V::Reply> {
        Client::call::<V>(self, args, session, wait)
    }
}

/// Answers verbs about a recording in this process.
pub struct InProcess {
    sessions: Arc<Sessions>,
    config: Config,
    interrupt: Arc<Gone>,
    notify: Arc<dyn Fn(Notice) + Send + Sync>,
}

impl InProcess {
    /// Makes a transport for a recording.
    #[must_use]
    pub fn new(past: Past) -> InProcess {
        InProcess {
            sessions: Sessions::of_recording(past),
            config: Config::default(),
            interrupt: Arc::default(),
            notify: Arc::new(|_| {}),
        }
    }

    /// Passes to `notify` what a verb says before its answer.
    #[must_use]
    pub fn telling(self, notify: Arc<dyn Fn(Notice) + Send + Sync>) -> InProcess {
        InProcess { notify, ..self }
    }

    /// Returns a flag that, when set, ends a search through time. The caller clears it before the next one.
    #[must_use]
    pub fn interrupt(&self) -> Arc<Gone> {
        Arc::clone(&self.interrupt)
    }

    /// Returns the recording.
    ///
    /// # Panics
    /// Never: there is always one.
    #[must_use]
    pub fn past(&self) -> Arc<Past> {
        self.sessions.alone().expect("made of a recording")
    }
}

impl Transport for InProcess {
    fn call<V: Verb>(
        &mut self,
        args: &V::Args,
        session: Option<u32>,
        _: Wait<'_>,
    ) -> Result<V::Reply> {
        let notify = Arc::clone(&self.notify);
        let gone = Arc::clone(&self.interrupt);
        let asked = Asked {
            session,
            folder: None,
        };
        let call = Call::new(&self.sessions, &self.config, asked, notify, gone);
        Ok(call.run::<V>(args.clone())?)
    }
}
