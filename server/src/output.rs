//! A bounded buffer of a program's output. The oldest output is dropped first.
//!
//! Pieces are numbered from 0 without gaps, so that a reader that follows knows what it missed.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::OutputLimits;

/// An output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Bytes of one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its number.
    pub number: u64,
    /// Its stream.
    pub stream: Stream,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a reader receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The pieces, in the order in which they were printed.
    pub pieces: Vec<Piece>,
    /// The number of the next piece.
    pub next: u64,
    /// How many requested pieces before the first one were dropped.
    pub dropped: u64,
    /// Both streams have ended; no more pieces follow.
    pub ended: bool,
}

/// The buffer. It has its own threads that fill it; any thread may read it.
pub struct Output {
    limits: OutputLimits,
    state: Mutex<State>,
    changed: Condvar,
    /// Called for each piece.
    heard: OnceLock<Hear>,
}

/// A callback for each piece.
type Hear = Box<dyn Fn(&Piece) + Send + Sync>;

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Piece>,
    bytes: usize,
    next: u64,
    /// The first piece that was neither fetched nor cleared.
    unseen: u64,
    open_streams: usize,
}

/// The size of a read: the usual capacity of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

impl Output {
    /// Makes an empty buffer.
    #[must_use]
    pub fn new(limits: OutputLimits) -> Arc<Output> {
        Arc::new(Output {
            limits,
            state: Mutex::default(),
            changed: Condvar::new(),
            heard: OnceLock::new(),
        })
    }

    /// Sets the callback for each piece from now on. Only the first call has an effect.
    pub fn tell(&self, hear: impl Fn(&Piece) + Send + Sync + 'static) {
        // The buffer is new, so no callback is set yet.
        let _ = self.heard.set(Box::new(hear));
    }

    /// Reads `from` to its end in a new thread.
    pub fn feed(self: &Arc<Self>, stream: Stream, mut from: impl Read + Send + 'static) {
        self.state().open_streams += 1;
        let output = Arc::clone(self);
        std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            loop {
                match from.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(len) => output.push(stream, &chunk[..len]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        tracing::warn!(%error, "the program's output cannot be read");
                        break;
                    }
                }
            }
            output.state().open_streams -= 1;
            output.changed.notify_all();
        });
    }

    /// Appends output.
    pub fn push(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.bytes += bytes.len();
        let piece = Piece {
            number,
            stream,
            bytes: bytes.to_vec(),
        };
        if let Some(hear) = self.heard.get() {
            hear(&piece);
        }
        state.pieces.push_back(piece);
        let max_bytes = self.limits.max_bytes();
        while state.pieces.len() > self.limits.max_events || state.bytes > max_bytes {
            let Some(gone) = state.pieces.pop_front() else {
                break;
            };
            state.bytes -= gone.bytes.len();
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns the pieces not fetched yet, and discards them.
    #[must_use]
    pub fn take(&self) -> Fetched {
        let mut state = self.state();
        let from = state.unseen;
        let fetched = state.fetched(from);
        state.clear();
        fetched
    }

    /// Discards the pieces not fetched yet and returns their number.
    pub fn clear(&self) -> u64 {
        let mut state = self.state();
        let count = state.next - state.unseen;
        state.clear();
        count
    }

    /// Returns the kept pieces from piece `from` on without discarding them. If there are none yet, waits for one. The
    /// wait ends early when [`Output::wake`] is called and `is_unwanted` returns true.
    #[must_use]
    pub fn follow(&self, from: u64, patience: Duration, is_unwanted: &dyn Fn() -> bool) -> Fetched {
        let waits =
            |state: &mut State| state.next <= from && state.open_streams > 0 && !is_unwanted();
        let (state, _) = self
            .changed
            .wait_timeout_while(self.state(), patience, waits)
            .unwrap_or_else(PoisonError::into_inner);
        state.fetched(from)
    }

    /// Makes waiting readers check whether they are still wanted.
    pub fn wake(&self) {
        // Taking the lock once makes sure that every reader either has yet to check or is already waiting for the
        // notification.
        drop(self.state());
        self.changed.notify_all();
    }

    /// Waits until both streams have ended, at most `patience`: children of the program may keep them open.
    pub fn wait_for_end(&self, patience: Duration) {
        let is_open = |state: &mut State| state.open_streams > 0;
        drop(
            self.changed
                .wait_timeout_while(self.state(), patience, is_open),
        );
    }

    /// Returns the last `lines` lines that are kept, and discards nothing.
    #[must_use]
    pub fn tail(&self, lines: usize) -> Fetched {
        let state = self.state();
        let mut fetched = state.fetched(state.pieces.front().map_or(state.next, |p| p.number));
        fetched.dropped = 0;
        keep_last_lines(&mut fetched.pieces, lines);
        fetched
    }

    /// Returns the number of the next piece.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.state().next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state consistent, even if a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fetched(&self, from: u64) -> Fetched {
        let pieces: Vec<Piece> = self
            .pieces
            .iter()
            .filter(|piece| piece.number >= from)
            .cloned()
            .collect();
        let first = pieces.first().map_or(self.next, |piece| piece.number);
        Fetched {
            pieces,
            next: self.next,
            dropped: first.saturating_sub(from),
            ended: self.open_streams == 0,
        }
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
        self.unseen = self.next;
    }
}

/// Removes all but the last `lines` lines. An unfinished last line counts as one.
fn keep_last_lines(pieces: &mut Vec<Piece>, lines: usize) {
    let mut left = lines;
    let mut is_last_byte = true;
    for index in (0..pieces.len()).rev() {
        for at in (0..pieces[index].bytes.len()).rev() {
            let is_end = pieces[index].bytes[at] == b'\n' && !is_last_byte;
            is_last_byte = false;
            if is_end {
                left = left.saturating_sub(1);
            }
            if left == 0 {
                pieces[index].bytes.drain(..=at);
                pieces.drain(..index);
                pieces.retain(|piece| !piece.bytes.is_empty());
                return;
            }
        }
    }
    if lines == 0 {
        pieces.clear();
    }
}

#[cfg(test)]
mod tests;
