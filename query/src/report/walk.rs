//! Goes through the calls of a recording backwards and adds up their times by function, by caller and by path.
//!
//! Backwards, a call comes after the one that made it, so the open calls of a thread are a stack. Coroutines and handlers
//! on other stacks interleave in one thread: a call that is still open when another takes its place keeps its calls on
//! a stack of its own. Memory grows with the number of functions, pairs of them and paths, not with that of calls.

use rustc_hash::FxHashMap;

use super::away::Away;
use super::read::{Call, Rows};
use super::tree::{NONE, Tree};

/// In a call with this much time of its own, in ns, the thread may have waited for a processor.
const LONG_NS: i64 = 10_000;
/// Other stacks of a thread that are kept. The calls on those that are not count as if nobody had made them.
const MOST_STACKS: usize = 4096;

/// The calls of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionTotal {
    /// How many.
    pub calls: u64,
    /// Their time without the recorded calls that they made, as measured, in ns.
    pub self_ns: i64,
    /// What of that was nobody's time, in ns.
    pub away_ns: i64,
    /// What of `away_ns` may have been other calls' waits, in ns.
    pub unsure_ns: i64,
    /// The time of those around which there is no other call of the function, as measured.
    pub inclusive: Inclusive,
}

/// The time of calls with all that they made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inclusive {
    /// As measured, in ns.
    pub ns: i64,
    /// What of that was nobody's time, in ns.
    pub away_ns: i64,
    /// How many calls these are, and how many they made, and so on.
    pub calls: u64,
    /// How many of them have their caller among them.
    pub made: u64,
}

impl Inclusive {
    /// Adds a call that made so many others.
    fn add_calls(&mut self, made: u64) {
        self.calls += made + 1;
        self.made += made;
    }
}

/// The calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeTotal {
    /// The one that called; `NONE` where no recorded call was around.
    pub caller: u32,
    /// The one that was called.
    pub callee: u32,
    /// How many.
    pub calls: u64,
    /// The time of those around which there is no other call of the one by the other.
    pub inclusive: Inclusive,
}

/// An open call.
#[derive(Clone, Copy, Debug)]
struct Frame {
    start: u64,
    function: u32,
    node: u32,
    edge: u32,
    is_outermost: bool,
    is_outermost_edge: bool,
    /// The calls of the thread so far, itself included.
    calls: u64,
}

/// Open calls, the outermost first.
#[derive(Debug)]
struct Stack {
    /// The depth of the first one.
    base: usize,
    /// The call around the first one, if it is known.
    around: Option<(u64, u32, u32)>,
    frames: Vec<Frame>,
}

impl Stack {
    /// Tells whether the caller of `call` is open on this stack.
    #[inline]
    fn holds_caller(&self, call: &Call) -> bool {
        let above = call.depth.checked_sub(self.base);
        let caller = above.and_then(|above| self.frames.get(above.checked_sub(1)?));
        caller.is_some_and(|caller| call.parent == Some(caller.start))
    }

    /// Tells whether the caller of `call` is the call around this stack.
    fn is_around(&self, call: &Call) -> bool {
        let around = self.around.map(|(seq, ..)| seq);
        call.depth == self.base && around.is_some() && around == call.parent
    }

    /// Tells whether the call around this stack has been seen.
    fn is_known(&self) -> bool {
        self.around.is_some_and(|(_, function, _)| function != NONE)
    }
}

#[derive(Debug)]
struct Thread {
    root: u32,
    calls: u64,
    stacks: Vec<Stack>,
    current: usize,
}

/// All that is added up.
pub struct Walk<'a> {
    away: &'a Away,
    /// By function.
    pub functions: Vec<FunctionTotal>,
    /// Pairs of functions.
    pub edges: Vec<EdgeTotal>,
    by_pair: FxHashMap<(u32, u32), u32>,
    /// Paths.
    pub tree: Tree,
    threads: Vec<Thread>,
    by_tid: FxHashMap<u32, usize>,
    last: (u32, usize),
}

/// The call around another: its function and its node.
struct Around {
    function: u32,
    node: u32,
}

impl<'a> Walk<'a> {
    /// Begins.
    pub fn new(away: &'a Away, most_paths: usize) -> Self {
        Self {
            away,
            functions: Vec::new(),
            edges: Vec::new(),
            by_pair: FxHashMap::default(),
            tree: Tree::new(most_paths),
            threads: Vec::new(),
            by_tid: FxHashMap::default(),
            last: (0, usize::MAX),
        }
    }

    /// Adds the calls of a row group; those of later ones have been added.
    pub fn add(&mut self, rows: &Rows) {
        let ended = rows.ended();
        if ended < rows.len() {
            let mut open: Vec<Call> = (ended..rows.len()).map(|row| rows.call(row)).collect();
            open.sort_by_key(|call| call.start);
            for call in &open {
                self.add_call(call);
            }
        }
        for row in (0..ended).rev() {
            self.add_call(&rows.call(row));
        }
    }

    /// Ends: all calls are closed.
    pub fn finish(&mut self) {
        for thread in 0..self.threads.len() {
            for stack in std::mem::take(&mut self.threads[thread].stacks) {
                for frame in &stack.frames {
                    self.close(thread, frame);
                }
            }
        }
    }

    fn thread(&mut self, tid: u32) -> usize {
        if self.last.0 == tid && self.last.1 != usize::MAX {
            return self.last.1;
        }
        let index = match self.by_tid.get(&tid) {
            Some(index) => *index,
            None => {
                let root = self.tree.add_thread(tid);
                self.threads.push(Thread {
                    root,
                    calls: 0,
                    stacks: vec![Stack {
                        base: 0,
                        around: None,
                        frames: Vec::new(),
                    }],
                    current: 0,
                });
                self.by_tid.insert(tid, self.threads.len() - 1);
                self.threads.len() - 1
            }
        };
        self.last = (tid, index);
        index
    }

    #[inline]
    fn add_call(&mut self, call: &Call) {
        if self.away.is_made(call.tid, call.start) {
            return self.leave_out(call);
        }
        let index = self.thread(call.tid);
        let around = self.make_room(index, call);
        let (node, is_new) = self.tree.child(around.node, call.function);
        if call.function as usize >= self.functions.len() {
            let len = call.function as usize + 1;
            self.functions.resize(len, FunctionTotal::default());
        }
        let (edge, is_outermost, is_outermost_edge) = if is_new {
            self.classify(node, around.function, call.function)
        } else if self.tree.is_rest(node) {
            self.tree.folded += 1;
            self.look_around(index, around.function, call.function)
        } else {
            let node = self.tree.node(node);
            (node.edge, node.is_outermost, node.is_outermost_edge)
        };
        let thread = &mut self.threads[index];
        thread.calls += 1;
        let frame = Frame {
            start: call.start,
            function: call.function,
            node,
            edge,
            is_outermost,
            is_outermost_edge,
            calls: thread.calls,
        };
        thread.stacks[thread.current].frames.push(frame);
        self.count(call, &frame, &around);
    }

    /// Leaves out a call that the debugger had the thread make: it is none of the program's. The call in which the thread stood gets
    /// the time back that it counted for this one; it was held then.
    #[cold]
    fn leave_out(&mut self, call: &Call) {
        let is_counted = call.end.is_some();
        let Some(parent) = call.parent.filter(|_| is_counted) else {
            return;
        };
        if self.away.is_made(call.tid, parent) {
            return;
        }
        let index = self.thread(call.tid);
        let around = self.make_room(index, call);
        if around.function != NONE {
            self.functions[around.function as usize].self_ns += call.dur_ns;
            self.tree.node(around.node).self_ns += call.dur_ns;
        }
    }

    /// Adds a call's times to its totals, and takes what its caller counted of it for more or less than it is.
    #[inline]
    fn count(&mut self, call: &Call, frame: &Frame, around: &Around) {
        let (whole_ns, away_ns) = self.away.of_call(call);
        let counted_ns = match call.end {
            Some(_) => call.dur_ns,
            None => 0,
        };
        let own_ns = whole_ns - call.child_ns;
        let total = &mut self.functions[call.function as usize];
        total.calls += 1;
        total.self_ns += own_ns;
        total.away_ns += away_ns;
        if frame.is_outermost {
            total.inclusive.ns += whole_ns;
            total.inclusive.away_ns += away_ns;
        }
        let edge = &mut self.edges[frame.edge as usize];
        edge.calls += 1;
        if frame.is_outermost_edge {
            edge.inclusive.ns += whole_ns;
            edge.inclusive.away_ns += away_ns;
        }
        let node = self.tree.node(frame.node);
        node.calls += 1;
        node.self_ns += own_ns;
        node.away_ns += away_ns;
        if own_ns >= LONG_NS {
            node.long_calls += 1;
            node.long_ns += own_ns;
        }
        let more_ns = counted_ns - whole_ns;
        if (more_ns != 0 || away_ns != 0) && around.function != NONE {
            let total = &mut self.functions[around.function as usize];
            total.self_ns += more_ns;
            total.away_ns -= away_ns;
            let node = self.tree.node(around.node);
            node.self_ns += more_ns;
            node.away_ns -= away_ns;
        }
    }

    /// Closes the calls that ended later and do not enclose `call`, and returns what does.
    #[inline]
    fn make_room(&mut self, index: usize, call: &Call) -> Around {
        let thread = &self.threads[index];
        let stack = &thread.stacks[thread.current];
        let fits = match call.parent {
            None => call.depth == 0 && stack.base == 0,
            // Who is around a stack may be known elsewhere by now.
            Some(_) => stack.holds_caller(call) || stack.is_around(call) && stack.is_known(),
        };
        if !fits {
            self.change_stack(index, call);
        }
        let current = self.threads[index].current;
        let keep = call.depth - self.threads[index].stacks[current].base;
        let open = &self.threads[index].stacks[current].frames;
        if let Some(first) = open.get(keep) {
            if call.end.is_none_or(|end| first.start < end) {
                self.set_aside(index, keep);
            } else {
                while self.threads[index].stacks[current].frames.len() > keep {
                    let frame = self.threads[index].stacks[current].frames.pop();
                    self.close(index, &frame.expect("it was counted"));
                }
            }
        }
        let thread = &self.threads[index];
        let stack = &thread.stacks[thread.current];
        match (stack.frames.last(), stack.around) {
            (Some(frame), _) => Around {
                function: frame.function,
                node: frame.node,
            },
            (None, Some((_, function, node))) => Around { function, node },
            (None, None) => Around {
                function: NONE,
                node: thread.root,
            },
        }
    }

    /// Makes a stack the current one that has the caller of `call` at the right depth; a new one if there is none.
    #[inline(never)]
    fn change_stack(&mut self, index: usize, call: &Call) {
        self.drop_ended(index, call);
        let stacks = &self.threads[index].stacks;
        let found = match call.parent {
            None if call.depth == 0 => Some(0),
            None => None,
            Some(_) => {
                let holds = stacks.iter().rposition(|stack| stack.holds_caller(call));
                holds.or_else(|| stacks.iter().rposition(|stack| stack.is_around(call)))
            }
        };
        self.threads[index].current = match found {
            Some(found) => found,
            None => {
                let thread = &mut self.threads[index];
                if thread.stacks.len() >= MOST_STACKS {
                    let oldest = thread.stacks.remove(1);
                    for frame in &oldest.frames {
                        self.close(index, frame);
                    }
                }
                let thread = &mut self.threads[index];
                thread.stacks.push(Stack {
                    base: call.depth,
                    around: call.parent.map(|parent| (parent, NONE, thread.root)),
                    frames: Vec::new(),
                });
                thread.stacks.len() - 1
            }
        };
    }

    /// Drops the other stacks whose calls all began after `call` ended.
    fn drop_ended(&mut self, index: usize, call: &Call) {
        let mut at = 1;
        while let Some(stack) = self.threads[index].stacks.get(at) {
            let has_ended = match (stack.frames.first(), call.end) {
                (Some(first), Some(end)) => first.start > end,
                (Some(_), None) => false,
                (None, _) => true,
            };
            if !has_ended {
                at += 1;
                continue;
            }
            let ended = self.threads[index].stacks.remove(at);
            for frame in &ended.frames {
                self.close(index, frame);
            }
        }
        self.threads[index].current = 0;
    }

    /// Moves the calls above the first `keep` to a stack of their own: they go on beside the next call.
    #[cold]
    fn set_aside(&mut self, index: usize, keep: usize) {
        let thread = &mut self.threads[index];
        let stack = &mut thread.stacks[thread.current];
        let frames = stack.frames.split_off(keep);
        let around = match stack.frames.last() {
            Some(frame) => Some((frame.start, frame.function, frame.node)),
            None => stack.around,
        };
        let base = stack.base + keep;
        thread.stacks.push(Stack {
            base,
            around,
            frames,
        });
    }

    /// Adds the number of calls that a call made, once all of them are known.
    #[inline]
    fn close(&mut self, thread: usize, frame: &Frame) {
        let made = self.threads[thread].calls - frame.calls;
        if frame.is_outermost {
            self.functions[frame.function as usize]
                .inclusive
                .add_calls(made);
        }
        if frame.is_outermost_edge {
            self.edges[frame.edge as usize].inclusive.add_calls(made);
        }
    }

    fn edge(&mut self, caller: u32, callee: u32) -> u32 {
        let edges = &mut self.edges;
        *self.by_pair.entry((caller, callee)).or_insert_with(|| {
            edges.push(EdgeTotal {
                caller,
                callee,
                calls: 0,
                inclusive: Inclusive::default(),
            });
            u32::try_from(edges.len() - 1).expect("there are fewer pairs than numbers")
        })
    }

    /// Notes of a new node what holds for all its calls.
    #[cold]
    fn classify(&mut self, id: u32, caller: u32, callee: u32) -> (u32, bool, bool) {
        if self.tree.is_rest(id) {
            self.tree.folded += 1;
            let thread = self.last.1;
            return self.look_around(thread, caller, callee);
        }
        let edge = self.edge(caller, callee);
        let nodes = self.tree.nodes();
        let (mut is_outermost, mut is_outermost_edge) = (true, true);
        let mut at = nodes[id as usize].parent;
        while at != NONE && is_outermost_edge {
            let node = &nodes[at as usize];
            is_outermost &= node.function != callee;
            is_outermost_edge &= node.edge != edge;
            at = node.parent;
        }
        let node = self.tree.node(id);
        (node.edge, node.is_outermost, node.is_outermost_edge) =
            (edge, is_outermost, is_outermost_edge);
        (edge, is_outermost, is_outermost_edge)
    }

    /// The same for a call on a path for which there was no room.
    fn look_around(&mut self, thread: usize, caller: u32, callee: u32) -> (u32, bool, bool) {
        let edge = self.edge(caller, callee);
        let thread = &self.threads[thread];
        let frames = &thread.stacks[thread.current].frames;
        (
            edge,
            frames.iter().all(|frame| frame.function != callee),
            frames.iter().all(|frame| frame.edge != edge),
        )
    }
}
