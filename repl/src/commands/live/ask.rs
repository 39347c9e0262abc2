//! How a verb is asked and its reply shown: as text, or with `--json` as the daemon's response.

use std::io::{self, IsTerminal};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use server::client::{Client, Wait};
use server::config::Config;
use server::paths::Paths;
use server::protocol::{Failure, NoticeKind, Response};
use server::verbs::Verb;

use super::interrupt::{self, OnInterrupt};
use super::{attended, recorded};
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
    /// Which session [default: the newest whose program runs]
    #[arg(long, value_name = "N")]
    pub session: Option<u32>,
    /// Print the daemon's response as JSON
    #[arg(long)]
    pub json: bool,
}

/// How long a verb may take.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// As long as an answer may.
    Answer,
    /// As long as a stop is waited for, in seconds if not the configured time.
    Stop(Option<f64>),
    /// Starting reads programs and may fetch what is needed once: only silence is bounded.
    Start(Option<f64>),
}

/// Starting may be silent for so long.
const START_PATIENCE: Duration = Duration::from_secs(600);

/// Asks a running daemon for verb `V`, and shows its reply.
///
/// # Errors
/// The verb's.
pub fn ask<V: Verb>(
    common: &Common,
    terminal: &Terminal,
    args: &V::Args,
    patience: Patience,
    show: impl FnOnce(&V::Reply) -> String,
) -> Result<u8, Error> {
    let reply = fetch::<V>(common, terminal, args, patience, false);
    answer::<V>(common, reply, show)
}

/// Asks and returns the reply; `starts` the daemon if none runs.
///
/// # Errors
/// The verb's.
pub fn fetch<V: Verb>(
    common: &Common,
    terminal: &Terminal,
    args: &V::Args,
    patience: Patience,
    starts: bool,
) -> Result<V::Reply, Error> {
    if let Some(past) = recorded::open() {
        return recorded::asked::<V::Args, V::Reply>(&past, V::NAME, args);
    }
    asked_of_daemon::<V>(common, terminal, args, patience, starts)
}

/// Asks the daemon, also while a recording is looked at.
///
/// # Errors
/// The verb's.
pub fn asked_of_daemon<V: Verb>(
    common: &Common,
    terminal: &Terminal,
    args: &V::Args,
    patience: Patience,
    starts: bool,
) -> Result<V::Reply, Error> {
    let config = Config::load()?;
    let paths = Paths::of_environment();
    let progress = Progress::new(terminal);
    let mut client = match starts {
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
        NoticeKind::Warning => progress.warning(&notice.text),
    };
    let wait = Wait {
        patience: Some(time(&config, patience)),
        notify: &mut notify,
    };
    let session = match V::NAME {
        // All sessions, unless one is named.
        server::verbs::Status::NAME => common.session,
        _ => common.session.or_else(attended::session),
    };
    if attended::is_open() {
        let interrupted = match patience {
            Patience::Answer => OnInterrupt::Leave,
            Patience::Stop(_) | Patience::Start(_) => OnInterrupt::Pause(session),
        };
        return interrupt::call(&mut client, &paths, interrupted, |client| {
            client.call::<V>(args, session, wait)
        });
    }
    if matches!(patience, Patience::Stop(_) | Patience::Start(_)) {
        leave_on_interrupt();
    }
    Ok(client.call::<V>(args, session, wait)?)
}

/// The daemon ends a wait by itself; that it does not is noticed a little later.
fn time(config: &Config, patience: Patience) -> Duration {
    let stop = |secs: Option<f64>| {
        let asked = secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        asked.unwrap_or(config.await_timeout())
    };
    match patience {
        Patience::Answer => config.request_timeout(),
        Patience::Stop(secs) => stop(secs).saturating_add(config.request_timeout()),
        Patience::Start(secs) => stop(secs).saturating_add(START_PATIENCE),
    }
}

/// From now on, Ctrl-C ends the waiting and nothing else.
fn leave_on_interrupt() {
    std::thread::spawn(|| {
        let Ok(mut interrupts) = Interrupts::catch() else {
            return;
        };
        if let Err(Error::Interrupted) = interrupts.wait(std::future::pending::<()>()) {
            eprintln!(
                "\nhindsight: the program is still running; wait again with `hindsight await`, stop it with `hindsight pause`"
            );
            std::process::exit(exit::from_signal(libc::SIGINT).into());
        }
    });
}

/// Shows a reply as the verb's options ask for it.
///
/// # Errors
/// That of the reply.
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
/// What is no failure of a verb.
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

/// Writes text to stdout, or through the pager where a terminal has not so many lines.
///
/// # Errors
/// Nobody reads it.
pub fn write(text: &str) -> Result<(), Error> {
    let lines = match io::stdout().is_terminal() {
        true => Terminal::size().1,
        false => usize::MAX,
    };
    output::show(text.as_bytes(), lines).map_err(to_stdout)
}
