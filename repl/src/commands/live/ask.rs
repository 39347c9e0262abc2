//! Sends requests for verbs and shows the replies: as text, or with `--json` as the daemon's response.

use std::io::{self, IsTerminal};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use server::client::{Client, Wait};
use server::config::Config;
use server::paths::Paths;
use server::protocol::{Failure, NoticeKind, Response};
use server::verbs::{Does, Eval, Needs, Verb};

use super::Link;
use super::interrupt::{self, OnInterrupt};
use crate::ask::Interrupts;
use crate::commands::daemon;
use crate::error::Error;
use crate::exit;
use crate::output::{self, to_stdout};
use crate::progress::Progress;
use crate::render::Terminal;

/// What all verbs take.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Common {
    /// Which session [default: HINDSIGHT_SESSION, or the newest of this folder, or the newest]
    #[arg(long, value_name = "N")]
    pub session: Option<u32>,
    /// Print the daemon's response as JSON
    #[arg(long)]
    pub json: bool,
}

/// How long to wait for a verb.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// The time for an answer.
    Answer,
    /// The time for a stop: the given seconds, or the configured time.
    Stop(Option<f64>),
    /// A start reads programs and may download the one-time prerequisites. Only the time without progress is limited.
    Start(Option<f64>),
    /// The time for a search through a recording.
    Search,
}

/// The environment variable with the session's number.
pub const SESSION_VARIABLE: &str = "HINDSIGHT_SESSION";
/// How long a start or a search may take without progress.
const START_PATIENCE: Duration = Duration::from_secs(600);

/// Sends a request for verb `V` and shows its reply.
///
/// # Errors
/// When the verb fails.
pub fn ask<V: Verb>(
    common: &Common,
    link: &Link,
    args: &V::Args,
    patience: Patience,
    show: impl FnOnce(&V::Reply) -> String,
) -> Result<u8, Error> {
    let reply = fetch::<V>(common, link, args, patience);
    answer::<V>(common, reply, show)
}

/// Sends a request and returns the reply. A verb that begins a session starts the daemon if none runs.
///
/// # Errors
/// When the verb fails.
pub fn fetch<V: Verb>(
    common: &Common,
    link: &Link,
    args: &V::Args,
    patience: Patience,
) -> Result<V::Reply, Error> {
    match link.ask_recording::<V>(args) {
        Some(reply) => reply,
        None => asked_of_daemon::<V>(common, link, args, patience),
    }
}

/// Sends a request to the daemon, even while a recording is open in this process.
///
/// # Errors
/// When the verb fails.
pub fn asked_of_daemon<V: Verb>(
    common: &Common,
    link: &Link,
    args: &V::Args,
    patience: Patience,
) -> Result<V::Reply, Error> {
    let config = Config::load()?;
    let paths = Paths::of_environment();
    let progress = Progress::new(link.terminal());
    let begins = V::NEEDS == Needs::Daemon && V::DOES == Does::Change;
    let mut client = match begins {
        false => Client::connect(&paths)?,
        true => {
            let exe =
                std::env::current_exe().map_err(|source| Error::io("find this program", source))?;
            let mut command = Command::new(exe);
            command.arg(daemon::NAME);
            let (client, death) = Client::connect_or_start(&paths, &mut command)?;
            if let Some(death) = death {
                progress.warning(&death.message);
            }
            client
        }
    };
    let mut notify = |notice: server::protocol::Notice| match notice.kind {
        NoticeKind::Progress => progress.setup(&notice.text),
        NoticeKind::Running => progress.running(&notice.text, notice.may_leave),
        NoticeKind::Warning => progress.warning(&notice.one_line()),
    };
    let wait = Wait {
        patience: Some(time(&config, patience)),
        notify: &mut notify,
    };
    let session = match (V::NEEDS, V::DOES) {
        // All sessions, unless one is given.
        (Needs::Daemon, Does::Look) => common.session,
        // The session of the prompt.
        (Needs::Daemon, _) => link.session(),
        _ => meant(common, link)?,
    };
    if link.is_prompt() {
        let interrupted = match patience {
            Patience::Answer | Patience::Search => OnInterrupt::Leave,
            Patience::Stop(_) | Patience::Start(_) => OnInterrupt::Pause(session),
        };
        let answered = interrupt::call(&mut client, &paths, interrupted, link, |client| {
            client.call::<V>(args, session, wait)
        });
        progress.finish();
        return answered;
    }
    if matches!(patience, Patience::Stop(_) | Patience::Start(_)) {
        leave_on_interrupt(left::<V>());
    }
    let answered = client.call::<V>(args, session, wait);
    progress.finish();
    Ok(answered?)
}

/// Returns the session of the verb, if one is given anywhere.
///
/// # Errors
/// The environment variable is not a session's number.
pub fn meant(common: &Common, link: &Link) -> Result<Option<u32>, Error> {
    match common.session.or(link.session()) {
        Some(session) => Ok(Some(session)),
        None => of_environment(),
    }
}

/// The session given by the environment.
fn of_environment() -> Result<Option<u32>, Error> {
    let Some(text) = std::env::var_os(SESSION_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| {
        let text = text.to_string_lossy();
        let help = "write the number that `hindsight status` shows, or unset the variable";
        Error::usage(
            format!("{SESSION_VARIABLE} is \"{text}\", which is not the number of a session"),
            Some(help.to_owned()),
        )
    })
}

/// Returns a timeout. The daemon ends a wait for a stop itself, so the client waits a little longer.
fn time(config: &Config, patience: Patience) -> Duration {
    let stop = |secs: Option<f64>| {
        let asked = secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        asked.unwrap_or(config.await_timeout())
    };
    match patience {
        Patience::Answer => config.request_timeout(),
        Patience::Stop(secs) => stop(secs).saturating_add(config.request_timeout()),
        Patience::Start(secs) => stop(secs).saturating_add(START_PATIENCE),
        Patience::Search => START_PATIENCE,
    }
}

/// What Ctrl-C leaves behind.
fn left<V: Verb>() -> &'static str {
    match V::NAME {
        Eval::NAME => {
            "Stopped waiting. A function that was called is abandoned: its thread goes back to where it was before, what the function has changed in memory stays."
        }
        _ => {
            "Stopped waiting. The program is still running: wait again with `hindsight await`, or stop it with `hindsight pause`. A recording stays at its event."
        }
    }
}

/// From now on, Ctrl-C ends the wait and says so, and does nothing else: the daemon notices that the client has gone.
fn leave_on_interrupt(said: &'static str) {
    std::thread::spawn(move || {
        let Ok(mut interrupts) = Interrupts::catch() else {
            return;
        };
        if let Err(Error::Interrupted) = interrupts.wait(std::future::pending::<()>()) {
            eprintln!("\nhindsight: {said}");
            std::process::exit(exit::from_signal(libc::SIGINT).into());
        }
    });
}

/// Shows a reply as text or JSON.
///
/// # Errors
/// The error in `reply`.
pub fn answer<V: Verb>(
    common: &Common,
    reply: Result<V::Reply, Error>,
    show: impl FnOnce(&V::Reply) -> String,
) -> Result<u8, Error> {
    if common.json {
        return answer_as_json(reply);
    }
    write(&show(&reply?))?;
    Ok(exit::DONE)
}

/// Shows a reply or a failure as the daemon's response. Returns the exit code.
///
/// # Errors
/// Any error that is not a verb's failure.
pub fn answer_as_json<R: Serialize>(reply: Result<R, Error>) -> Result<u8, Error> {
    let text = match &reply {
        Ok(reply) => {
            let value = serde_json::to_value(reply).expect("replies are JSON");
            as_json(Ok(value))
        }
        Err(Error::Live {
            source: server::Error::Failed(failure),
        }) => as_json(Err((**failure).clone())),
        Err(_) => String::new(),
    };
    write(&text)?;
    match reply {
        Ok(_) => Ok(exit::DONE),
        Err(error) if !text.is_empty() => Ok(error.exit_code()),
        Err(error) => Err(error),
    }
}

fn as_json(outcome: Result<serde_json::Value, Failure>) -> String {
    let response = serde_json::to_value(Response::of(1, outcome)).expect("responses are JSON");
    format!("{response:#}\n")
}

/// Writes text to stdout, or through the pager if it does not fit the terminal.
///
/// # Errors
/// The reader has gone.
pub fn write(text: &str) -> Result<(), Error> {
    let lines = match io::stdout().is_terminal() {
        true => Terminal::size().1,
        false => usize::MAX,
    };
    output::show(text.as_bytes(), lines).map_err(to_stdout)
}
