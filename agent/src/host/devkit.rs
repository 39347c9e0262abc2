//! Drives Frida through the `frida` crate, which links Frida's devkit into this process.
//!
//! Each Frida object borrows from the one that made it, so one thread per host keeps them all on its stack and serves
//! requests. Leaving the target ends that thread. Frida itself starts with the first host and stays as long as this
//! process, because hosts of several sessions may overlap. Where the crate would wait for ever (for the answer of a
//! process that died), the requesting side waits with a timeout instead.

use std::{
    fs,
    sync::{
        OnceLock,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use frida::{DeviceManager, Frida, Message, Script, ScriptHandler, ScriptOption, Session};
use serde_json::{Value, json};

use super::Host;
use crate::{Error, Result, wheel::VERSION};

/// Appended to scripts: exports answer `{ok}` or `{error}` and never throw. The crate accepts only answers of four
/// parts, and Frida sends seven for an exception (name and stack too), so the crate would wait for ever.
const CATCH_ALL: &str = "
for (const [name, call] of Object.entries(rpc.exports)) {
  rpc.exports[name] = argument => {
    try {
      return { ok: call(argument) ?? null };
    } catch (e) {
      return { error: String(e.message ?? e) };
    }
  };
}
";

/// How often a waiting host checks that the process still exists.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long Frida may take to report the end of the process by itself.
const END_PATIENCE: Duration = Duration::from_secs(2);

static FRIDA: OnceLock<Frida> = OnceLock::new();

/// A session of the Frida inside this process.
#[derive(Debug)]
pub struct DevkitHost {
    requests: Option<Sender<Request>>,
    answers: Receiver<Result<Value>>,
    thread: Option<JoinHandle<()>>,
    pid: i32,
}

#[derive(Debug)]
enum Request {
    Attach(i32),
    Load(String),
    Call { name: String, argument: Value },
    Detach,
}

impl DevkitHost {
    /// Starts Frida on a thread of its own.
    ///
    /// # Errors
    /// [`Error::OtherVersion`] of the library that is linked in; [`Error::HelperGone`] when the thread cannot be made.
    pub fn start() -> Result<Self> {
        check_version(Frida::version())?;
        let (requests, asked) = channel();
        let (answer, answers) = channel();
        let thread = thread::Builder::new()
            .name("frida".into())
            .spawn(move || serve(&asked, &answer))
            .map_err(|error| Error::HelperGone {
                detail: error.to_string(),
            })?;
        Ok(Self {
            requests: Some(requests),
            answers,
            thread: Some(thread),
            pid: 0,
        })
    }

    fn request(&mut self, request: Request) -> Result<Value> {
        let gone = |detail: &str| Error::HelperGone {
            detail: detail.into(),
        };
        let sent = self.requests.as_ref().map(|to| to.send(request));
        if !matches!(sent, Some(Ok(()))) {
            return Err(gone("it was told to leave"));
        }
        let mut ended_since = None;
        loop {
            match self.answers.recv_timeout(LOOK_EVERY) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(gone("its thread panicked")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !is_running(self.pid) {
                let since = *ended_since.get_or_insert_with(Instant::now);
                if since.elapsed() > END_PATIENCE {
                    self.abandon();
                    return Err(gone("the program ended meanwhile"));
                }
            }
        }
    }

    /// Abandons a thread that waits for something that will not come: it cannot be joined.
    fn abandon(&mut self) {
        self.requests = None;
        self.thread = None;
    }

    fn join(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed when it happened, and nothing else depends on the thread.
            let _ = thread.join();
        }
    }
}

impl Host for DevkitHost {
    fn ready(&mut self) -> Result<()> {
        // Requests wait for the thread, which first starts Frida.
        Ok(())
    }

    fn version(&self) -> &str {
        Frida::version()
    }

    fn attach(&mut self, pid: i32) -> Result<()> {
        self.pid = pid;
        self.request(Request::Attach(pid)).map(drop)
    }

    fn load(&mut self, source: &str) -> Result<()> {
        let source = [source, CATCH_ALL].concat();
        self.request(Request::Load(source)).map(drop)
    }

    fn call(&mut self, name: &str, argument: Value) -> Result<Value> {
        let mut answer = self.request(Request::Call {
            name: name.into(),
            argument,
        })?;
        match answer.get("error").and_then(Value::as_str) {
            Some(message) => Err(refused(calling(name), message)),
            None => Ok(answer["ok"].take()),
        }
    }

    fn detach(&mut self) -> Result<()> {
        let answer = self.request(Request::Detach);
        self.join();
        answer.map(drop)
    }
}

impl Drop for DevkitHost {
    fn drop(&mut self) {
        self.join();
    }
}

/// Messages of scripts other than answers. The crate passes handlers the address of another object, so this
/// type must have no fields.
struct Listener;

const _: () = assert!(size_of::<Listener>() == 0);

impl ScriptHandler for Listener {
    fn on_message(&mut self, message: Message, _data: Option<Vec<u8>>) {
        tracing::debug!(?message, "the agent's script says");
    }
}

/// Runs on the thread that owns Frida, until it is asked to leave or the host is gone.
fn serve(requests: &Receiver<Request>, answers: &Sender<Result<Value>>) {
    // SAFETY: initialises Frida in this process, once. A static is never dropped, so Frida is not shut down while an
    // object made from it exists.
    let frida = FRIDA.get_or_init(|| unsafe { Frida::obtain() });
    let manager = DeviceManager::obtain(frida);
    while let Ok(request) = requests.recv() {
        let answer = match request {
            Request::Attach(pid) => match attach(&manager, pid, requests, answers) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Request::Detach => {
                let _ = answers.send(Ok(Value::Null));
                return;
            }
            Request::Load(_) | Request::Call { .. } => Err(out_of_order("attached to")),
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// Returns when all work in the process is done, or when attaching fails.
fn attach(
    manager: &DeviceManager<'_>,
    pid: i32,
    requests: &Receiver<Request>,
    answers: &Sender<Result<Value>>,
) -> Result<()> {
    let action = || format!("attach to process {pid}");
    let number = u32::try_from(pid).map_err(|error| refused(action(), error))?;
    let device = manager
        .get_local_device()
        .map_err(|error| refused(action(), error))?;
    let session = device
        .attach(number)
        .map_err(|error| refused(action(), error))?;
    let _ = answers.send(Ok(Value::Null));
    while let Ok(request) = requests.recv() {
        let answer = match request {
            Request::Load(source) => match load(&session, &source) {
                Ok(script) => {
                    let _ = answers.send(Ok(Value::Null));
                    serve_calls(script, &session, requests, answers);
                    return Ok(());
                }
                Err(error) => Err(error),
            },
            Request::Detach => {
                let _ = answers.send(leave(None, &session));
                return Ok(());
            }
            Request::Attach(_) => Err(out_of_order("left by")),
            Request::Call { .. } => Err(out_of_order("given a script by")),
        };
        if answers.send(answer).is_err() {
            break;
        }
    }
    // The host is gone: the process must not keep the script.
    let _ = leave(None, &session);
    Ok(())
}

fn load<'a>(session: &'a Session<'a>, source: &str) -> Result<Script<'a>> {
    let failed = |error| refused("load the agent's script".into(), error);
    let mut script = session
        .create_script(source, &mut ScriptOption::default())
        .map_err(failed)?;
    // Without a handler the answers of exports are dropped.
    script.handle_message(Listener).map_err(failed)?;
    script.load().map_err(failed)?;
    Ok(script)
}

fn serve_calls(
    mut script: Script<'_>,
    session: &Session<'_>,
    requests: &Receiver<Request>,
    answers: &Sender<Result<Value>>,
) {
    while let Ok(request) = requests.recv() {
        let answer = match request {
            Request::Call { name, argument } => script
                .exports
                .call(&name, Some(json!([argument])))
                .map(Option::unwrap_or_default)
                .map_err(|error| refused(calling(&name), error)),
            Request::Detach => {
                let _ = answers.send(leave(Some(&script), session));
                return;
            }
            Request::Attach(_) | Request::Load(_) => Err(out_of_order("left by")),
        };
        if answers.send(answer).is_err() {
            break;
        }
    }
    let _ = leave(Some(&script), session);
}

/// Unloads and detaches, and detaches even if the first fails.
fn leave(script: Option<&Script<'_>>, session: &Session<'_>) -> Result<Value> {
    let unloaded = script.map_or(Ok(()), Script::unload);
    let detached = session.detach();
    unloaded
        .and(detached)
        .map(|()| Value::Null)
        .map_err(|error| refused("leave the program".into(), error))
}

/// Refuses a version that is not tested: some corrupt programs (see [`VERSION`]).
fn check_version(found: &str) -> Result<()> {
    match found == VERSION {
        true => Ok(()),
        false => Err(Error::OtherVersion {
            found: found.to_owned(),
            pinned: VERSION,
        }),
    }
}

fn calling(name: &str) -> String {
    format!("{name} the runtime in the program")
}

fn refused(action: String, error: impl ToString) -> Error {
    Error::Frida {
        action,
        message: error.to_string(),
        // The crate does not report it.
        is_timeout: false,
    }
}

fn out_of_order(what: &str) -> Error {
    refused(
        "drive Frida".into(),
        format!("the program must be {what} it first"),
    )
}

fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may hold parentheses itself.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_frida_is_refused() {
        assert!(check_version(VERSION).is_ok());
        for found in ["17.9.5", "17.25.20", ""] {
            let refused = check_version(found).unwrap_err();
            let message = format!("use Frida {found}, which is linked in: {VERSION} is needed");
            assert_eq!(refused.to_string(), message);
            assert!(refused.hint().unwrap().contains(VERSION));
        }
    }
}
