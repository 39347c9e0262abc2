//! Opens recordings. Parts that their recorder has not sealed are sealed for the reader, which may take long: Ctrl-C ends
//! this at once and deletes what was written for the reader.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use recorder::InterruptAction;
use server::past::{Past, of_replay};
use store::Reader;
use store::recording::Recording;
use store::seal::{Progress, seal_rest_while};

use super::Interrupts;
use crate::error::Error;

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

/// As [`open`], for moving through it.
///
/// # Errors
/// As there.
pub fn open_past(path: &Path) -> Result<Past, Error> {
    let failed = |failure| Error::from(server::Error::from(failure));
    let reader = opened(path, &store::temp_dir()).map_err(|source| match source {
        store::Error::SealingLeft => Error::OpeningLeft,
        source => failed(of_replay(&source.into())),
    })?;
    Past::new(Arc::new(reader)).map_err(failed)
}

fn opened(path: &Path, temp_dir: &Path) -> Result<Reader, store::Error> {
    let is_left = AtomicBool::new(false);
    let goes_on = |_: &Progress| !is_left.load(Ordering::Relaxed);
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
    opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
