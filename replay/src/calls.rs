//! Finds calls in the sealed files by the smallest and largest numbers of their pages.
//!
//! Files hold calls in the order of their ends. After the place of an event, the pages whose smallest `start_seq` does
//! not exceed its number are exactly those that hold a call open at the event. So finding the calls around an event
//! reads at most as many pages as there are such calls.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use store::columns::{CallPage, CallSpine, CallsFile, CheckedFile, EntryColumn, ReadCall};
use store::seal::SealedPart;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::min_tree::MinTree;
use crate::overseen::goes_on;

/// Most pages whose spans in time are kept: 8,192 calls of 60 bytes each.
const SPINES: usize = 192;
/// Most pages that are kept as a whole: 8,192 calls of about 220 bytes each.
const PAGES: usize = 24;
/// Most files whose index of pages is kept: 0.4 MB each. Those of all files would grow with the recording.
const INDEXES: usize = 4;

/// Calls of a page that share the smallest of their `start_seq`.
const GROUP: usize = 32;

/// Where a call is in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallRef {
    block: u32,
    row: u32,
}

/// The span of a call in time, and its place in the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHead {
    /// Seq of the enter event.
    pub start: u64,
    /// Seq of the leave event; `None` if the recording ends before, or only the entry is recorded.
    pub end: Option<u64>,
    /// Only its entry is recorded: when it ended, and what it called, is not known.
    pub only_entered: bool,
    /// The function's id.
    pub function: u32,
    /// The thread.
    pub tid: Option<u32>,
    /// Number of traced calls around it.
    pub depth: u32,
    /// Seq of the enter event of the enclosing call.
    pub parent: Option<u64>,
    /// An exception or longjmp left it.
    pub unwound: bool,
    /// It was open when its thread, or the process, ended.
    pub open_at_end: bool,
    /// It replaced the enclosing call by a tail call.
    pub tail: bool,
    /// Address of the stack word with its return address.
    pub slot: u64,
    /// The content of that word; for a tail call it is not the return address.
    pub(crate) ret_addr: u64,
    pub(crate) at: CallRef,
}

impl CallHead {
    /// Returns whether the call had begun and not ended just after event `seq`. Where only the entry is recorded, that
    /// is known at the entry alone.
    #[must_use]
    pub fn is_open_at(&self, seq: u64) -> bool {
        match self.only_entered {
            true => self.start == seq,
            false => self.start <= seq && self.end.is_none_or(|end| end > seq),
        }
    }

    /// Returns the thread's last event that is known of it: its end, or its entry where only that is recorded.
    #[must_use]
    pub fn place(&self) -> Option<u64> {
        self.end.or(self.only_entered.then_some(self.start))
    }

    /// Returns whether its frame is certain to have been on the stack all the time: it returned.
    #[must_use]
    pub fn returned(&self) -> bool {
        self.end.is_some() && !self.unwound && !self.open_at_end
    }
}

/// How a call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    /// Seq of the enter event.
    pub seq: u64,
    /// The thread.
    pub tid: Option<u32>,
    /// The value of the requested register, if that was recorded.
    pub bits: Option<u64>,
}

/// What a call received and returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    /// The function's id.
    pub function: u32,
    /// Its arguments in general registers; 0 for those that were not read.
    pub args: [u64; 6],
    /// What it returned in rax; `None` if it did not return.
    pub rax: Option<u64>,
}

/// A page, and how to find it.
#[derive(Clone, Copy, Debug)]
struct Block {
    file: u32,
    page: u32,
    /// Smallest and largest `start_seq`.
    starts: (u64, u64),
    /// Largest `end_seq`, or entry of a call of which only that is recorded; the greatest number where a call is
    /// unfinished.
    last_end: u64,
}

/// A page's calls, and their order by `start_seq`.
struct Spine {
    calls: CallSpine,
    /// Made when it is first needed: most searches need only the calls' ends.
    by_start: OnceLock<Vec<u16>>,
    tids: Vec<u32>,
    /// The smallest `start_seq` of each group of calls.
    least: MinTree,
}

impl Spine {
    fn new(calls: CallSpine) -> Self {
        let mut tids: Vec<u32> = (0..calls.rows()).filter_map(|r| calls.tid(r)).collect();
        tids.sort_unstable();
        tids.dedup();
        let rows: Vec<usize> = (0..calls.rows()).collect();
        let starts = |rows: &[usize]| rows.iter().map(|row| calls.start_seq(*row)).min();
        let least = rows.chunks(GROUP).filter_map(starts).collect();
        Self {
            by_start: OnceLock::new(),
            tids,
            least: MinTree::new(least),
            calls,
        }
    }

    /// The first row from `from` on of a call of thread `tid` that began at or before `seq`.
    fn next_begun(&self, from: usize, tid: u32, seq: u64) -> Option<usize> {
        let mut row = from;
        loop {
            row = row.max(self.least.next(row / GROUP, seq)? * GROUP);
            let next = (row + 1).next_multiple_of(GROUP);
            let is_it = |row: &usize| {
                self.calls.start_seq(*row) <= seq && self.calls.tid(*row) == Some(tid)
            };
            match (row..next.min(self.calls.rows())).find(is_it) {
                Some(found) => return Some(found),
                None => row = next,
            }
        }
    }

    fn row_of_start(&self, seq: u64) -> Option<usize> {
        let start = |row: &u16| self.calls.start_seq(usize::from(*row));
        let by_start = self.by_start();
        let found = by_start.binary_search_by_key(&seq, start).ok()?;
        Some(usize::from(by_start[found]))
    }

    /// The rows in the order of their `start_seq`.
    fn by_start(&self) -> &[u16] {
        self.by_start.get_or_init(|| {
            let mut rows: Vec<u16> = (0..self.calls.rows() as u16).collect();
            rows.sort_unstable_by_key(|row| self.calls.start_seq(usize::from(*row)));
            rows
        })
    }

    fn has_thread(&self, tid: u32) -> bool {
        self.tids.binary_search(&tid).is_ok()
    }
}

/// All calls of a recording.
pub(crate) struct Calls {
    /// Only the entries of calls are recorded.
    only_entries: bool,
    files: Vec<CheckedFile>,
    indexes: Cache<u32, CallsFile>,
    blocks: Vec<Block>,
    /// The smallest `start_seq` of each page.
    least: MinTree,
    spines: Cache<u32, Spine>,
    /// The threads of each page that was read, in order. A thread that ended early is searched for through all later pages.
    threads: Vec<OnceLock<Box<[u32]>>>,
    pages: Cache<u32, CallPage>,
}

impl Calls {
    /// Opens the files of calls.
    pub(crate) fn open(parts: &[SealedPart]) -> Result<Self> {
        let mut files = Vec::new();
        let mut blocks = Vec::new();
        let mut only_entries = false;
        for part in parts.iter().filter(|part| part.part.calls > 0) {
            let file = CheckedFile::open(&part.calls)?;
            let number = files.len() as u32;
            let finished = part.part.calls - part.part.unfinished;
            let index = CallsFile::open(file.clone())?;
            only_entries |= index.only_entries();
            blocks.extend(file_blocks(&index, number, finished));
            files.push(file);
        }
        let least = blocks.iter().map(|block| block.starts.0).collect();
        Ok(Self {
            only_entries,
            files,
            indexes: Cache::new(INDEXES),
            least: MinTree::new(least),
            threads: blocks.iter().map(|_| OnceLock::new()).collect(),
            blocks,
            spines: Cache::new(SPINES),
            pages: Cache::new(PAGES),
        })
    }

    fn file(&self, number: u32) -> Result<Arc<CallsFile>> {
        self.indexes.get(number, || {
            Ok(CallsFile::open(self.files[number as usize].clone())?)
        })
    }

    fn spine(&self, block: usize) -> Result<Arc<Spine>> {
        self.spines.get(block as u32, || {
            let Block { file, page, .. } = self.blocks[block];
            let spine = Spine::new(self.file(file)?.spine(page as usize)?);
            // They may be known from before.
            let _ = self.threads[block].set(spine.tids.clone().into());
            Ok(spine)
        })
    }

    /// Returns whether a page is known to have no call of a thread.
    fn lacks(&self, block: usize, tid: u32) -> bool {
        let tids = self.threads[block].get();
        tids.is_some_and(|tids| tids.binary_search(&tid).is_err())
    }

    /// Returns everything that is kept of a call.
    pub(crate) fn call(&self, head: &CallHead) -> Result<ReadCall> {
        let CallRef { block, row } = head.at;
        let page = self.pages.get(block, || {
            let Block { file, page, .. } = self.blocks[block as usize];
            Ok::<_, Error>(self.file(file)?.page(page as usize)?)
        })?;
        Ok(page.call(row as usize))
    }

    fn head(&self, spine: &Spine, block: usize, row: usize) -> CallHead {
        let calls = &spine.calls;
        CallHead {
            start: calls.start_seq(row),
            end: calls.end_seq(row),
            only_entered: calls.only_entered(row),
            function: calls.function_id(row),
            tid: calls.tid(row),
            depth: calls.depth(row),
            parent: calls.parent_seq(row),
            unwound: calls.unwound(row),
            open_at_end: calls.open_at_end(row),
            tail: calls.tail(row),
            slot: calls.sp(row),
            ret_addr: calls.ret_addr(row),
            at: CallRef {
                block: block as u32,
                row: row as u32,
            },
        }
    }

    /// The first page with a call that ends at or after `seq`, or never.
    fn first_block(&self, seq: u64) -> usize {
        self.blocks.partition_point(|block| block.last_end < seq)
    }

    /// Finds the call whose leave event is `seq`.
    pub(crate) fn left_at(&self, seq: u64) -> Result<Option<CallHead>> {
        let block = self.first_block(seq);
        if block == self.blocks.len() {
            return Ok(None);
        }
        let spine = self.spine(block)?;
        let row = spine.calls.first_end_from(seq);
        let found = row < spine.calls.rows() && spine.calls.end_seq(row) == Some(seq);
        Ok(found.then(|| self.head(&spine, block, row)))
    }

    /// Finds the call whose enter event is `seq`.
    pub(crate) fn entered_at(&self, seq: u64) -> Result<Option<CallHead>> {
        self.entered_from(self.first_block(seq), seq)
    }

    /// The same for a call that is known to end in page `block` or later.
    fn entered_from(&self, block: usize, seq: u64) -> Result<Option<CallHead>> {
        let mut next = self.least.next(block, seq);
        while let Some(at) = next {
            if self.blocks[at].starts.1 >= seq {
                let spine = self.spine(at)?;
                if let Some(row) = spine.row_of_start(seq) {
                    return Ok(Some(self.head(&spine, at, row)));
                }
            }
            next = self.least.next(at + 1, seq);
        }
        Ok(None)
    }

    /// Finds the enclosing call of a call.
    pub(crate) fn parent(&self, call: &CallHead) -> Result<Option<CallHead>> {
        let Some(parent) = call.parent else {
            return Ok(None);
        };
        // Calls end from the inside out, except calls on several stacks of one thread.
        match self.entered_from(call.at.block as usize, parent)? {
            Some(found) => Ok(Some(found)),
            None => self.entered_at(parent),
        }
    }

    /// Returns whether only the entries of calls are recorded: when they end, and what they call, is not known.
    pub(crate) fn only_entries(&self) -> bool {
        self.only_entries
    }

    /// Finds the innermost call of a thread that was open just after event `seq`. Where only entries are recorded, a call
    /// is known to be open at its entry alone.
    pub(crate) fn innermost(&self, tid: u32, seq: u64) -> Result<Option<CallHead>> {
        if self.only_entries
            && let Some(call) = self.entered_at(seq)?
            && call.only_entered
        {
            return Ok(Some(call).filter(|call| call.tid == Some(tid)));
        }
        let first = self.first_block(seq + 1);
        let mut next = self.least.next(first, seq);
        while let Some(at) = next {
            next = self.least.next(at + 1, seq);
            if self.lacks(at, tid) {
                continue;
            }
            let spine = self.spine(at)?;
            if !spine.has_thread(tid) {
                continue;
            }
            let calls = &spine.calls;
            let from = match at == first {
                true => calls.first_end_from(seq + 1),
                false => 0,
            };
            let mut best = spine.next_begun(from, tid, seq);
            // Unfinished calls are unordered: the innermost of them began last.
            if let Some(found) = best.filter(|found| calls.end_seq(*found).is_none()) {
                best = self.last_unfinished(&spine, found, tid, seq);
            }
            if let Some(row) = best {
                let head = self.head(&spine, at, row);
                return match head.end {
                    Some(_) => Ok(Some(head)),
                    None => self.last_unfinished_from(at, head, tid, seq).map(Some),
                };
            }
        }
        Ok(None)
    }

    fn last_unfinished(&self, spine: &Spine, from: usize, tid: u32, seq: u64) -> Option<usize> {
        let calls = &spine.calls;
        (from..calls.rows())
            .filter(|row| calls.start_seq(*row) <= seq && calls.tid(*row) == Some(tid))
            .max_by_key(|row| calls.start_seq(*row))
    }

    /// Searches the pages after `block`, whose calls are all unfinished, for one that began later than `best`.
    fn last_unfinished_from(
        &self,
        block: usize,
        best: CallHead,
        tid: u32,
        seq: u64,
    ) -> Result<CallHead> {
        let mut best = best;
        for at in block + 1..self.blocks.len() {
            let (first, last) = self.blocks[at].starts;
            if first > seq || last <= best.start {
                continue;
            }
            let spine = self.spine(at)?;
            if let Some(row) = self.last_unfinished(&spine, 0, tid, seq)
                && spine.calls.start_seq(row) > best.start
            {
                best = self.head(&spine, at, row);
            }
        }
        Ok(best)
    }

    /// Finds the last call of a thread to end, at or before event `seq`, and not before `floor`. Calls of which only the
    /// entry is recorded count as if they ended with it.
    pub(crate) fn last_ended(&self, tid: u32, seq: u64, floor: u64) -> Result<Option<CallHead>> {
        let first = self.first_block(seq + 1);
        for at in (0..(first + 1).min(self.blocks.len())).rev() {
            if at < first && self.blocks[at].last_end < floor {
                return Ok(None);
            }
            if self.lacks(at, tid) {
                continue;
            }
            let spine = self.spine(at)?;
            if !spine.has_thread(tid) {
                continue;
            }
            let calls = &spine.calls;
            let (begin, end) = (calls.first_end_from(floor), calls.first_end_from(seq + 1));
            let mut rows = (begin..end.max(begin)).rev();
            let found = rows.find(|row| calls.tid(*row) == Some(tid));
            if let Some(row) = found {
                let head = self.head(&spine, at, row);
                return Ok(Some(head).filter(|head| head.place() >= Some(floor)));
            }
        }
        Ok(None)
    }

    /// Finds the first call of a thread to end, at or after event `seq` and not after `ceiling`. Calls of which only the
    /// entry is recorded count as if they ended with it.
    pub(crate) fn first_ended(&self, tid: u32, seq: u64, ceiling: u64) -> Result<Option<CallHead>> {
        let first = self.first_block(seq);
        for at in first..self.blocks.len() {
            let spine = self.spine(at)?;
            let calls = &spine.calls;
            let from = calls.first_end_from(seq);
            if from < calls.rows() && calls.place(from).is_none_or(|place| place > ceiling) {
                return Ok(None);
            }
            if !spine.has_thread(tid) {
                continue;
            }
            let found = (from..calls.rows())
                .take_while(|row| calls.place(*row).is_some())
                .find(|row| calls.tid(*row) == Some(tid));
            if let Some(row) = found {
                let head = self.head(&spine, at, row);
                return Ok(Some(head).filter(|head| head.place() <= Some(ceiling)));
            }
        }
        Ok(None)
    }

    /// Returns the first of a thread's calls that no leave event ends and that begin at or after `seq`.
    pub(crate) fn first_unfinished(&self, tid: u32, seq: u64) -> Result<Option<CallHead>> {
        let mut best: Option<CallHead> = None;
        for at in (0..self.blocks.len()).rev() {
            if self.blocks[at].last_end != u64::MAX {
                break;
            }
            let spine = self.spine(at)?;
            let calls = &spine.calls;
            for row in 0..calls.rows() {
                let start = calls.start_seq(row);
                let fits = calls.end_seq(row).is_none()
                    && !calls.only_entered(row)
                    && calls.tid(row) == Some(tid)
                    && start >= seq
                    && best.is_none_or(|best| best.start > start);
                if fits {
                    best = Some(self.head(&spine, at, row));
                }
            }
        }
        Ok(best)
    }

    /// Passes every call to `each`, in the files' order, until it returns false.
    pub(crate) fn each(
        &self,
        blocks: impl Iterator<Item = usize>,
        mut each: impl FnMut(CallHead) -> bool,
    ) -> Result<()> {
        for at in blocks {
            let spine = self.spine(at)?;
            for row in 0..spine.calls.rows() {
                if !each(self.head(&spine, at, row)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Finds for each of `values` the last call that had it in rax at its return before event `seq`, and of which `is_result`
    /// says, with rax and the value, that it is its result. Stops at `is_interrupted`.
    pub(crate) fn returned_before(
        &self,
        values: &[u64],
        seq: u64,
        is_result: &dyn Fn(&CallHead, u64, u64) -> bool,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<CallHead>>> {
        let mut found: Vec<Option<CallHead>> = vec![None; values.len()];
        let last = (self.first_block(seq) + 1).min(self.blocks.len());
        for at in (0..last).rev() {
            if found.iter().all(Option::is_some) {
                break;
            }
            if is_interrupted() {
                return Err(Error::Interrupted);
            }
            let Block { file, page, .. } = self.blocks[at];
            let results = self.file(file)?.results(page as usize)?;
            for (value, found) in values.iter().zip(&mut found) {
                let is_it = |result: &Option<u64>| result.is_some_and(|rax| is_same(rax, *value));
                if found.is_some() || !results.iter().any(is_it) {
                    continue;
                }
                let spine = self.spine(at)?;
                let until = spine.calls.first_end_from(seq);
                let calls = (0..until)
                    .rev()
                    .filter(|row| is_it(&results[*row]))
                    .map(|row| (self.head(&spine, at, row), results[row]));
                let mut returned =
                    calls.filter(|(call, rax)| rax.is_some_and(|rax| is_result(call, rax, *value)));
                *found = returned.next().map(|(call, _)| call);
            }
        }
        Ok(found)
    }

    /// Returns the calls of `functions` that begin with one of the events `range`, unordered.
    ///
    /// # Errors
    /// The files cannot be read, or [`Error::Interrupted`].
    pub(crate) fn entered_in(
        &self,
        range: &std::ops::Range<u64>,
        functions: &BTreeSet<u32>,
    ) -> Result<Vec<CallHead>> {
        let mut found = Vec::new();
        let Some(last_event) = range.end.checked_sub(1) else {
            return Ok(found);
        };
        if functions.is_empty() {
            return Ok(found);
        }
        let mut next = self.least.next(self.first_block(range.start), last_event);
        while let Some(at) = next {
            next = self.least.next(at + 1, last_event);
            let Block {
                file, page, starts, ..
            } = self.blocks[at];
            if !goes_on(starts.0) {
                return Err(Error::Interrupted);
            }
            // Most functions are called in few places.
            if starts.1 < range.start || !self.file(file)?.has_function(page as usize, functions)? {
                continue;
            }
            let spine = self.spine(at)?;
            let calls = &spine.calls;
            let start = |row: &u16| calls.start_seq(usize::from(*row));
            let by_start = spine.by_start();
            let from = by_start.partition_point(|row| start(row) < range.start);
            let rows = by_start[from..].iter();
            for row in rows.take_while(|row| start(row) < range.end) {
                let row = usize::from(*row);
                if functions.contains(&calls.function_id(row)) {
                    found.push(self.head(&spine, at, row));
                }
            }
        }
        Ok(found)
    }

    /// Returns the calls of `functions` that `is_wanted` selects by what they received in the registers of `arguments` and what they
    /// returned. It is asked in the order of the calls' ends, last those without one.
    ///
    /// # Errors
    /// The files cannot be read, or [`Error::Interrupted`].
    pub(crate) fn with_values(
        &self,
        functions: &BTreeSet<u32>,
        arguments: &[usize],
        is_wanted: &mut dyn FnMut(&Values) -> bool,
    ) -> Result<Vec<(CallHead, Values)>> {
        let ids = functions.last().map_or(0, |last| *last as usize + 1);
        let is_one: Vec<bool> = (0..ids)
            .map(|id| functions.contains(&(id as u32)))
            .collect();
        let is_one = |id: &u32| is_one.get(*id as usize).copied().unwrap_or(false);
        let mut found = Vec::new();
        for at in 0..self.blocks.len() {
            let Block {
                file, page, starts, ..
            } = self.blocks[at];
            if !goes_on(starts.0) {
                return Err(Error::Interrupted);
            }
            let (file, page) = (self.file(file)?, page as usize);
            let called = file.functions(page)?;
            if !called.iter().any(is_one) {
                continue;
            }
            let columns = file.values(page, arguments)?;
            let mut spine = None;
            for (row, function) in called.iter().enumerate().filter(|(_, id)| is_one(id)) {
                let values = Values {
                    function: *function,
                    args: columns.args(row),
                    rax: columns.rax(row),
                };
                if !is_wanted(&values) {
                    continue;
                }
                let spine = match &spine {
                    Some(spine) => spine,
                    None => spine.insert(self.spine(at)?),
                };
                found.push((self.head(spine, at, row), values));
            }
        }
        Ok(found)
    }

    /// Returns the entries of a function among the events `range`, in order, with what one register held.
    pub(crate) fn entered_with(
        &self,
        range: &std::ops::Range<u64>,
        function: u32,
        column: EntryColumn,
    ) -> Result<Vec<Entered>> {
        let mut found = Vec::new();
        for at in self.blocks_from(range.start) {
            let Block {
                file, page, starts, ..
            } = self.blocks[at];
            if starts.0 >= range.end || starts.1 < range.start {
                continue;
            }
            self.file(file)?.entries(page as usize, column, |entry| {
                if entry.function_id == function && range.contains(&entry.start_seq) {
                    found.push(Entered {
                        seq: entry.start_seq,
                        tid: entry.tid,
                        bits: entry.bits,
                    });
                }
            })?;
        }
        found.sort_unstable_by_key(|entered| entered.seq);
        Ok(found)
    }

    /// Returns the pages that may hold calls that start or end at or after `seq`, in order.
    pub(crate) fn blocks_from(&self, seq: u64) -> std::ops::Range<usize> {
        self.first_block(seq)..self.blocks.len()
    }

    /// Returns the number of the last event that ends a call of a page; the greatest number if one has not ended.
    pub(crate) fn last_end(&self, block: usize) -> u64 {
        self.blocks[block].last_end
    }

    /// Returns the smallest and the largest `start_seq` of a page.
    pub(crate) fn starts(&self, block: usize) -> (u64, u64) {
        self.blocks[block].starts
    }
}

/// Returns whether rax holds a value. The upper half of what returns 32 bits may be anything.
fn is_same(rax: u64, value: u64) -> bool {
    let is_narrow = i32::try_from(value as i64).is_ok() || u32::try_from(value).is_ok();
    rax == value || is_narrow && rax as u32 == value as u32
}

/// The pages of a file. The first `finished` of its calls have ended.
fn file_blocks(file: &CallsFile, number: u32, finished: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rows_before = 0u64;
    let ends = file.ends();
    for (page, bounds) in file.pages().iter().enumerate() {
        rows_before += bounds.rows as u64;
        let last_row = bounds.first_row + bounds.rows - 1;
        let last_end = ends.iter().rev().find(|end| {
            let rows = end.first_row..end.first_row + end.rows;
            end.row_group == bounds.row_group && rows.contains(&last_row)
        });
        let last_end = match last_end {
            Some(end) if rows_before <= finished => end.range.1,
            None if file.only_entries() => bounds.range.1,
            _ => u64::MAX,
        };
        blocks.push(Block {
            file: number,
            page: page as u32,
            starts: bounds.range,
            last_end,
        });
    }
    blocks
}
