//! The distinct paths of calls, by function and by the place of each call.

use rustc_hash::FxHashMap;

/// No path.
pub const NONE: u32 = u32::MAX;

/// Most distinct paths. A call on any other path counts as if it had no caller.
const MOST: usize = 1 << 22;

/// The last call of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The path up to the call that made it; [`NONE`] where no recorded call was around.
    pub parent: u32,
    /// Its function.
    pub function: u32,
    /// Where its caller continues.
    pub ret_addr: u64,
    /// An event at which this address belonged to the caller.
    pub seq: u64,
}

/// All paths. A path follows those that it continues.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    children: FxHashMap<(u32, u32, u64), u32>,
}

impl Tree {
    /// Makes a tree without paths.
    #[must_use]
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Returns a path; `None` for [`NONE`].
    #[must_use]
    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// Returns the path that continues `parent`.
    pub fn child(&mut self, parent: u32, function: u32, ret_addr: u64, seq: u64) -> u32 {
        let key = (parent, function, ret_addr);
        if let Some(id) = self.children.get(&key) {
            return *id;
        }
        if self.nodes.len() >= MOST {
            return NONE;
        }
        let id = u32::try_from(self.nodes.len()).expect("there are fewer paths than numbers");
        self.nodes.push(Node {
            parent,
            function,
            ret_addr,
            seq,
        });
        self.children.insert(key, id);
        id
    }
}
