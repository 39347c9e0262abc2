//! Blocks of the heap that were still allocated when the program exited, if its allocations were recorded.
//!
//! What libraries leave on their own is not told: the buffers of the C library's streams, what Rust's library allocates to start the
//! program, and what was allocated while no recorded function ran, as before main.

use rustc_hash::FxHashMap;

use super::source::Source;
use super::unusual::{LIBRARIES, Unusual};
use crate::callers::{Frame, Frames, NONE};
use crate::error::Result;
use crate::memory::{Block, End, Memory, read};

/// Functions of glibc that allocate buffers of streams, which nothing frees.
const OF_STREAMS: [&str; 2] = ["_IO_file_doallocate", "_IO_wfile_doallocate"];
/// How the names of the functions begin that start a program in Rust.
const START_OF_RUST: &str = "std::rt::lang_start";
/// Frames of a place that are told.
const FRAMES: usize = 2;

/// Blocks of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    bytes: u64,
    blocks: u64,
    /// The first call that allocated one.
    seq: u64,
}

impl Left {
    fn add(&mut self, other: Left) {
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.seq = self.seq.min(other.seq);
    }
}

/// Finds them; `None` if there are none, or that is not known. `is_unsure`: events are missing.
///
/// # Errors
/// The recording cannot be read; [`crate::Error::Stopped`].
pub fn still_allocated(source: &Source<'_>, is_unsure: bool) -> Result<Option<Unusual>> {
    let calls = source.session().report_source();
    if !source.has_captured("memory") || calls.only_entries {
        return Ok(None);
    }
    source.cancel().check()?;
    let memory = read(calls, &mut |_, _| ())?;
    source.cancel().check()?;
    let places = places(source, &memory);
    let Some((place, most)) = places
        .iter()
        .max_by_key(|(place, left)| (left.bytes, left.blocks, u64::MAX - left.seq, *place))
    else {
        return Ok(None);
    };
    Ok(Some(Unusual::StillAllocated {
        seq: most.seq,
        blocks: places.values().map(|left| left.blocks).sum(),
        bytes: places.values().map(|left| left.bytes).sum(),
        place: place.clone(),
        is_only_place: places.len() == 1,
        is_unsure,
    }))
}

/// Sums up the blocks that are left, by the place that allocated them.
fn places(source: &Source<'_>, memory: &Memory) -> FxHashMap<String, Left> {
    let mut by_path: FxHashMap<u32, Left> = FxHashMap::default();
    for (path, left) in memory.blocks.iter().filter_map(|block| of(source, block)) {
        let sum = by_path.entry(path);
        sum.and_modify(|sum| sum.add(left)).or_insert(left);
    }
    let mut frames = Frames::new(source.timeline(), &memory.tree);
    let mut places: FxHashMap<String, Left> = FxHashMap::default();
    for (path, left) in by_path {
        let around = frames.of(path);
        let is_in_call = memory
            .tree
            .node(path)
            .is_some_and(|node| node.parent != NONE);
        if is_programs(&around, is_in_call) {
            let sum = places.entry(text(&around));
            sum.and_modify(|sum| sum.add(left)).or_insert(left);
        }
    }
    places
}

/// Returns a block with its path, if it is left of the heap and no debugger had it allocated.
fn of(source: &Source<'_>, block: &Block) -> Option<(u32, Left)> {
    let (bytes, made) = (block.size?, block.made?);
    let is_left = block.end == End::Live && !block.is_pages;
    let is_told = is_left && !source.left_out().has(made.tid, made.seq);
    let left = Left {
        bytes,
        blocks: 1,
        seq: made.seq,
    };
    is_told.then_some((made.node, left))
}

/// Tells whether blocks with these frames are the program's. `is_in_call`: a recorded function had called for them.
fn is_programs(frames: &[Frame], is_in_call: bool) -> bool {
    let Some(first) = frames.first() else {
        return false;
    };
    let has_source = frames.iter().any(Frame::is_own);
    let is_of_library = OF_STREAMS.contains(&first.function.as_str()) || is_start(frames);
    !is_of_library && (is_in_call || has_source)
}

/// Tells whether Rust's library itself allocated a block before it called the program's main.
fn is_start(frames: &[Frame]) -> bool {
    let is_library = |frame: &Frame| {
        let name = frame.function.trim_start_matches('<');
        let is_named = LIBRARIES.iter().any(|library| name.starts_with(library));
        !frame.is_own() && (is_named || name.starts_with("__r"))
    };
    let start = frames
        .iter()
        .position(|frame| frame.function.starts_with(START_OF_RUST));
    start.is_some_and(|start| frames[..start].iter().all(is_library))
}

fn text(frames: &[Frame]) -> String {
    let own = Frame::from_own_code(frames).iter();
    let texts: Vec<String> = own.take(FRAMES).map(Frame::short_text).collect();
    texts.join(" < ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: Option<&str>) -> Frame {
        Frame {
            function: function.to_owned(),
            file: file.map(str::to_owned),
            line: file.map(|_| 7),
        }
    }

    #[test]
    fn buffers_of_streams_and_what_libraries_make_for_themselves_are_not_the_programs() {
        let own = frame("load", Some("/home/me/app.c"));
        let library = frame("libstdc++.so.6+0xa1b2", None);
        let buffer = frame("_IO_file_doallocate", None);
        let main = frame("main", None);
        assert!(is_programs(std::slice::from_ref(&own), true));
        assert!(is_programs(&[own], false), "before main");
        assert!(is_programs(&[library.clone(), main.clone()], true));
        assert!(!is_programs(&[library], false));
        assert!(!is_programs(&[buffer, main], true));
        assert!(!is_programs(&[], true));
        let start = frame("std::rt::lang_start_internal", None);
        let thread = frame("std::thread::current::set_current", None);
        let keep = frame("app::keep", None);
        assert!(!is_programs(&[thread.clone(), start.clone()], true));
        assert!(is_programs(&[thread, keep, start], true));
    }
}
