//! Opens recordings. Parts that their recorder has not sealed are sealed for the reader, which may take long: a bar on a
//! terminal's stderr shows how far it is. Ctrl-C, SIGTERM and SIGHUP end this at once and delete what was written for the reader.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use query::{Options, Session};
use recorder::SignalAction;
use replay::Timeline;
use rustix::process::{Signal, getpid, kill_process};
use server::past::{Past, of_replay};
use store::Reader;
use store::recording::Recording;
use store::seal::{Progress, seal_rest_while};

use super::Interrupts;
use crate::error::Error;
use crate::progress;
use crate::render::Terminal;

/// A shorter opening is not watched: signals end the program, as usual.
const UNWATCHED: Duration = Duration::from_millis(100);

/// Signals that end an opening.
const ENDS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Opens the recording in the folder `path`.
///
/// # Errors
/// When it cannot be read, or a signal comes: [`Error::OpeningLeft`] after Ctrl-C, otherwise [`Error::Terminated`] if the signal was
/// caught before. If it was not, it ends the program.
pub fn open(path: &Path, temp_dir: &Path) -> Result<Reader, Error> {
    opened(path, temp_dir, |source| Error::Query {
        source: source.into(),
    })
}

/// As [`open`], for queries that the program itself asks.
///
/// # Errors
/// As there.
pub fn open_session(path: &Path) -> Result<Session, Error> {
    let options = Options::default();
    let reader = Arc::new(open(path, &options.temp_dir)?);
    Session::new(reader, options).map_err(|source| Error::Query { source })
}

/// As [`open`], for moving through it.
///
/// # Errors
/// As there.
pub fn open_past(path: &Path) -> Result<Past, Error> {
    let past = Past::new(to_replay(path)?);
    past.map_err(|failure| server::Error::from(failure).into())
}

/// As [`open`], for what is asked of all its events.
///
/// # Errors
/// As there.
pub fn open_timeline(path: &Path) -> Result<Timeline, Error> {
    Timeline::new(to_replay(path)?).map_err(|error| of_timeline(&error))
}

/// Returns an error of the crate that moves through recordings, as the user sees it.
pub fn of_timeline(error: &replay::Error) -> Error {
    server::Error::from(of_replay(error)).into()
}

fn to_replay(path: &Path) -> Result<Arc<Reader>, Error> {
    let reader = opened(path, &store::temp_dir(), |source| {
        of_timeline(&source.into())
    });
    reader.map(Arc::new)
}

fn opened(
    path: &Path,
    temp_dir: &Path,
    of_store: impl Fn(store::Error) -> Error,
) -> Result<Reader, Error> {
    let usual = ENDS.map(SignalAction::now);
    let mut left = None;
    let is_left = AtomicBool::new(false);
    let shown = progress::Progress::new(&Terminal::detect());
    let goes_on = |now: &Progress| {
        shown.sealing(now.events, now.bytes_done, now.bytes_total);
        !is_left.load(Ordering::Relaxed)
    };
    let (done, finished) = mpsc::channel::<()>();
    let opened = thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let rest = Recording::open(path).and_then(|found| seal_rest_while(&found, goes_on));
            let opened = rest.and_then(|_| Reader::open_while(path, temp_dir, goes_on));
            drop(done);
            opened
        });
        if finished.recv_timeout(UNWATCHED) == Err(mpsc::RecvTimeoutError::Timeout) {
            left = watched(&finished).err();
            is_left.store(left.is_some(), Ordering::Relaxed);
            usual.iter().for_each(SignalAction::put_back);
        }
        opening.join()
    });
    shown.finish();
    let opened = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    match left {
        None => opened.map_err(of_store),
        Some(why) => Err(ended(why, &usual)),
    }
}

/// Waits for the end of an opening.
fn watched(finished: &mpsc::Receiver<()>) -> Result<(), Error> {
    let mut signals = Interrupts::catch_ends()?;
    signals.wait(async {
        while finished.try_recv() == Err(mpsc::TryRecvError::Empty) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

/// Returns the error of an opening that was left. A signal that would have ended the program does so now: a prompt would go on.
fn ended(why: Error, usual: &[SignalAction]) -> Error {
    match why {
        Error::Interrupted => Error::OpeningLeft,
        Error::Terminated { signal } => {
            let mut of_signal = usual.iter().filter(|action| action.signal() == signal);
            if of_signal.any(SignalAction::is_default)
                && let Some(signal) = Signal::from_named_raw(signal)
            {
                // It cannot fail for the process itself.
                let _ = kill_process(getpid(), signal);
            }
            Error::Terminated { signal }
        }
        why => why,
    }
}
