//! Reads the calls of a recording backwards, and reports those of some functions with the recorded calls around them.
//!
//! Backwards, a call comes after the one that made it. Memory grows with the depth of calls and with the number of distinct
//! paths to the wanted calls, not with the number of calls.

mod frames;
mod rows;
mod tree;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use frames::{Frame, Frames};
use rows::Rows;
pub use rows::{COLUMNS, Call};
pub use tree::{NONE, Tree};

use crate::error::Result;
use crate::parts::PartFile;
use crate::report::Groups;

/// Most open calls of a thread that are kept. With more, the calls around a call are unknown.
const MOST_OPEN: usize = 1 << 22;

/// Receives how many calls have been seen, and how many there are.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);

/// A call that may be around later ones.
struct Open<P> {
    start: u64,
    function: u32,
    ret_addr: u64,
    /// The call that made it, if that is known.
    parent: Option<u32>,
    /// Its path, once that is needed.
    node: u32,
    /// Its note, if its function is wanted.
    note: Option<P>,
}

/// A wanted call, with the note of the call that made it.
pub struct Found<'f, P> {
    /// The call.
    pub call: &'f Call,
    /// Its path.
    pub node: u32,
    /// The note of the call that made it; `None` if that is not a call of a wanted function.
    pub around: Option<&'f P>,
}

/// Passes each call of a function that `wants` names to `visit`, in reverse order of their ends, preceded by those that had
/// not ended, in order. The result of `visit` becomes the note of the call. A call that the end of the program cut off has
/// not ended.
///
/// # Errors
/// The files cannot be read.
pub fn walk<P>(
    files: &[Arc<PartFile>],
    wants: &dyn Fn(u32) -> bool,
    progress: Progress<'_>,
    visit: &mut dyn FnMut(&Found<'_, P>) -> P,
) -> Result<Tree> {
    let groups = Groups::open(files)?;
    let total = groups.calls();
    let mut done = 0;
    progress(0, total);
    let mut walk = Walk {
        wants,
        tree: Tree::new(),
        threads: FxHashMap::default(),
        is_at_end: true,
        visit,
    };
    let read = |index| groups.read_columns(index, &COLUMNS, Rows::of);
    groups.backwards_by(read, |rows: Rows| {
        walk.rows(&rows);
        done += rows.len() as u64;
        progress(done, total);
        Ok(())
    })?;
    Ok(walk.tree)
}

struct Walk<'w, P> {
    wants: &'w dyn Fn(u32) -> bool,
    tree: Tree,
    threads: FxHashMap<u32, Vec<Open<P>>>,
    /// All calls so far were left at the end of the program, or later.
    is_at_end: bool,
    visit: &'w mut dyn FnMut(&Found<'_, P>) -> P,
}

impl<P> Walk<'_, P> {
    fn rows(&mut self, rows: &Rows) {
        let ended = rows.ended();
        let mut open: Vec<usize> = (ended..rows.len()).collect();
        open.sort_by_key(|row| rows.start(*row));
        for row in open.into_iter().chain((0..ended).rev()) {
            self.call(&rows.call(row));
        }
    }

    fn call(&mut self, call: &Call) {
        // When the program ends, its threads leave all their calls: these are the last events.
        self.is_at_end &= call.end.is_none() || call.is_unwound;
        let open = self.threads.entry(call.tid).or_default();
        if let Some(end) = call.end {
            while open.last().is_some_and(|last| last.start > end) {
                open.pop();
            }
        }
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        // Coroutines and handlers on other stacks interleave in one thread.
        let parent = call.parent.and_then(|parent| {
            let at = open.iter().rposition(|open| open.start == parent)?;
            u32::try_from(at).ok()
        });
        open.push(Open {
            start: call.start,
            function: call.function,
            ret_addr: call.ret_addr,
            parent,
            node: NONE,
            note: None,
        });
        if !(self.wants)(call.function) {
            return;
        }
        let mut seen = *call;
        if self.is_at_end {
            (seen.end, seen.dur_ns) = (None, -1);
        }
        let call = &seen;
        let last = open.len() - 1;
        let node = path(open, &mut self.tree, last, call.start);
        let around = parent.and_then(|parent| open[parent as usize].note.as_ref());
        let note = (self.visit)(&Found { call, node, around });
        open[last].note = Some(note);
    }
}

/// Returns the path of an open call. `seq`: an event at which its addresses are valid.
fn path<P>(open: &mut [Open<P>], tree: &mut Tree, at: usize, seq: u64) -> u32 {
    let mut missing = Vec::new();
    let mut next = Some(at);
    let mut node = NONE;
    while let Some(at) = next {
        if open[at].node != NONE {
            node = open[at].node;
            break;
        }
        missing.push(at);
        next = open[at].parent.map(|parent| parent as usize);
    }
    for at in missing.into_iter().rev() {
        node = tree.child(node, open[at].function, open[at].ret_addr, seq);
        open[at].node = node;
    }
    node
}
