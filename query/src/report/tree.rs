//! The paths of calls, folded by function: a node per thread and distinct path, up to a number of nodes.

use rustc_hash::FxHashMap;

/// No node, function or thread.
pub const NONE: u32 = u32::MAX;

/// Calls on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node of the calls that made these; `NONE` for a thread.
    pub parent: u32,
    /// Their function; `NONE` for a thread, and for all paths for which there was no room.
    pub function: u32,
    /// The tally of calls of that function by that of the parent; `NONE` where there is none.
    pub edge: u32,
    /// No call of the same function is around these.
    pub is_outermost: bool,
    /// No call of the same function by the same caller is around these.
    pub is_outermost_edge: bool,
    /// How many.
    pub calls: u64,
    /// Their time without the recorded calls that they made, as measured, in ns.
    pub self_ns: i64,
    /// What of it was nobody's time, in ns.
    pub away_ns: i64,
    /// How many calls have much time of their own.
    pub long_calls: u64,
    /// What of it is in these, in ns.
    pub long_ns: i64,
    /// What of `away_ns` may have been other calls' waits, in ns.
    pub unsure_ns: i64,
    last_child: u32,
}

/// All paths. A node comes after its parent.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    children: FxHashMap<(u32, u32), u32>,
    /// Node of each thread, with its id.
    threads: Vec<(u32, u32)>,
    most: usize,
    /// Calls on paths for which there was no room.
    pub folded: u64,
}

impl Tree {
    /// Makes a tree that has room for `most` paths, besides one per thread and some at the bounds.
    pub fn new(most: usize) -> Tree {
        Tree {
            nodes: Vec::new(),
            children: FxHashMap::default(),
            threads: Vec::new(),
            most,
            folded: 0,
        }
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns a node.
    #[inline]
    pub fn node(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// Returns the threads, each with its node.
    pub fn threads(&self) -> &[(u32, u32)] {
        &self.threads
    }

    /// Adds a thread and returns its node.
    pub fn add_thread(&mut self, tid: u32) -> u32 {
        let id = self.add(NONE, NONE);
        self.threads.push((tid, id));
        id
    }

    /// Returns the node for calls of a function by those of `parent`, and whether it is new.
    #[inline]
    pub fn child(&mut self, parent: u32, function: u32) -> (u32, bool) {
        let last = self.nodes[parent as usize].last_child;
        if last != NONE && self.nodes[last as usize].function == function {
            return (last, false);
        }
        self.find_child(parent, function)
    }

    #[inline(never)]
    fn find_child(&mut self, parent: u32, function: u32) -> (u32, bool) {
        let found = self.children.get(&(parent, function)).copied();
        let (id, is_new) = match found {
            Some(id) => (id, false),
            None => self.new_child(parent, function),
        };
        self.nodes[parent as usize].last_child = id;
        (id, is_new)
    }

    fn new_child(&mut self, parent: u32, function: u32) -> (u32, bool) {
        let is_rest = |node: &Node| node.function == NONE && node.parent != NONE;
        if is_rest(&self.nodes[parent as usize]) {
            return (parent, false);
        }
        if self.nodes.len() < self.most || function == NONE {
            let id = self.add(parent, function);
            self.children.insert((parent, function), id);
            return (id, true);
        }
        self.find_child(parent, NONE)
    }

    fn add(&mut self, parent: u32, function: u32) -> u32 {
        let id = u32::try_from(self.nodes.len()).expect("there are fewer paths than numbers");
        self.nodes.push(Node {
            parent,
            function,
            edge: NONE,
            is_outermost: false,
            is_outermost_edge: false,
            calls: 0,
            self_ns: 0,
            away_ns: 0,
            long_calls: 0,
            long_ns: 0,
            unsure_ns: 0,
            last_child: NONE,
        });
        id
    }

    /// Tells whether a node stands for all paths below its parent for which there was no room.
    pub fn is_rest(&self, id: u32) -> bool {
        let node = &self.nodes[id as usize];
        node.function == NONE && node.parent != NONE
    }
}
