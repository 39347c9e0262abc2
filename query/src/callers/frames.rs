//! The frames of a path: the place of a call, and the recorded calls around it with their places.
//!
//! A frame is the function that made the call, with the line of the call if line tables have it. A recorded function that
//! called through functions that were not recorded has no line: it is not known which of its lines led there. Code without
//! names is identified by its file and the return address in it: `app+0x1234`.

use std::collections::HashMap;

use debuginfo::{AddressSpace, is_library_source, short_name};
use replay::Timeline;
use serde::Serialize;

use super::tree::{NONE, Tree};

/// Most frames that are reported.
pub const MOST: usize = 16;

/// Returns whether a function only jumps to another library, or starts a program or a thread.
fn is_no_caller(function: &str) -> bool {
    let begins = ["start_thread", "clone", "clone3", "_start"];
    function.ends_with("@plt")
        || function.starts_with("__libc_start_")
        || begins.contains(&function)
}

/// A place in a function of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The source file of the call; that of the function if it is not known which of its lines made the call.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
}

impl Frame {
    /// Returns the frame as text: `load (app.c:17)`.
    #[must_use]
    pub fn text(&self) -> String {
        self.with_name(&self.function)
    }

    /// The same with long template arguments left out.
    #[must_use]
    pub fn short_text(&self) -> String {
        self.with_name(&short_name(&self.function))
    }

    /// Tells whether its source is known and the program's own.
    pub(crate) fn is_own(&self) -> bool {
        let file = self.file.as_deref();
        file.is_some_and(|file| !is_library_source(file))
    }

    /// Returns frames from the first one on whose source is the program's own; all if none is.
    #[must_use]
    pub fn from_own_code(frames: &[Frame]) -> &[Frame] {
        let first = frames.iter().position(Frame::is_own);
        &frames[first.unwrap_or(0)..]
    }

    fn with_name(&self, name: &str) -> String {
        let file = self.file.as_deref();
        let file = file.and_then(|file| file.rsplit('/').next());
        match (file, self.line) {
            (Some(file), Some(line)) => format!("{name} ({file}:{line})"),
            _ => name.to_owned(),
        }
    }
}

/// What is known about the code that an address lies in.
#[derive(Clone)]
struct KnownCode {
    frame: Frame,
    /// The first byte of the function, if it is known.
    entry: Option<u64>,
}

/// Finds frames, each place once.
pub struct Frames<'t> {
    timeline: Option<&'t Timeline>,
    tree: &'t Tree,
    places: HashMap<(u64, usize), Option<KnownCode>>,
}

impl<'t> Frames<'t> {
    /// Takes the paths, and the recording that knows the modules; without it, functions have no lines.
    #[must_use]
    pub fn new(timeline: Option<&'t Timeline>, tree: &'t Tree) -> Frames<'t> {
        Frames {
            timeline,
            tree,
            places: HashMap::new(),
        }
    }

    /// Returns the frames of a path, from the one that made its last call outwards.
    pub fn of(&mut self, node: u32) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut at = node;
        while let Some(node) = self.tree.node(at).copied() {
            let place = self.place(node.ret_addr, node.seq);
            let parent = self.tree.node(node.parent).copied();
            let caller = parent.and_then(|parent| self.function(parent.function, node.seq));
            let is_direct = match (&place, &caller) {
                (Some(place), Some(caller)) => place.entry == caller.entry,
                _ => false,
            };
            match (place, caller) {
                (Some(place), _) if is_direct => frames.push(place.frame),
                (place, caller) => {
                    frames.extend(place.map(|place| place.frame));
                    frames.extend(caller.map(|caller| caller.frame));
                }
            }
            frames.retain(|frame| !is_no_caller(&frame.function));
            if frames.len() >= MOST || node.parent == NONE {
                break;
            }
            at = node.parent;
        }
        frames.truncate(MOST);
        frames
    }

    /// A recorded function, without its current line.
    fn function(&self, id: u32, seq: u64) -> Option<KnownCode> {
        let timeline = self.timeline?;
        let function = timeline.function(id)?;
        // Its file says whether it is the program's own.
        let is_system = timeline.modules().is_system(function.module);
        Some(KnownCode {
            frame: Frame {
                function: function.name.clone(),
                file: function.file.clone().filter(|_| !is_system),
                line: None,
            },
            entry: timeline
                .modules()
                .address(function.module, function.svma, seq),
        })
    }

    /// The function and line that made the call which returns to an address.
    fn place(&mut self, ret_addr: u64, seq: u64) -> Option<KnownCode> {
        let timeline = self.timeline?;
        let space = timeline.modules().space(seq);
        let key = (ret_addr, std::sync::Arc::as_ptr(&space) as usize);
        if let Some(known) = self.places.get(&key) {
            return known.clone();
        }
        // A call may be the last instruction of its function.
        let call = ret_addr.wrapping_sub(1);
        let named = space.function_at(call).map(|function| {
            let line = space.own_line_at(call);
            KnownCode {
                frame: Frame {
                    function: function.name,
                    file: line.as_ref().map(|line| line.file.to_string()),
                    line: line.map(|line| line.line),
                },
                entry: Some(function.entry),
            }
        });
        let found = named.or_else(|| unnamed(&space, ret_addr));
        self.places.insert(key, found.clone());
        found
    }
}

/// A place in code without names: the file, and the call's return address in it.
fn unnamed(space: &AddressSpace, ret_addr: u64) -> Option<KnownCode> {
    let module = space.at(ret_addr)?;
    let file = module.module.path().file_name()?.to_string_lossy();
    let offset = module.svma(ret_addr).0;
    Some(KnownCode {
        frame: Frame {
            function: format!("{file}+{offset:#x}"),
            file: None,
            line: None,
        },
        entry: None,
    })
}
