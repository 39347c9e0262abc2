//! Opens recordings. Parts that their recorder has not sealed are sealed for the reader, which may take long: a bar on a
//! terminal's stderr shows how far it is. Ctrl-C ends this at once and deletes what was written for the reader.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use query::{Options, Session};
use recorder::InterruptAction;
use replay::Timeline;
use server::past::{Past, of_replay};
use store::Reader;
use store::recording::Recording;
use store::seal::{Progress, seal_rest_while};

use super::Interrupts;
use crate::error::Error;
use crate::progress;
use crate::render::Terminal;

/// A shorter opening is not watched: Ctrl-C ends the program, as usual.
const UNWATCHED: Duration = Duration::from_millis(100);

/// Opens the recording in the folder `path`.
///
/// # Errors
/// When it cannot be read, or Ctrl-C is pressed: [`Error::OpeningLeft`].
pub fn open(path: &Path, temp_dir: &Path) -> Result<Reader, Error> {
    opened(path, temp_dir).map_err(|source| match source {
        store::Error::SealingLeft => Error::OpeningLeft,
        source => Error::Query {
            source: source.into(),
        },
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
    let reader = opened(path, &store::temp_dir()).map_err(|source| match source {
        store::Error::SealingLeft => Error::OpeningLeft,
        source => of_timeline(&source.into()),
    })?;
    Ok(Arc::new(reader))
}

fn opened(path: &Path, temp_dir: &Path) -> Result<Reader, store::Error> {
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
            let usual = InterruptAction::now();
            let watched = Interrupts::catch().and_then(|mut interrupts| {
                let waiting = async {
                    while finished.try_recv() == Err(mpsc::TryRecvError::Empty) {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                };
                interrupts.wait(waiting)
            });
            is_left.store(watched.is_err(), Ordering::Relaxed);
            usual.put_back();
        }
        opening.join()
    });
    shown.finish();
    opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
