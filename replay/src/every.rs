//! A recording of every instruction as the source of state: the program is run again up to the requested moment, and stops
//! there as a process, whose registers and memory are all known.
//!
//! Only the thread that started the process may look at it, so there is one such thread per opened recording. It starts
//! with the first question and ends with the recording. Questions come one at a time.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use exact::{Outline, Registers as General};
use rustc_hash::FxHashMap;
use store::Recording;
use store::format::INSTRUCTIONS_DIR;

use crate::error::{Error, Result};
use crate::memory::Run;
use crate::overseen::overseer;
use crate::state::{Reason, Seen};

/// Bytes that are read at once.
const PAGE: u64 = 4096;
/// Most pages of one moment that are kept.
const MOST_PAGES: usize = 4096;
/// Bytes of a vector register that are kept, and how many there are.
const VECTOR_LEN: usize = 16;
pub(crate) const VECTORS: usize = 16;
/// Offset of xmm0 to xmm15 in XSAVE's layout.
const VECTORS_AT: usize = 160;

type Work = Box<dyn FnOnce(&mut Option<exact::Replay>) + Send>;
type Page = Option<Box<[u8; PAGE as usize]>>;

/// The registers of a thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadRegisters {
    /// In the kernel's order.
    pub general: [u64; 27],
    /// xmm0 to xmm15.
    pub vectors: [[u8; VECTOR_LEN]; VECTORS],
}

/// The instructions of a recording.
pub(crate) struct Every {
    folder: PathBuf,
    actor: Mutex<Option<Actor>>,
    /// Pages of the moment at a position.
    pages: Mutex<(u64, FxHashMap<u64, Page>)>,
    outline: OnceLock<std::result::Result<Outline, String>>,
    /// How many instructions are recorded.
    end: OnceLock<u64>,
}

/// The thread that has the process.
struct Actor {
    asks: Sender<Work>,
    thread: JoinHandle<()>,
}

impl Every {
    /// Returns the instructions of a recording that has them.
    pub fn of(recording: &Recording) -> Option<Every> {
        let is_full = recording.manifest().settings.has_every_instruction();
        is_full.then(|| Every {
            folder: recording.dir().join(INSTRUCTIONS_DIR),
            actor: Mutex::default(),
            pages: Mutex::default(),
            outline: OnceLock::new(),
            end: OnceLock::new(),
        })
    }

    /// Returns what the log says about the whole run.
    ///
    /// # Errors
    /// [`Error::Instructions`]: it cannot be read.
    pub fn outline(&self) -> Result<&Outline> {
        let read = || exact::outline(&self.folder).map_err(|error| error.to_string());
        let outline = self.outline.get_or_init(read).as_ref();
        outline.map_err(|why| Error::Instructions { why: why.clone() })
    }

    /// Returns how many instructions are recorded.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub fn end(&self) -> Result<u64> {
        if let Some(end) = self.end.get() {
            return Ok(*end);
        }
        let end = self.with(|replay| Ok(replay.end()))?;
        Ok(*self.end.get_or_init(|| end))
    }

    /// Returns whether a position lies behind all that was recorded: the program went on unrecorded to its end.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub fn is_over(&self, position: u64) -> Result<bool> {
        Ok(position > self.end()?)
    }

    /// Does `work` on the process in its state after `position` instructions.
    ///
    /// # Errors [`Error::Instructions`]: it cannot be run that far.
    pub fn at<T: Send + 'static>(
        &self,
        position: u64,
        work: impl FnOnce(&mut exact::Replay) -> exact::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.with(move |replay| {
            // Even at that position: what happened between two instructions may still be due.
            replay.goto(position)?;
            work(replay)
        })
    }

    /// Does `work` on the process at its current position.
    ///
    /// # Errors
    /// [`Error::Instructions`]: it cannot be started, or the work fails.
    pub fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut exact::Replay) -> exact::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = channel();
        let folder = self.folder.clone();
        let overseer = overseer();
        let whole = move |replay: &mut Option<exact::Replay>| {
            let done = opened(replay, &folder).and_then(|replay| {
                replay.oversee(overseer);
                let done = work(replay);
                replay.oversee(None);
                done
            });
            let has_recovered = match (&done, &mut *replay) {
                (Ok(_), _) => true,
                // Its copies are still good.
                (Err(exact::Error::Interrupted), Some(replay)) => replay.recover().is_ok(),
                (Err(_), _) => false,
            };
            if !has_recovered {
                // It may be at any position.
                *replay = None;
            }
            // This fails only if the asking thread has ended.
            let _ = answer.send(done);
        };
        let ended = || Error::Instructions {
            why: "the thread that runs them has ended".to_owned(),
        };
        let asks = self.asks()?;
        asks.send(Box::new(whole)).map_err(|_| ended())?;
        let done = answered.recv().map_err(|_| ended())?;
        done.map_err(|error| match error {
            exact::Error::Interrupted => Error::Interrupted,
            error => Error::Instructions {
                why: error.to_string(),
            },
        })
    }

    fn asks(&self) -> Result<Sender<Work>> {
        let mut actor = lock(&self.actor);
        if let Some(actor) = actor.as_ref().filter(|actor| !actor.thread.is_finished()) {
            return Ok(actor.asks.clone());
        }
        let (asks, asked) = channel::<Work>();
        let run = move || {
            let mut replay = None;
            for work in asked {
                work(&mut replay);
            }
        };
        let started = std::thread::Builder::new()
            .name("instructions".to_owned())
            .spawn(run);
        let thread = started.map_err(|error| Error::Instructions {
            why: error.to_string(),
        })?;
        *actor = Some(Actor {
            asks: asks.clone(),
            thread,
        });
        Ok(asks)
    }

    /// Returns the thread that executes the instruction at a position; behind all that was recorded, the last one.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn running(&self, position: u64) -> Result<u32> {
        self.at(position.min(self.end()?), |replay| {
            Ok(replay.thread().cast_unsigned())
        })
    }

    /// Returns the registers of a thread; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn registers(&self, position: u64, tid: u32) -> Result<Option<ThreadRegisters>> {
        let tid = tid.cast_signed();
        self.at(position, move |replay| {
            if replay.thread() == tid {
                let (general, extended) = (replay.registers()?, replay.extended()?);
                return Ok(Some(ThreadRegisters::new(
                    &General::from(&general),
                    &extended,
                )));
            }
            let general = replay.registers_of(tid);
            let extended = replay.extended_of(tid).unwrap_or_default();
            Ok(general.map(|general| ThreadRegisters::new(&General::from(&general), extended)))
        })
    }

    /// Returns the x87, SSE and later registers of a thread in XSAVE's layout; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn extended(&self, position: u64, tid: u32) -> Result<Option<Vec<u8>>> {
        let tid = tid.cast_signed();
        self.at(position, move |replay| match replay.thread() == tid {
            true => replay.extended().map(Some),
            false => Ok(replay.extended_of(tid).map(<[u8]>::to_vec)),
        })
    }

    /// Returns memory in consecutive runs, all known with event `seq` where there is memory.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn memory(&self, position: u64, seq: u64, range: Range<u64>) -> Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let page = at & !(PAGE - 1);
            let end = page.saturating_add(PAGE).min(range.end);
            let within = (at - page) as usize..(end - page) as usize;
            let bytes = self.page(position, page, |bytes| bytes[within].to_vec())?;
            add(&mut runs, at, end - at, bytes, seq);
            if end == at {
                break;
            }
            at = end;
        }
        Ok(runs)
    }

    /// Applies `take` to a page at a position; `None` if there is no memory.
    fn page<T>(
        &self,
        position: u64,
        address: u64,
        take: impl FnOnce(&[u8; PAGE as usize]) -> T,
    ) -> Result<Option<T>> {
        let mut pages = lock(&self.pages);
        if pages.0 != position || pages.1.len() >= MOST_PAGES {
            *pages = (position, FxHashMap::default());
        }
        if let Some(page) = pages.1.get(&address) {
            return Ok(page.as_deref().map(take));
        }
        drop(pages);
        let page = self.at(position, move |replay| {
            let mut bytes = Box::new([0; PAGE as usize]);
            let found = replay.read(address, &mut bytes[..]);
            Ok((found == bytes.len()).then_some(bytes))
        })?;
        let taken = page.as_deref().map(take);
        let mut pages = lock(&self.pages);
        if pages.0 == position {
            pages.1.insert(address, page);
        }
        Ok(taken)
    }
}

impl Drop for Every {
    fn drop(&mut self) {
        if let Some(Actor { asks, thread }) = lock(&self.actor).take() {
            drop(asks);
            // Its processes end with it. A panic was reported to the requester.
            let _ = thread.join();
        }
    }
}

impl ThreadRegisters {
    fn new(general: &General, extended: &[u8]) -> ThreadRegisters {
        ThreadRegisters {
            general: general.0,
            vectors: vectors_of(extended),
        }
    }
}

/// xmm0 to xmm15 in XSAVE's layout.
pub(crate) fn vectors_of(extended: &[u8]) -> [[u8; VECTOR_LEN]; VECTORS] {
    let mut vectors = [[0; VECTOR_LEN]; VECTORS];
    let all = extended.get(VECTORS_AT..).unwrap_or_default();
    for (vector, bytes) in vectors.iter_mut().zip(all.chunks_exact(VECTOR_LEN)) {
        vector.copy_from_slice(bytes);
    }
    vectors
}

fn opened<'r>(
    replay: &'r mut Option<exact::Replay>,
    folder: &std::path::Path,
) -> exact::Result<&'r mut exact::Replay> {
    match replay {
        Some(replay) => Ok(replay),
        None => Ok(replay.insert(exact::Replay::open(folder)?)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends bytes to the last run, or as a new run after it.
fn add(runs: &mut Vec<Run>, address: u64, len: u64, bytes: Option<Vec<u8>>, seq: u64) {
    match (runs.last_mut(), bytes) {
        (
            Some(Run {
                len: before,
                bytes: Seen::Known { value, .. },
                ..
            }),
            Some(bytes),
        ) => {
            value.extend(bytes);
            *before += len;
        }
        (
            Some(Run {
                len: before,
                bytes: Seen::Unknown(_),
                ..
            }),
            None,
        ) => *before += len,
        (_, bytes) => runs.push(Run {
            address,
            len,
            bytes: match bytes {
                Some(value) => Seen::Known { value, seq },
                None => Seen::Unknown(Reason::NotMapped),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beside_each_other_are_one_run() {
        let mut runs = Vec::new();
        add(&mut runs, 0x1000, 2, Some(vec![1, 2]), 7);
        add(&mut runs, 0x1002, 1, Some(vec![3]), 7);
        add(&mut runs, 0x1003, 5, None, 7);
        add(&mut runs, 0x1008, 5, None, 7);
        add(&mut runs, 0x100d, 1, Some(vec![4]), 7);
        let places: Vec<_> = runs.iter().map(|run| (run.address, run.len)).collect();
        assert_eq!(places, [(0x1000, 3), (0x1003, 10), (0x100d, 1)]);
        assert_eq!(runs[0].bytes.value(), Some(&vec![1, 2, 3]));
        assert_eq!(runs[1].bytes, Seen::Unknown(Reason::NotMapped));
    }
}
