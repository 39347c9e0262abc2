//! What a tool finds when it is called: the daemon, the recordings, and whether its caller still waits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use server::client::{Client, Wait};
use server::os_text::OsText;
use server::paths::Paths;
use server::protocol::{Code, Failure, NoticeKind};
use server::verbs::{
    Close, Command as Written, Does, Needs, Nothing, Open, OpenArgs, Position, Status, Verb,
};
use tokio::sync::Notify;

use crate::current::{Current, Named, only_one};
use crate::full::Recorders;
use crate::recordings::Recordings;
use crate::text;
use crate::tools::Page;
use crate::words;

/// How long the daemon may be silent if there is no time limit.
const PATIENCE: Duration = Duration::from_secs(600);

/// What all calls share.
pub struct Gateway {
    executable: PathBuf,
    paths: Paths,
    /// Recordings that this process opened as sessions, by their folders.
    opened: Mutex<HashMap<PathBuf, u32>>,
    pub(crate) recordings: Recordings,
    pub(crate) recorders: Recorders,
    /// Patterns of functions for the next program, from `debug_trace`.
    pub(crate) patterns: Mutex<Vec<String>>,
    /// The changes that `debug_history` has found last.
    pub(crate) history: Mutex<Option<Arc<Page>>>,
    calls: Mutex<HashMap<u64, Arc<Cancel>>>,
    next_call: AtomicU64,
    /// The only client sends nothing more.
    is_left: AtomicBool,
}

impl Gateway {
    /// Makes a gateway to the user's daemon; `executable` with the argument `daemon` starts one.
    #[must_use]
    pub fn new(executable: PathBuf) -> Gateway {
        Gateway {
            executable,
            paths: Paths::of_environment(),
            opened: Mutex::default(),
            recordings: Recordings::default(),
            recorders: Recorders::default(),
            patterns: Mutex::default(),
            history: Mutex::default(),
            calls: Mutex::default(),
            next_call: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
        }
    }

    /// Begins a call. Drop the context when it has been answered.
    pub(crate) fn begin(
        self: &Arc<Gateway>,
        cancel: Arc<Cancel>,
        progress: Arc<dyn Fn(&str) + Send + Sync>,
        current: Arc<Current>,
    ) -> Context {
        let number = self.next_call.fetch_add(1, Ordering::Relaxed);
        lock(&self.calls).insert(number, Arc::clone(&cancel));
        Context {
            gateway: Arc::clone(self),
            cancel,
            progress,
            current,
            whose: Whose::default(),
            cursor: 0,
            _end: Arc::new(End(Arc::clone(self), number)),
        }
    }

    /// Ends the calls that wait for a program: the only client has closed its end. Others may still be answered.
    pub(crate) fn end_waits(&self) {
        self.is_left.store(true, Ordering::SeqCst);
        for cancel in lock(&self.calls).values() {
            if cancel.waits.load(Ordering::SeqCst) {
                cancel.set();
            }
        }
    }

    /// Ends all calls: their client has closed its end a while ago. Each is answered by an error at once.
    pub(crate) fn end_calls(&self) {
        for cancel in lock(&self.calls).values() {
            cancel.set();
            cancel.given_up.notify_one();
        }
    }

    /// Ends the calls that still wait, and closes the recordings that this process opened. Programs stay as they are.
    pub fn leave(&self) {
        for cancel in lock(&self.calls).values() {
            cancel.set();
        }
        for (_, session) in lock(&self.opened).drain() {
            let Ok(mut client) = Client::connect(&self.paths) else {
                return;
            };
            let wait = Wait {
                patience: Some(Duration::from_secs(5)),
                notify: &mut |_| {},
            };
            // Somebody else may have closed it.
            let _ = client.call::<Close>(&Nothing {}, Some(session), wait);
        }
    }
}

/// Removes a call from the list when it ends.
struct End(Arc<Gateway>, u64);

impl Drop for End {
    fn drop(&mut self) {
        lock(&self.0.calls).remove(&self.1);
    }
}

/// Ends a call whose caller no longer wants the answer.
#[derive(Default)]
pub(crate) struct Cancel {
    is_set: AtomicBool,
    /// The call waits for a program, which may take for ever.
    waits: AtomicBool,
    /// Nobody waits for the end of its work any more.
    given_up: Notify,
    action: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Cancel {
    /// Ends the call.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        if let Some(action) = lock(&self.action).as_ref() {
            action();
        }
    }

    /// Returns whether the caller has gone.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    /// Returns when the call is given up.
    pub async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// Sets how to end the call's current wait.
    pub fn while_waiting(&self, action: impl Fn() + Send + 'static) {
        let mut held = lock(&self.action);
        if self.is_set() {
            action();
        }
        *held = Some(Box::new(action));
    }
}

/// One call of a tool.
#[derive(Clone)]
pub struct Context {
    pub(crate) gateway: Arc<Gateway>,
    cancel: Arc<Cancel>,
    progress: Arc<dyn Fn(&str) + Send + Sync>,
    pub(crate) current: Arc<Current>,
    /// What the call is about.
    pub whose: Whose,
    /// How many entries of the answer the caller has seen.
    pub cursor: usize,
    _end: Arc<End>,
}

impl Context {
    /// The same call, about `whose`. Its caller has seen `cursor` entries.
    pub fn about(&self, whose: Whose, cursor: usize) -> Context {
        Context {
            whose,
            cursor,
            ..self.clone()
        }
    }

    /// Returns a command of this program.
    pub(crate) fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.gateway.executable);
        command.arg(word);
        command
    }

    /// Notes that this call waits for a program from now on: it ends when its client does.
    pub(crate) fn waits(&self) {
        self.cancel.waits.store(true, Ordering::SeqCst);
        if self.gateway.is_left.load(Ordering::SeqCst) {
            self.cancel.set();
        }
    }

    /// Returns what ends this call.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Calls verb `V`.
    ///
    /// # Errors The verb's, or the daemon cannot be reached.
    pub fn ask<V: Verb>(&self, session: Option<u32>, args: &V::Args) -> Result<V::Reply, Failure> {
        self.ask_warned::<V>(session, args, &mut Vec::new())
    }

    /// As [`Context::ask`]; adds the verb's warnings to `warned`.
    ///
    /// # Errors
    /// As there.
    pub fn ask_warned<V: Verb>(
        &self,
        session: Option<u32>,
        args: &V::Args,
        warned: &mut Vec<String>,
    ) -> Result<V::Reply, Failure> {
        let begins = V::NEEDS == Needs::Daemon && V::DOES == Does::Change;
        let mut client = match begins {
            false => Client::connect(&self.gateway.paths),
            true => {
                let mut daemon = Command::new(&self.gateway.executable);
                daemon.arg("daemon");
                Client::connect_or_start(&self.gateway.paths, &mut daemon)
                    .map(|(client, _death)| client)
            }
        }
        .map_err(failure)?;
        if let Ok(cutter) = client.cutter() {
            self.cancel.while_waiting(move || cutter.cut());
        }
        let wait = Wait {
            patience: Some(PATIENCE),
            notify: &mut |notice| {
                let kind = notice.kind;
                let text = words::notice(notice).one_line();
                (self.progress)(&text);
                if kind == NoticeKind::Warning {
                    warned.push(text);
                }
            },
        };
        client.call::<V>(args, session, wait).map_err(failure)
    }

    /// Calls verb `V` and returns its reply as text for people.
    ///
    /// # Errors
    /// As [`Context::ask`].
    pub fn read<V: Written>(
        &self,
        session: Option<u32>,
        args: &V::Args,
    ) -> Result<String, Failure> {
        let reply = self.ask::<V>(session, args)?;
        Ok(text::plain(&V::text(&reply, args)))
    }

    /// Returns the session of this call: the one that it names, or that of its recording, which is opened once.
    ///
    /// # Errors There is no such recording, or the daemon cannot be reached.
    pub fn session(&self) -> Result<Option<u32>, Failure> {
        match (&self.whose.session_id, &self.whose.recording) {
            (Some(_), Some(_)) => Err(both()),
            (Some(SessionId(session)), None) => {
                let at = self.ask::<Position>(Some(*session), &Nothing {});
                // The verb itself says that there is no such session.
                if let Ok(at) = at {
                    self.current.set(*session, &at.recording);
                }
                Ok(Some(*session))
            }
            (None, Some(name)) => self.open(Path::new(name)).map(Some),
            (None, None) => self.unnamed(),
        }
    }

    /// Opens a recording as a session, which calls that name none then mean.
    ///
    /// # Errors There is no such recording, or the daemon cannot be reached.
    pub fn open(&self, recording: &Path) -> Result<u32, Failure> {
        let folder = folder(recording)?;
        let session = self.opened(&folder)?;
        self.current.set(session, &folder);
        Ok(session)
    }

    /// Returns the session of a call that names none: that of the last call. `None`: the daemon chooses, as there is only
    /// one program.
    fn unnamed(&self) -> Result<Option<u32>, Failure> {
        if let Some(named) = self.current.get() {
            return Ok(Some(named.session));
        }
        if let Some(recording) = self.current.recording() {
            if self.gateway.recorders.is_running(&recording) {
                let message = format!(
                    "every instruction is still being recorded into {}",
                    recording.display()
                );
                return Err(Failure::new(Code::NotStopped, message)
                    .hint("wait for the program's end: debug_wait; or end it: debug_session {\"action\": \"stop\"} with this recording"));
            }
            return self.open(&recording).map(Some);
        }
        // Without a daemon, the verb says that there is no session.
        let status = self.ask::<Status>(None, &Nothing {});
        let sessions = status.map(|status| status.sessions).unwrap_or_default();
        only_one(&sessions, &std::env::current_dir().unwrap_or_default())?;
        Ok(None)
    }

    /// Returns the folder of this call's recording, which calls that name none then mean.
    ///
    /// # Errors
    /// There is none.
    pub fn recording(&self) -> Result<PathBuf, Failure> {
        match (&self.whose.session_id, &self.whose.recording) {
            (Some(_), Some(_)) => Err(both()),
            (None, Some(name)) => {
                let folder = folder(Path::new(name))?;
                self.current.set_recording(&folder);
                Ok(folder)
            }
            (session_id, None) => self.recording_of_session(session_id.is_none()),
        }
    }

    /// Says which recording this call's name means, if that is a newer one than the recording of exactly that name.
    pub fn meant(&self) -> Option<String> {
        meant(Path::new(self.whose.recording.as_ref()?))
    }

    /// Returns the folder of the recording of this call's session. With `is_last`, that is the session of the last call.
    fn recording_of_session(&self, is_last: bool) -> Result<PathBuf, Failure> {
        let named = self.current.recording().filter(|_| is_last);
        if let Some(recording) = named
            && !self.gateway.recorders.is_running(&recording)
        {
            return folder(&recording);
        }
        let session = self.session()?;
        let at = self.ask::<Position>(session, &Nothing {});
        let gone = |failure| {
            // A session that was ended has left its recording.
            let named = self.current.get().filter(|_| is_last);
            named.map(|named| named.recording).ok_or(failure)
        };
        // After debug_full, the past is that of its instructions.
        at.map(|at| at.instructions.unwrap_or(at.recording))
            .or_else(gone)
    }

    /// Adds to the failure of a call to a session that has ended where that is recorded.
    pub fn with_recording(&self, mut failure: Failure) -> Failure {
        let is_asked = |named: &Named| match self.whose.session_id {
            Some(SessionId(asked)) => asked == named.session,
            None => self.whose.recording.is_none(),
        };
        let named = self.current.get().filter(is_asked);
        let Some(Named { recording, .. }) = named.filter(|named| named.recording.exists()) else {
            return failure;
        };
        if failure.code != Code::NoSession || failure.details.recording.is_some() {
            return failure;
        }
        let of = json!({ "recording": recording.to_string_lossy() });
        let others = failure.hint.take().map(|hint| format!("; {hint}"));
        let others = others.unwrap_or_default();
        failure.details.recording = Some(recording);
        failure.hint(format!(
            "its recording can still be asked: debug_overview {of}{others}"
        ))
    }

    /// Opens this call's recording for SQL.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn opened_recording(&self) -> Result<Arc<query::Session>, Failure> {
        self.gateway.recordings.open(&self.recording()?)
    }

    fn opened(&self, folder: &Path) -> Result<u32, Failure> {
        let known = lock(&self.gateway.opened).get(folder).copied();
        if let Some(session) = known {
            let is_there = self.ask::<Position>(Some(session), &Nothing {});
            if is_there.is_ok_and(|at| at.recording == folder) {
                return Ok(session);
            }
        }
        let args = OpenArgs {
            recording: OsText::from(folder.as_os_str()),
            program: None,
            at_first_call: true,
        };
        let session = self.ask::<Open>(None, &args)?.session;
        lock(&self.gateway.opened).insert(folder.to_owned(), session);
        Ok(session)
    }

    /// Notes that a session is no longer this process's to close.
    pub fn closed(&self, session: u32) {
        lock(&self.gateway.opened).retain(|_, opened| *opened != session);
    }
}

/// Which session or recording a call is about; neither: that of the last call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Whose {
    /// The session [default: that of the last call]
    pub session_id: Option<SessionId>,
    /// A recording, instead of a session
    pub recording: Option<String>,
}

/// The number of a session, which models also write as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId(pub u32);

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SessionId, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        let wrong = || serde::de::Error::custom(format!("sessionId {value} is not a number"));
        number.map(SessionId).ok_or_else(wrong)
    }
}

impl JsonSchema for SessionId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SessionId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer" })
    }
}

/// Finds the folder of a recording.
///
/// # Errors
/// There is none, or it cannot be completed.
pub fn folder(path: &Path) -> Result<PathBuf, Failure> {
    if server::past::is_core_file(path) {
        return server::past::located(path, None);
    }
    let found = store::recording::resolve(path);
    let found = found.map_err(|error| {
        let message = match &error {
            store::Error::NotARecording { .. } => error.to_string(),
            _ => format!("cannot {error}"),
        };
        let failure = Failure::new(Code::Failed, message);
        let hint = "debug_session {\"action\": \"list\"} shows the recordings of this folder";
        failure.hint(error.hint().unwrap_or(hint))
    })?;
    server::past::completed(&found)?;
    Ok(std::fs::canonicalize(&found).unwrap_or(found))
}

/// Says which recording a name means, if that is a newer one than the recording of exactly that name.
pub fn meant(name: &Path) -> Option<String> {
    let found = store::recording::resolve(name).ok()?;
    let older = store::recording::older_than(&found, name)?;
    let (found, older) = (found.display(), older.display());
    Some(format!("{found} is meant, which is newer than {older}"))
}

fn both() -> Failure {
    Failure::bad_request("a call is about a session or a recording, not both")
        .hint("leave out sessionId or recording")
}

/// Makes the failure of an error of the daemon or its client, with a hint in the words of the tools.
fn failure(error: server::Error) -> Failure {
    words::failure(match error {
        server::Error::Failed(failure) => *failure,
        other => {
            let hint = other.hint();
            let failure = Failure::new(Code::Failed, other.to_string());
            match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
    })
}

/// Takes a lock; its data is consistent even if a thread died while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
